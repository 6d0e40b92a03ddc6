/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * row_plan.c - cuts the intervals of a thread into bands, and estimates how many rows a plan has.
 */
#include "row_plan.h"

/* A wait has a row every 1/100 of it, and none closer than the plan's step. */
#define WAIT_PARTS 100
/*
 * A stretch off the CPU that is this long has so many rows (ROW_LONG_PARTS) that any 5 % of it
 * contain one: to the user a wait is the whole stretch, including the time between wakeup and
 * switch-in.
 */
#define LONG_WAIT_NS (10 * NSEC_PER_MSEC)

uint64_t row_stretch_length(const Thread *thread, size_t i, Stretch *stretch)
{
	const Interval *intervals = thread->intervals.items;

	if (i < stretch->end)
		return stretch->ns;
	stretch->end = i;
	while (stretch->end < thread->intervals.count &&
	       intervals[stretch->end].state != STATE_RUNNING)
		stretch->end++;
	stretch->ns = interval_end(thread, stretch->end - 1) - intervals[i].start_ns;
	return stretch->ns;
}

uint64_t row_wait_parts(uint64_t duration, uint64_t stretch_ns, uint64_t step)
{
	if (step == 0)
		return 1;
	/* Nearly all waits are short, and a division takes longer than all else here. */
	if (duration <= step && stretch_ns < LONG_WAIT_NS)
		return duration > 0;
	step = MAX(duration / WAIT_PARTS, step);
	/* An interval that is long itself must meet this condition by itself, too. */
	if (duration >= LONG_WAIT_NS)
		step = MIN(step, duration / ROW_LONG_PARTS);
	else if (stretch_ns >= LONG_WAIT_NS)
		step = MIN(step, stretch_ns / ROW_LONG_PARTS);
	return duration / step + (duration % step > 0);
}

void row_plan_init(RowPlan *plan, const Timeline *timeline, uint64_t step_ns)
{
	*plan = (RowPlan){.step_ns = step_ns};
	plan->tick_ends = xcalloc(timeline_track_count(timeline), sizeof(*plan->tick_ends));
	for (size_t i = 0; i < timeline_track_count(timeline); i++)
		plan->tick_ends[i] = tick_end_of(timeline_track(timeline, i));
}

void row_plan_free(RowPlan *plan)
{
	free(plan->tick_ends);
	plan->tick_ends = NULL;
	kept_rows_free(&plan->kept);
}

/* Ticks weigh about the same: of one thread either all are folded or none. */
static uint64_t estimate_ticks(const RowPlan *plan, const Thread *thread, size_t number)
{
	uint64_t ticks = thread->ticks.count, running = plan->tick_ends[number].running_ns;

	if (ticks == 0 || plan->fold_ns == 0 || running / ticks >= plan->fold_ns)
		return ticks;
	return running / plan->fold_ns;
}

/* Returns for how many of the values of fold_ns, from ROW_SHORT_NS on, the band is not folded. */
static size_t fold_level(uint64_t duration)
{
	uint64_t fits = duration / ROW_SHORT_NS;
	size_t level = fits ? 64 - __builtin_clzll(fits) : 0;

	return MIN(level, (size_t)FOLD_LEVELS - 1);
}

static BandCount *count_band(RowPlan *plan, uint64_t duration)
{
	BandCount *count = &plan->bands[fold_level(duration)];

	count->bands++;
	count->ns += duration;
	return count;
}

/* Counts the bands of a thread's intervals, and the fillers in them. */
static void count_intervals(RowPlan *plan, const Thread *thread, size_t number)
{
	Stretch stretch = {};
	size_t tick = 0;

	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *interval = &thread->intervals.items[i];
		uint64_t end = interval_end(thread, i), duration = end - interval->start_ns;

		if (end <= interval->start_ns)
			continue;
		if (interval->state != STATE_RUNNING) {
			uint64_t stretch_ns = row_stretch_length(thread, i, &stretch);

			count_band(plan, duration)->fillers +=
				row_wait_parts(duration, stretch_ns, plan->step_ns) - 1;
			continue;
		}
		Piece piece;
		Pieces pieces = tick_pieces_begin(thread, &plan->tick_ends[number], tick, i);
		tick = pieces.ticks_end;
		while (tick_pieces_next(&pieces, &piece))
			count_band(plan, piece.end - piece.start);
	}
}

/* Sets what the plan counts; returns how many rows are fillers. */
static uint64_t add_up(RowPlan *plan, const Timeline *timeline)
{
	size_t unfolded = plan->fold_ns ? fold_level(plan->fold_ns) : 0;
	uint64_t fillers = 0;

	plan->rows = plan->folded = plan->folded_ns = 0;
	for (size_t level = 0; level < FOLD_LEVELS; level++) {
		const BandCount *count = &plan->bands[level];

		if (level < unfolded) {
			plan->folded += count->bands;
			plan->folded_ns += count->ns;
		} else {
			plan->rows += 2 * count->bands;
			fillers += count->fillers;
		}
	}
	for (size_t t = 0; t < timeline_track_count(timeline); t++)
		plan->rows += estimate_ticks(plan, timeline_track(timeline, t), t);
	plan->rows += fillers;
	if (plan->fold_ns > 0)
		plan->rows += 2 * (plan->folded_ns / plan->fold_ns);
	return fillers;
}

uint64_t row_plan_estimate(RowPlan *plan, const Timeline *timeline)
{
	memset(plan->bands, 0, sizeof(plan->bands));
	for (size_t t = 0; t < timeline_track_count(timeline); t++)
		count_intervals(plan, timeline_track(timeline, t), t);
	return add_up(plan, timeline);
}

void row_plan_fold(RowPlan *plan, const Timeline *timeline, uint64_t fold_ns)
{
	plan->fold_ns = fold_ns;
	add_up(plan, timeline);
}
