/* SPDX-License-Identifier: GPL-2.0-or-later */
/* options.h - the command line and WALLPROF_OPTIONS. */
#ifndef WALLPROF_OPTIONS_H
#define WALLPROF_OPTIONS_H

#include "formats.h"
#include "record_options.h"
#include "stack_tree.h"

enum verb {
	VERB_PROFILE, /* records, then exports */
	VERB_RECORD,
	VERB_EXPORT,
	VERB_REPORT,
	VERB_OPEN,
	VERB_DOCTOR,
	VERB_HELP,
	VERB_VERSION,
	VERB_LICENSES,
};

/* What export and report read of a capture. */
typedef struct LoadOptions {
	uint64_t from_ns, to_ns; /* since the start of the window; to_ns 0 = its end */
	const char *processes;	 /* IDs and patterns, separated by commas; NULL = all */
	const char *threads;
	pid_t critical_tid; /* the critical path ends where this thread ends; 0 = the command's */
	bool no_debuginfod;
	bool no_source;
	bool anonymize;	    /* names of files, hosts, arguments and users are replaced */
	bool all_frames;    /* recursion is not folded */
	bool native_frames; /* the interpreter's own functions are shown */
} LoadOptions;

typedef struct ExportOptions {
	enum format format; /* never FORMAT_BY_NAME after options_parse() */
	uint32_t hidden;    /* hidden states: 1 << enum thread_state */
	int compression;    /* level of the profile; 0 = the default */
	bool cpu_graph;
	enum stack_tree_root root; /* of folded stacks and flame graphs */
	const char *json_summary;  /* file for the report as JSON; NULL = none */
} ExportOptions;

typedef struct ReportOptions {
	bool json;
	const char *function; /* report only waits below it; NULL = all waits */
	bool critical_path;   /* report only this */
	const char *section;  /* print only this one; NULL = the page */
	uint64_t top;	      /* rows of each table; 0 = as many as fit, or all */
	bool full;	      /* all sections and all rows */
	pid_t timeline_tid;   /* what this thread did, event by event; 0 = the report */
	uint64_t limit;	      /* of the JSON, in bytes; 0 = none */
	bool no_pager;
} ReportOptions;

typedef struct OpenOptions {
	const char *viewer; /* URL, or a folder that is also served; NULL = the public viewer */
	uint16_t first_port, last_port; /* the server uses the first free one */
	uint64_t
		idle_timeout_ns; /* the server exits after this time without a request; 0 = never */
	bool no_browser;	 /* only print the URL */
	bool offline;		 /* a local copy of the viewer, or else a page */
	bool url_to_stderr;	 /* standard output belongs to a recorded command */
} OpenOptions;

typedef struct DoctorOptions {
	const char *unwind; /* process ID or file to analyse; NULL = none */
} DoctorOptions;

typedef struct Options {
	enum verb verb;
	enum verb help_verb; /* for VERB_HELP: the command; VERB_PROFILE = all commands */
	const char
		*output; /* profile, or capture for `record`; never NULL; see options_to_stdout() */
	/* For export, report and open: a capture or a profile; NULL = the last one (results.h) */
	const char *input;
	bool discard_capture; /* when the profile is written */
	bool open_profile;    /* show it in the viewer then */
	bool as_root;
	RecordOptions record;
	LoadOptions load;
	ExportOptions export;
	ReportOptions report;
	OpenOptions open;
	DoctorOptions doctor;
} Options;

/* Parses the command line and sets log_level. Returns 0 or a negative errno, logged. */
int options_parse(int argc, char **argv, Options *ret_options);

/* Returns whether an export is written to standard output (`-o -`). */
bool options_to_stdout(const Options *options);

/* Returns the command of wallprof whose name is close to the word (suggestion.h), or NULL. */
const char *options_verb_close_to(const char *word);

#endif
