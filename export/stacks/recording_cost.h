/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recording_cost.h - the cost of recording, as a function of its own: "[recording]".
 *
 * wallprof's BPF programs measure their own time, and each switch records their time in the run
 * that it ends (Thread::recording). Ticks show that time elsewhere: most programs run with
 * interrupts off, and a tick that is due meanwhile hits where they are enabled again, in
 * finish_task_switch() or _raw_spin_unlock_irqrestore(). So "[recording]" gets the share of such
 * ticks' time that is equal to the measured time. Ticks inside wallprof's own programs come first.
 * If all of these are too few, as in a short recording, every tick gives a part. So "[recording]"
 * in sum is what was measured, to about a nanosecond; its distribution over threads is as exact as
 * samples are.
 */
#ifndef WALLPROF_RECORDING_COST_H
#define WALLPROF_RECORDING_COST_H

#include "frames.h"
#include "timeline.h"

#define RECORDING_FUNCTION "[recording]"

/* Sets Tick::recording and Timeline::recording_shares. To be called when the threads are final. */
void recording_cost_find(Timeline *timeline, Frames *frames);

/* Returns recording's share of the time that a tick stands for; tick is NULL for a switch-out. */
static inline double recording_cost_share(const Timeline *timeline, const Tick *tick)
{
	return timeline->recording_shares[tick ? tick->recording : RECORDING_ELSEWHERE];
}

/* Returns whether most of the time that a tick stands for is recording's. */
static inline bool recording_cost_struck(const Timeline *timeline, const Tick *tick)
{
	return recording_cost_share(timeline, tick) > 0.5;
}

/* The cost of recording in the threads, and their running time; all in ns. */
typedef struct RecordingSum {
	uint64_t recording_ns; /* of the programs: what [recording] has */
	uint64_t
		interrupts_ns; /* of the interrupts of ticks, apart from the programs; 0: unknown */
	uint64_t running_ns;
} RecordingSum;

RecordingSum recording_cost_sum(const Timeline *timeline);

/*
 * Returns "recording cost: 12.3 ms, 1.2 % of running time (8.1 ms: interrupts)"; NULL: it is
 * unknown, or nothing ran. The caller frees it.
 */
char *recording_cost_text(const Timeline *timeline);

#endif
