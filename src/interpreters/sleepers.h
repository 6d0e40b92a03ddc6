/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sleepers.h - the script frames of threads that sleep when a snapshot is taken: when a recording
 * begins, and with --budget also later. No event of theirs brings them to the programs of
 * bpf/scripts, so the recorder reads them from their process's memory, by the same code
 * (python_reader.h), while they sleep. The export leaves out what was read of a thread that ran
 * meanwhile.
 */
#ifndef WALLPROF_SLEEPERS_H
#define WALLPROF_SLEEPERS_H

#include "interpreters.h"
#include "maps.h"

typedef struct Sleepers Sleepers;

/*
 * interpreters and memory must outlive it. It sends REC_SCRIPT_CODE and REC_SCRIPT_STACK to the
 * sink.
 */
Sleepers *sleepers_new(const Interpreters *interpreters, RemoteMemory *memory, RecordSink sink,
		       void *user);
void sleepers_free(Sleepers *sleepers);

/* Notes the thread of the copy, if it sleeps. */
void sleepers_add(Sleepers *sleepers, const struct rec_stack_copy *copy);

/*
 * Reads the frames of threads of processes that are known to run an interpreter, one after the
 * other up to the deadline. The others wait for the next call, up to SLEEPERS_KEPT_NS. Returns 0 or
 * the sink's error.
 */
int sleepers_read(Sleepers *sleepers, uint64_t deadline_ns);

/* Returns how many threads of interpreters were not read, because it took too long. */
uint64_t sleepers_unread(const Sleepers *sleepers);
/* Returns how many were not, because memory of their process is not read any more. */
uint64_t sleepers_refused(const Sleepers *sleepers);

/* What a process maps is known by then. */
#define SLEEPERS_KEPT_NS (30 * NSEC_PER_SEC)

#endif
