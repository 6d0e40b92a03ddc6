/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sideband.h - perf's side-band events: executable mappings with build ids, forks and
 * execs of address spaces.
 *
 * One event per CPU for all processes (pid -1): following single tasks by inherit
 * would cost 0.3 us at every context switch. So each event is checked here against
 * the set of targets' process numbers (as seen from our PID namespace).
 */
#ifndef WALLPROF_SIDEBAND_H
#define WALLPROF_SIDEBAND_H

#include "mapped_files.h"

typedef struct Sideband Sideband;

/* Whether this kernel and these privileges allow such events: 0 or a negative errno. */
int sideband_probe(void);

/*
 * Returns 0 or a negative errno (-ENOBUFS: what memory this user may lock for such events is used
 * up). files and sink stay the caller's.
 */
int sideband_open(MappedFiles *files, RecordSink sink, void *user, Sideband **ret_sideband);
void sideband_close(Sideband *sideband);

/* Adds every CPU's descriptor to an epoll set (EPOLLIN with data.fd = the descriptor). */
int sideband_add_to_epoll(Sideband *sideband, int epoll_fd);

/*
 * It lived at that time, and its mappings are wanted. Returns true if it was not known before, nor
 * ended after that time.
 */
bool sideband_add_process(Sideband *sideband, uint32_t ns_tgid, uint64_t ns);

/* It ended at that time. Its events are taken still, but it is not read again. */
void sideband_end_process(Sideband *sideband, uint32_t ns_tgid, uint64_t ns);

/*
 * What it maps is read from /proc again, soon. Its mappings were told in part only. So it is with
 * all processes after events were lost: as soon as all is taken that was told while they were. Who
 * waits longest comes first, for 5 ms a round.
 */
void sideband_rescan(Sideband *sideband, uint32_t ns_tgid);

/*
 * Reading is in two steps, so that the BPF rings can be drained in between: a child's
 * REC_TASK is older than its first mapping, so what was fetched before a drain
 * can be judged after it. Events that are so young that an older one may still come from another
 * CPU are kept for the next time, if this is not the last. All records of mappings come in the
 * order of their times. Returns 0 or a negative errno.
 */
void sideband_fetch(Sideband *sideband);
int sideband_process(Sideband *sideband, bool last);

/* What happened up to this time (CLOCK_MONOTONIC) has been processed. */
uint64_t sideband_watermark_ns(const Sideband *sideband);

/* Nothing older will be found by reading what was lost. */
uint64_t sideband_rescan_watermark_ns(const Sideband *sideband);

/*
 * After so long (ns), as it was after the last sideband_process(), it is time for the next: a
 * process that is wanted has events that were kept, or is to be read again. 0 = none has or is.
 */
uint64_t sideband_wait_ns(const Sideband *sideband);

/* Processes that are still to be read again. */
size_t sideband_unread(const Sideband *sideband);

/* Events that came too late for what sideband_watermark_ns() had said. */
uint64_t sideband_late(const Sideband *sideband);

#endif
