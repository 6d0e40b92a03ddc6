/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options.h - the command line.
 */
#ifndef WALLPROF_OPTIONS_H
#define WALLPROF_OPTIONS_H

#include "record_options.h"

enum verb {
	VERB_PROFILE, /* record, then export */
	VERB_RECORD,
	VERB_EXPORT,
	VERB_REPORT,
	VERB_OPEN,
	VERB_DOCTOR,
	VERB_HELP,
	VERB_VERSION,
	VERB_LICENSES,
};

enum format {
	FORMAT_BY_NAME, /* as the output's name says */
	FORMAT_FIREFOX,
	FORMAT_CHROME,
};

/* What is read of a capture: export, report. */
typedef struct LoadOptions {
	uint64_t from_ns, to_ns; /* of the window, since its start; to_ns 0: its end */
	const char *processes;	 /* numbers and patterns, separated by commas; NULL = all */
	const char *threads;
	pid_t critical_tid; /* the thread at whose end the critical path ends; 0 = the command's */
	bool no_debuginfod;
	bool no_source;
} LoadOptions;

typedef struct ExportOptions {
	enum format format; /* never FORMAT_BY_NAME once the line was read */
	uint32_t left_out;  /* states (1 << enum thread_state) that are not exported */
	int compression;    /* level of the profile's; 0 = by default */
	bool cpu_graph;
	const char *json_summary; /* where the report is written as JSON besides; NULL = nowhere */
} ExportOptions;

typedef struct ReportOptions {
	bool json;
	const char *function; /* of whose waits alone; NULL = all */
	bool critical_path;   /* nothing else */
} ReportOptions;

typedef struct OpenOptions {
	const char *viewer; /* URL, or a folder that is served, too; NULL = the public one */
	uint16_t first_port, last_port; /* the first free one of these */
	uint64_t idle_timeout_ns;	/* ends after so long without a request; 0 = never */
	bool no_browser;		/* only print the URL */
} OpenOptions;

typedef struct DoctorOptions {
	const char *unwind; /* of what the unwind tables are asked; NULL = not */
} DoctorOptions;

typedef struct Options {
	enum verb verb;
	enum verb help_verb; /* VERB_HELP: the command that it is about; VERB_PROFILE: all */
	const char *output; /* profile, or capture with `record`; never NULL; options_to_stdout() */
	const char *input;  /* capture, for export and report; profile, for open */
	bool keep_capture;
	bool as_root;
	RecordOptions record;
	LoadOptions load;
	ExportOptions export;
	ReportOptions report;
	OpenOptions open;
	DoctorOptions doctor;
} Options;

/*
 * Reads the command line; also sets log_level. Returns 0, or a negative errno after
 * saying what is wrong.
 */
int options_parse(int argc, char **argv, Options *ret_options);

/* Whether an export is written to stdout: `-o -`. */
bool options_to_stdout(const Options *options);

/* Of one command; VERB_PROFILE: of all. */
void options_print_help(enum verb verb);

#endif
