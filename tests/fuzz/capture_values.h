/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef WALLPROF_CAPTURE_VALUES_H
#define WALLPROF_CAPTURE_VALUES_H

/* Writes captures with all values into FOLDER/capture, which exists. */
void capture_values_write(const char *folder);

#endif
