/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * export_cmd.h - from a capture to what a user reads: the second half of wallprof.
 */
#ifndef WALLPROF_EXPORT_CMD_H
#define WALLPROF_EXPORT_CMD_H

#include "frames.h"
#include "launch.h"
#include "options.h"
#include "timeline.h"

typedef struct Loaded {
	Timeline *timeline;
	Frames *frames;
} Loaded;

/*
 * Reads a capture. One without symbols (its recorder was killed, or told to defer
 * them) gets them from this machine's files, where their build ids fit. The same holds for
 * the texts of source files, as far as the invoker may read them; a report needs none. Returns 0 or
 * a negative errno after saying what is wrong.
 */
int export_cmd_load(const char *capture_path, const LoadOptions *options, const Invoker *invoker,
		    Loaded *ret_loaded);
void export_cmd_unload(Loaded *loaded);

/* Writes the profile; output_path: NULL for stdout. Returns 0 or a negative errno after saying what
 * is wrong. */
int export_cmd_write(const Loaded *loaded, const ExportOptions *options, const char *capture_path,
		     const char *output_path, const Invoker *invoker);

/* The same for options->json_summary: what `report --json` prints. */
int export_cmd_write_summary(const Loaded *loaded, const ExportOptions *options,
			     const char *capture_path, const Invoker *invoker);

#endif
