/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tick_rate.h - how many sampling ticks a second each CPU has if the user gives no frequency.
 *
 * A tick takes an interrupt and the time of on_tick from its CPU. On real hardware the interrupt is
 * 1 to 2 us; some virtual machines have to leave the guest for it, which takes 20 to 40 us, more
 * than all programs together. A short recording needs every sample that it can get, a long one has
 * enough. So ticks begin at the highest rate, and after TICK_RATE_FULL_NS they are as many as cost
 * no more than a share of a CPU.
 */
#ifndef WALLPROF_TICK_RATE_H
#define WALLPROF_TICK_RATE_H

#include <stdint.h>

/* The highest rate: slightly off 1000, so that ticks do not coincide with periodic work. */
#define TICK_RATE_FIRST	  999
#define TICK_RATE_FULL_NS 2000000000ULL
/* The share of a CPU without --budget, and the part of a budget with it. */
#define TICK_RATE_SHARE	       0.01
#define TICK_RATE_BUDGET_SHARE 0.5

/*
 * Returns the highest rate, in ticks a second, at which ticks of tick_ns each take at most this
 * share of a CPU; or the lowest rate, if that takes more, too.
 */
unsigned int tick_rate_choose(double share, double tick_ns);

#endif
