/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sideband.h - perf's side-band events: executable mappings with build ids, forks and execs of
 * address spaces.
 *
 * There are two events per CPU for all processes (pid -1): to follow single tasks by inherit would
 * cost 0.3 us at every context switch. So each event is checked here against the table of
 * processes. Events of a process that has ended are used, but its mappings are not read again.
 *
 * One event reports mappings, and wakes the recorder at each. The other one reports forks, execs
 * and, because the kernel does not separate them, each birth, end and rename of a thread. Nothing
 * of that is urgent, so it wakes the recorder only before its buffer is full: a program that has a
 * thread for each request would otherwise wake it a thousand times a second.
 */
#ifndef WALLPROF_SIDEBAND_H
#define WALLPROF_SIDEBAND_H

#include "mapped_files.h"
#include "process_table.h"

typedef struct Sideband Sideband;

/* Returns 0 if this kernel and these privileges allow such events, or a negative errno. */
int sideband_probe(void);

/*
 * Returns 0 or a negative errno (-ENOBUFS: the memory that this user may lock for such events is
 * used up). files, processes and sink stay the caller's.
 */
int sideband_open(MappedFiles *files, ProcessTable *processes, RecordSink sink, void *user,
		  Sideband **ret_sideband);
void sideband_close(Sideband *sideband);

/* Adds every CPU's descriptor to an epoll set (EPOLLIN with data.fd = the descriptor). */
int sideband_add_to_epoll(Sideband *sideband, int epoll_fd);

typedef struct ReopenedCpus {
	VEC(uint32_t) cpus; /* that have their events again */
	size_t failed;	    /* CPUs that are online and still have none */
} ReopenedCpus;

/*
 * The kernel removes the events of a CPU that goes offline, also for a suspend, and does not bring
 * them back with the CPU. This opens those that are missing again, adds them to the epoll set (-1 =
 * none), and schedules a reading of all mappings. It takes 10 ms and interrupts each CPU four
 * times, so it is called only if a CPU may have come online. The caller frees ret_cpus->cpus.
 */
void sideband_reopen(Sideband *sideband, int epoll_fd, ReopenedCpus *ret_cpus);

/*
 * The process was alive at that time, and its mappings are wanted. Returns true if it was not known
 * before, or had ended before that time.
 */
bool sideband_add_process(Sideband *sideband, uint32_t ns_tgid, uint64_t ns);

/*
 * Schedules a reading of the process's mappings from /proc, because events of it are missing. After
 * a loss of events this is done for all processes, as soon as all older events are processed. The
 * process that has waited longest comes first; a round spends 5 ms on this.
 */
void sideband_rescan(Sideband *sideband, uint32_t ns_tgid);

/*
 * Events are read in two steps, so that the BPF rings can be drained in between: a child's REC_TASK
 * is older than its first mapping, so events that were fetched before a drain can be judged after
 * it. Events that are so young that an older one may still come from another CPU are kept for the
 * next call, unless this is the last one. All records of mappings come in the order of their times.
 * Returns 0 or a negative errno.
 */
void sideband_fetch(Sideband *sideband);
int sideband_process(Sideband *sideband, bool last);

/* Events up to this time (CLOCK_MONOTONIC) have been processed. */
uint64_t sideband_watermark_ns(const Sideband *sideband);

/* Reading mappings again will add nothing that is older than this. */
uint64_t sideband_rescan_watermark_ns(const Sideband *sideband);

/*
 * sideband_process() should be called again after this time (ns, counted from its last call):
 * events of a wanted process were kept, or its mappings are to be read again. 0 = neither.
 */
uint64_t sideband_wait_ns(const Sideband *sideband);

/*
 * Whether sideband_process() found mappings of a wanted process when it was last called, or
 * sideband_wait_ns() is not 0. If not, what woke the recorder was of no use.
 */
bool sideband_was_of_targets(const Sideband *sideband);

/* The number of processes whose mappings are still to be read again. */
size_t sideband_unread(const Sideband *sideband);

/* The number of events that came later than sideband_watermark_ns() allows. */
uint64_t sideband_late(const Sideband *sideband);

#endif
