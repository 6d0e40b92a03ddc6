/* SPDX-License-Identifier: GPL-2.0-or-later */
/* commands.h - the commands of the program, which main() calls. */
#ifndef WALLPROF_COMMANDS_H
#define WALLPROF_COMMANDS_H

#include "anonymizer.h"
#include "frames.h"
#include "invoker.h"
#include "options.h"
#include "timeline.h"

/* ---- export and report: read a capture and write a profile or a summary ------------------ */

typedef struct Loaded {
	Timeline *timeline;
	Frames *frames;
	Anonymizer *anonymizer; /* NULL: names are as they were recorded */
	bool has_temp;		/* export_temp_end() is due */
	uint64_t profile_bytes; /* of the profile that export_cmd_write() wrote, not compressed */
} Loaded;

/*
 * Reads a capture, from capture_fd if that is not -1. If it has no symbols (its recorder was
 * killed, or deferred them), they are looked up in this machine's files whose build IDs match. The
 * same holds for the text of source files, as far as the invoker may read them; a report needs
 * none. output_path: what will be written, or NULL; see export_temp.h. One capture is loaded at a
 * time. Returns 0 or a negative errno, logged.
 */
int export_cmd_load(const char *capture_path, int capture_fd, const char *output_path,
		    const LoadOptions *options, const Invoker *invoker, Loaded *ret_loaded);
void export_cmd_unload(Loaded *loaded);

/*
 * Writes the profile; output_path is NULL for stdout. keep_old: an older file of that name becomes
 * NAME.old. Returns 0 or a negative errno, logged.
 */
int export_cmd_write(Loaded *loaded, const ExportOptions *options, const char *capture_path,
		     const char *output_path, bool keep_old, const Invoker *invoker);

/*
 * Writes options->json_summary: what `report --json` prints. Returns 0 or a negative errno, logged.
 */
int export_cmd_write_summary(const Loaded *loaded, const ExportOptions *options,
			     const char *capture_path, const Invoker *invoker);

/*
 * Prints the report on the capture options->input, on a terminal through a pager. Returns an exit
 * status; failures are logged.
 */
int report_cmd_run(const Options *options, const Invoker *invoker);

/* Tells captures from profiles, for messages about a file of the wrong kind. */
enum file_kind {
	FILE_KIND_OTHER, /* or it cannot be read */
	FILE_KIND_CAPTURE,
	FILE_KIND_PROFILE,
};

enum file_kind export_cmd_file_kind(const char *path);

/* ---- open: shows a profile in the viewer ------------------------------------------------- */

/*
 * Serves the profile or the page at path until a signal arrives, or until there was no request for
 * options->idle_timeout_ns. Prints the URL of the viewer, or that of the page, and starts a browser
 * if there is a desktop. Returns 0 or a negative errno, logged.
 */
int open_cmd_run(const char *path, const OpenOptions *options, const Invoker *invoker);

/*
 * Returns the folder of a copy of the viewer that is installed on this machine (wallprof-open(1)
 * says where), or NULL. The caller frees it.
 */
char *open_cmd_local_viewer(void);

/*
 * doctor --unwind PID|FILE: prints how much of the code of an ELF file, or of all files that a
 * process has mapped, unwind tables cover. what is a path or a process ID. Prints to stdout.
 * Returns 0 or a negative errno, logged; it is an error if no file of the process could be opened.
 */
int doctor_unwind(const char *what);

/* Prints the licences to stdout. */
void licenses_print(void);

#endif
