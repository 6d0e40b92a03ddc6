/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record_options.h - what a recording is asked for.
 */
#ifndef WALLPROF_RECORD_OPTIONS_H
#define WALLPROF_RECORD_OPTIONS_H

#include "maps.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define DELAY_SIGNAL UINT64_MAX

typedef struct RecordOptions {
	char **command; /* NULL-terminated; NULL = attach. Beside whole_system: how long */
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
	uint64_t unwind_memory;	     /* bytes: whole chunks (table_memory.h) */
	int capture_compression;     /* level of the capture's (zstd), in so many threads */
	unsigned int capture_threads;
	bool defer_symbols;
	bool no_debuginfod;
	bool no_source;
	bool cost; /* is measured and printed */
} RecordOptions;

#endif
