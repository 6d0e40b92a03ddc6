/* SPDX-License-Identifier: GPL-2.0-or-later */
/* export_temp.h - the temporary file of an export or a report, for what does not fit into memory.
 */
#ifndef WALLPROF_EXPORT_TEMP_H
#define WALLPROF_EXPORT_TEMP_H

#include "capture.h"

/*
 * Call it before the capture is read. The file is made in the folder of the output, or in that of
 * the capture if there is no output (NULL), or if it is no regular file. If the export will need
 * the file, its size is printed; it is a warning if there is less room, or if the file cannot be
 * made.
 */
void export_temp_begin(const char *capture_path, const char *output_path,
		       const CaptureReader *reader);

/* Frees the file. The timeline must have been freed before. */
void export_temp_end(void);

#endif
