/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * online_cpus.h - whether other CPUs are online than when the recording began (suspending a machine
 * takes all but one offline, too).
 *
 * Events are opened on each CPU that is online then. The kernel takes them off a CPU that goes
 * offline, and does not bring them back with it (__perf_event_exit_context()), nor says so to who
 * holds them. Switches and wake-ups are told by tracepoints, which are everywhere.
 */
#ifndef WALLPROF_ONLINE_CPUS_H
#define WALLPROF_ONLINE_CPUS_H

#include <stdint.h>

typedef struct OnlineCpus OnlineCpus;

/* NULL if the kernel does not say. */
OnlineCpus *online_cpus_open(void);

/* To be called now and then; a change that is undone in between is not seen. */
void online_cpus_check(OnlineCpus *cpus);

/* How often there were others than at the look before. */
uint64_t online_cpus_changes(const OnlineCpus *cpus);

void online_cpus_close(OnlineCpus *cpus);

#endif
