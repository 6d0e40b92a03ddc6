/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * idle_cpus.h - which CPUs were idle in a recording of the whole system, by the kernel's own
 * accounts (/proc/stat).
 *
 * A CPU on which no task was switched to had one task all the time, or none. Ticks and snapshots
 * show that a recorded task had it; only these accounts show that no task had it.
 */
#ifndef WALLPROF_IDLE_CPUS_H
#define WALLPROF_IDLE_CPUS_H

#include <stdint.h>

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
