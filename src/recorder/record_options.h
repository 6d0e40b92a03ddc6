/* SPDX-License-Identifier: GPL-2.0-or-later */
/* record_options.h - the options of a recording. */
#ifndef WALLPROF_RECORD_OPTIONS_H
#define WALLPROF_RECORD_OPTIONS_H

#include "maps.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define DELAY_SIGNAL UINT64_MAX

typedef struct RecordOptions {
	char **command; /* NULL-terminated; NULL = attach. With whole_system it only sets the
			   duration. */
	pid_t *pids;
	size_t pid_count;
	pid_t *tids; /* without the other threads of their processes */
	size_t tid_count;
	bool whole_system;
	bool kernel_threads;	/* in addition to the other targets */
	const char *cgroup;	/* NULL = none */
	uint64_t duration_ns;	/* 0 = until the command ends or a signal */
	uint64_t flight_ns;	/* the length of what is kept; 0 = everything */
	uint64_t delay_ns;	/* before the window begins; DELAY_SIGNAL: until SIGUSR1 */
	unsigned int frequency; /* sampling ticks a second; with adapt_frequency at first */
	bool adapt_frequency;	/* later as many as cost little: tick_rate.h */
	uint64_t ring_size;	/* a power of two; 0 = by the number of CPUs */
	unsigned int ring_cpus; /* CPUs that share ring buffers; 0 = by the number of CPUs */
	enum kernel_stacks kernel_stacks;
	enum user_stacks user_stacks;
	bool best_fault_source; /* otherwise fault_source is used */
	enum fault_source fault_source;
	uint64_t fault_threshold_ns; /* or FAULT_THRESHOLD_NONE */
	uint64_t waker_threshold_ns; /* or WAKER_THRESHOLD_NONE */
	uint64_t unwind_memory;	     /* bytes, in whole chunks (table_memory.h) */
	int capture_compression;     /* zstd level of the capture, in capture_threads threads */
	unsigned int capture_threads;
	bool defer_symbols;
	bool no_debuginfod;
	bool no_source;
	bool no_args;	/* argument lists are not recorded */
	bool all_files; /* also the names of files that only kernel threads have requests for */
	bool cost;	/* measure and print the cost of recording */
	double budget;	/* what recording may cost, relative to the running time; 0 = no limit */
} RecordOptions;

#endif
