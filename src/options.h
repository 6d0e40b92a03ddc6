/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options.h - the command line.
 */
#ifndef WALLPROF_OPTIONS_H
#define WALLPROF_OPTIONS_H

#include "shared.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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

#define DELAY_SIGNAL UINT64_MAX

enum format {
	FORMAT_BY_NAME, /* as the output's name says */
	FORMAT_FIREFOX,
	FORMAT_CHROME,
};

typedef struct Options {
	enum verb verb;
	enum format format; /* of the profile; never FORMAT_BY_NAME once the line was read */
	const char *output; /* profile, or capture with `record`; never NULL; options_to_stdout() */
	const char *input;  /* capture, for export and report; profile, for open */
	char **command;	    /* NULL-terminated; NULL = attach. Beside whole_system: how long */
	pid_t *pids;
	size_t pid_count;
	pid_t *tids; /* threads, without the others of their processes */
	size_t tid_count;
	bool whole_system;
	bool kernel_threads;  /* beside those that are chosen */
	const char *cgroup;   /* NULL = none */
	uint64_t duration_ns; /* 0 = until the command ends or a signal */
	uint64_t flight_ns;   /* of which only the last so much is kept; 0 = all */
	uint64_t delay_ns;    /* before the window begins; DELAY_SIGNAL: until SIGUSR1 */
	unsigned int frequency;
	uint64_t ring_size; /* a power of two */
	enum kernel_stacks kernel_stacks;
	enum user_stacks user_stacks;
	bool best_fault_source; /* else: */
	enum fault_source fault_source;
	uint64_t fault_threshold_ns; /* or FAULT_THRESHOLD_NONE */
	uint64_t waker_threshold_ns; /* or WAKER_THRESHOLD_NONE */
	uint64_t unwind_memory;	     /* bytes: whole chunks (unwind_memory.h) */
	uint64_t from_ns, to_ns;     /* of the window, since its start; to_ns 0: its end */
	const char *processes;	     /* numbers and patterns, separated by commas; NULL = all */
	const char *threads;
	uint32_t left_out;	 /* states (1 << enum thread_state) that are not exported */
	int compression;	 /* level of the profile's; 0 = by default */
	int capture_compression; /* level of the capture's (zstd), in so many threads */
	unsigned int capture_threads;
	bool keep_capture;
	bool defer_symbols;
	bool no_debuginfod;
	bool no_source; /* neither recorded nor exported */
	bool cost;
	bool cpu_graph;
	bool json;
	const char *json_summary; /* where the report is written as JSON besides; NULL = nowhere */
	const char *function;	  /* report: of whose waits alone; NULL = all */
	bool critical_path;	  /* report: nothing else */
	pid_t critical_tid; /* the thread at whose end the critical path ends; 0 = the command's */
	const char *viewer; /* open: URL, or a folder that is served, too; NULL = the public one */
	uint16_t first_port, last_port; /* open: the first free one of these */
	uint64_t silence_ns;		/* open: ends after so long without a request; 0 = never */
	bool no_browser;		/* open: only print the URL */
	const char *unwind; /* doctor: of what the unwind tables are asked; NULL = not */
	bool as_root;
} Options;

/*
 * Reads the command line; also sets log_level. Returns 0, or a negative errno after
 * saying what is wrong.
 */
int options_parse(int argc, char **argv, Options *ret_options);

/* Whether an export is written to stdout: `-o -`. */
bool options_to_stdout(const Options *options);

void options_print_help(void);

#endif
