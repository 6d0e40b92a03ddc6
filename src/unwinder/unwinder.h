/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwinder.h - what a recording does for the walk in BPF: follows what the processes map, has
 * tables made, and publishes both.
 */
#ifndef WALLPROF_UNWINDER_H
#define WALLPROF_UNWINDER_H

#include "histogram.h"
#include "stack_copies.h"

typedef struct Unwinder Unwinder;

typedef struct UnwinderCounts {
	TableRegistryCounts tables;
	TableMemoryCounts memory;
	StackCopiesCounts copies;
	struct unwind_counts troubles;
	uint64_t published;	 /* processes' mappings, every change counted */
	uint64_t publish_failed; /* processes or their mappings that found no room */
	uint64_t corrected;	 /* execs that the side-band did not tell: mappings unknown */
	const Histogram *delays; /* from being mapped to being published with a table */
} UnwinderCounts;

/* Returns 0 or a negative errno. maps is copied; files and its fds must outlive this. */
int unwinder_new(const UnwindMaps *maps, MappedFiles *files, const Invoker *invoker,
		 RecordSink sink, void *user, Unwinder **ret_unwinder);
void unwinder_free(Unwinder *unwinder);

/* Takes every record of BPF and of the side-band, and its losses; others are ignored. */
void unwinder_on_record(Unwinder *unwinder, const struct record *record);

/* A file is about to be mapped: its table is made before it is. */
void unwinder_expect(Unwinder *unwinder, uint32_t file);

/*
 * After a round: publishes what has changed and walks what can be walked. watermark_ns: all that
 * was mapped before has been taken. Returns 0 or the sink's error.
 */
int unwinder_round(Unwinder *unwinder, uint64_t watermark_ns);
/* The same for the last time. */
int unwinder_finish(Unwinder *unwinder);

/*
 * A process of which the last round found that the side-band has told too little: what it maps is
 * to be read again. Returns false if there is no more.
 */
bool unwinder_next_unknown(Unwinder *unwinder, uint32_t *ret_ns_tgid);

/* Readable when a round is due, for tables that have become ready. */
int unwinder_fd(const Unwinder *unwinder);

/* What was mapped before the window is known now: copies of stacks can be walked. */
void unwinder_prepared(Unwinder *unwinder);
/*
 * Before the window begins: waits for the tables that are wanted, or until the deadline. Returns
 * whether all are there. A round publishes them.
 */
bool unwinder_wait(Unwinder *unwinder, uint64_t deadline_ns);

UnwinderCounts unwinder_counts(const Unwinder *unwinder);

#endif
