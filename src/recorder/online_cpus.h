/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * online_cpus.h - detects that CPUs go offline or come online during a recording. (Suspending a
 * machine also takes all CPUs but one offline.)
 *
 * Events are opened on each CPU that is online at the start. The kernel removes them from a CPU
 * that goes offline, does not restore them when it comes back (__perf_event_exit_context()), and
 * does not report either. Switches and wakeups come from tracepoints, which work on every CPU.
 */
#ifndef WALLPROF_ONLINE_CPUS_H
#define WALLPROF_ONLINE_CPUS_H

#include <stdint.h>

typedef struct OnlineCpus OnlineCpus;

/* Returns NULL if the kernel does not provide the list. */
OnlineCpus *online_cpus_open(void);

/* Is called now and then. A change that is undone between two calls is not noticed. */
void online_cpus_check(OnlineCpus *cpus);

/* Returns how often the list differed from the previous check. */
uint64_t online_cpus_changes(const OnlineCpus *cpus);

void online_cpus_close(OnlineCpus *cpus);

#endif
