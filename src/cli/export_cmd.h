/* SPDX-License-Identifier: GPL-2.0-or-later */
/* export_cmd.h - reads a capture and writes a profile or a summary. */
#ifndef WALLPROF_EXPORT_CMD_H
#define WALLPROF_EXPORT_CMD_H

#include "frames.h"
#include "invoker.h"
#include "options.h"
#include "timeline.h"

typedef struct Loaded {
	Timeline *timeline;
	Frames *frames;
} Loaded;

/*
 * Reads a capture. If it has no symbols (its recorder was killed, or deferred them), they are
 * looked up in this machine's files whose build IDs match. The same holds for the text of source
 * files, as far as the invoker may read them; a report needs none. Returns 0 or a negative errno,
 * logged.
 */
int export_cmd_load(const char *capture_path, const LoadOptions *options, const Invoker *invoker,
		    Loaded *ret_loaded);
void export_cmd_unload(Loaded *loaded);

/* Writes the profile; output_path is NULL for stdout. Returns 0 or a negative errno, logged. */
int export_cmd_write(const Loaded *loaded, const ExportOptions *options, const char *capture_path,
		     const char *output_path, const Invoker *invoker);

/*
 * Writes options->json_summary: what `report --json` prints. Returns 0 or a negative errno, logged.
 */
int export_cmd_write_summary(const Loaded *loaded, const ExportOptions *options,
			     const char *capture_path, const Invoker *invoker);

#endif
