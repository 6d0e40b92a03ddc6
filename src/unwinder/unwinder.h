/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwinder.h - the user-space side of the walk in BPF: it follows what the processes map, has
 * tables made, and publishes both.
 */
#ifndef WALLPROF_UNWINDER_H
#define WALLPROF_UNWINDER_H

#include "histogram.h"
#include "sleepers.h"
#include "stack_copies.h"

typedef struct Unwinder Unwinder;

typedef struct UnwinderCounts {
	TableRegistryCounts tables;
	TableMemoryCounts memory;
	StackCopiesCounts copies;
	struct unwind_counts troubles;
	uint64_t published;	 /* mappings of processes, every change counted */
	uint64_t publish_failed; /* processes, or their mappings, for which there was no room */
	uint64_t corrected; /* execs that the side-band did not report: the mappings are unknown */
	const Histogram *delays; /* the time from an mmap to its publication with a table */
} UnwinderCounts;

/* Returns 0 or a negative errno. maps is copied; files, its fds and processes must outlive this. */
int unwinder_new(const UnwindMaps *maps, MappedFiles *files, const ProcessTable *processes,
		 const Invoker *invoker, RecordSink sink, void *user, Unwinder **ret_unwinder);
void unwinder_free(Unwinder *unwinder);

/* Uses the records of BPF and of the side-band, and their losses; ignores others. */
void unwinder_on_record(Unwinder *unwinder, const struct record *record);

/*
 * From now on interpreters is informed of what processes map, and sleepers of threads that sleep;
 * both must outlive this.
 */
void unwinder_follow(Unwinder *unwinder, Interpreters *interpreters, Sleepers *sleepers);

/* Requests the table of a file that is about to be mapped. */
void unwinder_expect(Unwinder *unwinder, uint32_t file);

/*
 * Call after each drain: publishes what has changed and walks the copies that can be walked.
 * watermark_ns: all that was mapped before is in the unwinder. Returns 0 or the sink's error.
 */
int unwinder_round(Unwinder *unwinder, uint64_t watermark_ns);
/* Does the last round. */
int unwinder_finish(Unwinder *unwinder);

/*
 * Gives the next process whose side-band records the last round found incomplete: its mappings are
 * to be read again. Returns false if there is no more.
 */
bool unwinder_next_unknown(Unwinder *unwinder, uint32_t *ret_ns_tgid);

/* Readable when a round is due because tables have become ready. */
int unwinder_fd(const Unwinder *unwinder);

/* What was mapped before the window is known now: copies of stacks can be walked. */
void unwinder_prepared(Unwinder *unwinder);
/*
 * For use before the window: waits for the requested tables, or for the deadline. Returns whether
 * all are there. The next round publishes them.
 */
bool unwinder_wait(Unwinder *unwinder, uint64_t deadline_ns);

UnwinderCounts unwinder_counts(const Unwinder *unwinder);

#endif
