/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpus.h - what happens to the CPUs during a recording: whether they go offline, and which are
 * idle.
 */
#ifndef WALLPROF_CPUS_H
#define WALLPROF_CPUS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Detects that CPUs go offline or come online. Suspending a machine to memory also takes all CPUs
 * but one offline, but they are back before the recorder runs again: see suspends.h.
 *
 * Events are opened on each CPU that is online at the start. The kernel removes them from a CPU
 * that goes offline, does not restore them when it comes back (__perf_event_exit_context()), and
 * does not report either. sideband_reopen() opens them again. Switches and wakeups come from
 * tracepoints, which work on every CPU.
 */
typedef struct OnlineCpus OnlineCpus;

/* Returns NULL if the kernel does not provide the list. */
OnlineCpus *online_cpus_open(void);

/*
 * Is called now and then. Returns whether the list has changed; a change that is undone between two
 * calls is not noticed.
 */
bool online_cpus_check(OnlineCpus *cpus);

/* Returns how often the list differed from the previous check. */
uint64_t online_cpus_changes(const OnlineCpus *cpus);

void online_cpus_close(OnlineCpus *cpus);

/*
 * Finds which CPUs were idle in a recording of the whole system, by the kernel's own accounts
 * (/proc/stat).
 *
 * A CPU on which no task was switched to had one task all the time, or none. Ticks and snapshots
 * show that a recorded task had it; only these accounts show that no task had it.
 */
typedef struct IdleCpus IdleCpus;

/* Reads the accounts before the window begins. Returns NULL if the kernel does not provide them. */
IdleCpus *idle_cpus_begin(void);

/* Reads them when the window has ended. */
void idle_cpus_end(IdleCpus *cpus);

/*
 * Returns the CPUs that were idle in a window of this length, "0,3" or "": those that were idle for
 * longer than the part between both readings that lies outside of the window. The window must lie
 * between them. cpus may be NULL. The caller frees the text.
 */
char *idle_cpus_list(const IdleCpus *cpus, uint64_t window_ns);

void idle_cpus_close(IdleCpus *cpus);

#endif
