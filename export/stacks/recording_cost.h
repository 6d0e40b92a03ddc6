/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recording_cost.h - what recording itself cost, as a function of its own: "[recording]".
 *
 * Wallprof's BPF programs measure their own time, and each switch records what they took of the run
 * that it ends (Thread::recording). Ticks show that time elsewhere: most programs run with
 * interrupts off, and a tick that falls due meanwhile hits where they are enabled again, in
 * finish_task_switch() or _raw_spin_unlock_irqrestore(). So "[recording]" gets the share of such
 * ticks' time that is equal to the measured time. Ticks inside of wallprof's own programs come
 * first, and if all of these are too few, as in a short recording, every tick gives a little. So
 * "[recording]" in sum is what was measured, to the nanosecond or so; its distribution over threads
 * is as exact as samples are.
 */
#ifndef WALLPROF_RECORDING_COST_H
#define WALLPROF_RECORDING_COST_H

#include "frames.h"
#include "timeline.h"

#define RECORDING_FUNCTION "[recording]"

/* Fills in Tick::recording and Timeline::recording_shares, once the threads are final. */
void recording_cost_find(Timeline *timeline, Frames *frames);

/* Recording's share of the time that a tick stands for; tick is NULL for a switch-out. */
static inline double recording_cost_share(const Timeline *timeline, const Tick *tick)
{
	return timeline->recording_shares[tick ? tick->recording : RECORDING_ELSEWHERE];
}

/* Whether most of the time that a tick stands for is recording's. */
static inline bool recording_cost_struck(const Timeline *timeline, const Tick *tick)
{
	return recording_cost_share(timeline, tick) > 0.5;
}

/* What recording cost the threads, and how long these ran; both in ns. */
typedef struct RecordingSum {
	uint64_t recording_ns, running_ns;
} RecordingSum;

RecordingSum recording_cost_sum(const Timeline *timeline);

/*
 * "recording took 12.3 ms of the running time, 1.2 %", and a warning from 5 % on; to be freed.
 * NULL: that is not known, or nothing ran.
 */
char *recording_cost_text(const Timeline *timeline);

#endif
