/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tick_rates.h - how often sampling ticks interrupted each CPU, and what their interrupts cost, as
 * the recorder wrote it (META frequency, frequency_changes, frequency_share, tick_interrupt_ns,
 * ticks).
 *
 * The rate may change during a recording, so nothing may count ticks in order to estimate time: a
 * tick stands for the running time since the one before (tick_weights.h).
 */
#ifndef WALLPROF_TICK_RATES_H
#define WALLPROF_TICK_RATES_H

#include "timeline.h"

#define TICK_RATES_MOST 8

typedef struct TickRate {
	uint64_t from_ns; /* CLOCK_MONOTONIC; 0: since the ticks started */
	uint64_t hz;	  /* ticks a second on each CPU */
} TickRate;

typedef struct TickRates {
	TickRate list[TICK_RATES_MOST]; /* in order of time */
	size_t count;			/* 0: the capture does not say it */
	double share; /* the share of a CPU that the recorder let them take; 0: the user has
			 chosen the rate */
	uint64_t interrupt_ns; /* what an interrupt took, without the program; 0: not known */
	uint64_t ticks;	       /* interrupts on all CPUs during the recording; 0: not known */
} TickRates;

TickRates tick_rates_of(const Timeline *timeline);

/* Returns the highest rate in the window, in ticks a second; 0: not known. */
uint64_t tick_rates_highest(const TickRates *rates, const Timeline *timeline);

/*
 * Returns the time that ticks' interrupts took from the running time of the timeline's threads, in
 * ns; 0 if it is not known.
 */
uint64_t tick_rates_interrupts_ns(const TickRates *rates, const Timeline *timeline);

#endif
