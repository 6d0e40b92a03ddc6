/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * interrupt_cost.h - measures what the interrupt of a perf timer takes from a CPU.
 *
 * A loop reads the clock while an event of the CPU's clock, which has neither a buffer nor a
 * program, interrupts it every 100 us. What an interrupt takes is missing between two readings: a
 * gap. On a busy machine other gaps are as frequent, but they come at any time; those of the event
 * begin at nearly the same point of its period. The result is the median of these gaps.
 *
 * The loop runs in slices of a millisecond, so that the caller can do its work between them.
 */
#ifndef WALLPROF_INTERRUPT_COST_H
#define WALLPROF_INTERRUPT_COST_H

#include "util.h"
#include <stdbool.h>
#include <stdint.h>

/* A time between two readings of the clock that is too long for a turn of the loop. */
typedef struct InterruptGap {
	uint32_t begin_ns; /* since the start of the slice */
	uint32_t ns;
} InterruptGap;

typedef struct InterruptCost {
	VEC(uint32_t) interrupts; /* the gaps that are the event's, in ns */
	unsigned int slices;
	uint32_t turn_ns; /* the time of a reading of the clock; 0: not measured yet */
} InterruptCost;

/*
 * Runs the next slice in the calling thread, which takes about a millisecond, on the CPU where it
 * runs. Returns whether the measurement is complete, and then does nothing.
 */
bool interrupt_cost_step(InterruptCost *cost);

/* Adds what a slice has found; interrupt_cost_step() does so. */
void interrupt_cost_add(InterruptCost *cost, const InterruptGap *gaps, size_t count);

/*
 * Returns what an interrupt takes, in ns, once the measurement is complete; 0 if that is not known:
 * the event cannot be opened, or it is not seen in the gaps.
 */
uint64_t interrupt_cost_ns(InterruptCost *cost);

void interrupt_cost_free(InterruptCost *cost);

#endif
