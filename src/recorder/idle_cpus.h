/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * idle_cpus.h - which CPUs were idle in a recording of the whole system, by the kernel's own
 * accounts (/proc/stat).
 *
 * A CPU on which nothing was switched to had one task all the time, or none. Who is recorded tells
 * by ticks and snapshots that he had it; that nobody did is told by these accounts alone.
 */
#ifndef WALLPROF_IDLE_CPUS_H
#define WALLPROF_IDLE_CPUS_H

#include <stdint.h>

typedef struct IdleCpus IdleCpus;

/* Looks before the window begins. NULL if the kernel does not say. */
IdleCpus *idle_cpus_begin(void);

/* Looks when it has ended. */
void idle_cpus_end(IdleCpus *cpus);

/*
 * "0,3": those that were idle for longer than the two looks lasted outside of a window of that
 * length, which must lie between them: so they were idle in it. To be freed; "": none. NULL may be
 * passed.
 */
char *idle_cpus_list(const IdleCpus *cpus, uint64_t window_ns);

void idle_cpus_close(IdleCpus *cpus);

#endif
