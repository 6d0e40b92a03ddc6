/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * firefox_plan.c - into what bands the intervals of a thread are cut, and how densely
 * rows can be laid in them within the budget.
 */
#include "firefox_rows_private.h"

/* A wait has a row every 1/100 of it, and none closer than the plan's step; */
#define WAIT_PARTS 100
/*
 * but in a stretch off the CPU that is so long always so many that any 5 % of it hold one: a
 * user's wait is the whole stretch, the time between waking and running included.
 */
#define LONG_WAIT_NS (10 * NSEC_PER_MSEC)
#define LONG_PARTS   25

uint64_t stretch_length(const Thread *thread, size_t i, Stretch *stretch)
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

uint64_t wait_parts(uint64_t duration, uint64_t stretch_ns, uint64_t step)
{
	if (step == 0)
		return 1;
	step = MAX(duration / WAIT_PARTS, step);
	/* An interval that is long itself must hold for itself, too. */
	if (duration >= LONG_WAIT_NS)
		step = MIN(step, duration / LONG_PARTS);
	else if (stretch_ns >= LONG_WAIT_NS)
		step = MIN(step, stretch_ns / LONG_PARTS);
	return duration / step + (duration % step > 0);
}

/* The ticks inside [start, end): *ret_first to the one returned, from where to go on. */
static size_t ticks_inside(const Thread *thread, size_t tick, uint64_t start, uint64_t end,
			   size_t *ret_first)
{
	while (tick < thread->ticks.count && thread->ticks.items[tick].ns < start)
		tick++;
	*ret_first = tick;
	while (tick < thread->ticks.count && thread->ticks.items[tick].ns >= start &&
	       thread->ticks.items[tick].ns < end)
		tick++;
	return tick;
}

Pieces pieces_begin(const Thread *thread, const struct TickEnd *tick_end, size_t tick, size_t i)
{
	Pieces pieces = {.start = thread->intervals.items[i].start_ns,
			 .end = interval_end(thread, i),
			 .ticks = thread->ticks.items};

	pieces.ticks_end = ticks_inside(thread, tick, pieces.start, pieces.end, &pieces.tick);
	if (tick_end->last_tick != SIZE_MAX)
		pieces.rest = &pieces.ticks[MIN(pieces.ticks_end, tick_end->last_tick)];
	return pieces;
}

/* Ticks of one stretch are painted alike. */
static bool is_alike(const Tick *a, const Tick *b)
{
	return a->user_mode == b->user_mode && a->recording == b->recording;
}

bool pieces_next(Pieces *pieces, Piece *ret_piece)
{
	Piece piece = {.start = pieces->start,
		       .end = pieces->end,
		       .first = pieces->tick,
		       .last = pieces->tick,
		       .rest = pieces->rest};
	const Tick *mode =
		piece.first < pieces->ticks_end ? &pieces->ticks[piece.first] : piece.rest;

	if (pieces->start >= pieces->end)
		return false;
	while (piece.last < pieces->ticks_end && is_alike(&pieces->ticks[piece.last], mode))
		piece.last++;
	if (piece.last < pieces->ticks_end || (mode && !is_alike(mode, piece.rest)))
		piece.end = MAX(pieces->ticks[piece.last - 1].ns, piece.start);
	pieces->tick = piece.last;
	pieces->start = piece.end;
	*ret_piece = piece;
	return true;
}

/* ---- the plan --------------------------------------------------------------- */

static struct TickEnd find_tick_end(const Thread *thread)
{
	struct TickEnd found = {.last_tick = SIZE_MAX};
	size_t tick = 0, first;

	for (size_t i = 0; i < thread->intervals.count; i++) {
		uint64_t start = thread->intervals.items[i].start_ns, end = interval_end(thread, i);

		if (thread->intervals.items[i].state != STATE_RUNNING || end <= start)
			continue;
		found.running_ns += end - start;
		tick = ticks_inside(thread, tick, start, end, &first);
		if (tick > first)
			found.last_tick = tick - 1;
	}
	return found;
}

void row_plan_init(RowPlan *plan, const Timeline *timeline, uint64_t step_ns)
{
	*plan = (RowPlan){.step_ns = step_ns};
	plan->tick_ends = xcalloc(timeline_strips(timeline), sizeof(*plan->tick_ends));
	for (size_t i = 0; i < timeline_strips(timeline); i++)
		plan->tick_ends[i] = find_tick_end(timeline_strip(timeline, i));
}

void row_plan_free(RowPlan *plan)
{
	free(plan->tick_ends);
	plan->tick_ends = NULL;
}

/* Ticks weigh about the same: either all of a thread's are folded or none. */
static uint64_t estimate_ticks(const RowPlan *plan, const Thread *thread, size_t number)
{
	uint64_t ticks = thread->ticks.count, running = plan->tick_ends[number].running_ns;

	if (ticks == 0 || plan->fold_ns == 0 || running / ticks >= plan->fold_ns)
		return ticks;
	return running / plan->fold_ns;
}

static bool estimate_band(RowPlan *plan, uint64_t duration)
{
	if (duration >= plan->fold_ns) {
		plan->rows += 2;
		return true;
	}
	plan->folded++;
	plan->folded_ns += duration;
	return false;
}

/* Adds up the rows of a thread's intervals, but for fillers, which it returns, and ticks. */
static uint64_t estimate_intervals(RowPlan *plan, const Thread *thread, size_t number)
{
	uint64_t fillers = 0;
	Stretch stretch = {};
	size_t tick = 0;

	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *interval = &thread->intervals.items[i];
		uint64_t end = interval_end(thread, i), duration = end - interval->start_ns;

		if (end <= interval->start_ns)
			continue;
		if (interval->state != STATE_RUNNING) {
			uint64_t stretch_ns = stretch_length(thread, i, &stretch);

			if (estimate_band(plan, duration))
				fillers += wait_parts(duration, stretch_ns, plan->step_ns) - 1;
			continue;
		}
		Piece piece;
		Pieces pieces = pieces_begin(thread, &plan->tick_ends[number], tick, i);
		tick = pieces.ticks_end;
		while (pieces_next(&pieces, &piece))
			estimate_band(plan, piece.end - piece.start);
	}
	return fillers;
}

/* Counts rows under the plan; returns how many of them are fillers. */
static uint64_t estimate(RowPlan *plan, const Timeline *timeline)
{
	uint64_t fillers = 0;

	plan->rows = plan->folded = plan->folded_ns = 0;
	for (size_t t = 0; t < timeline_strips(timeline); t++) {
		const Thread *thread = timeline_strip(timeline, t);

		plan->rows += estimate_ticks(plan, thread, t);
		fillers += estimate_intervals(plan, thread, t);
	}
	plan->rows += fillers;
	if (plan->fold_ns > 0)
		plan->rows += 2 * (plan->folded_ns / plan->fold_ns);
	return fillers;
}

static void count_row(void *user, const Row *row)
{
	(void)row;
	++*(uint64_t *)user;
}

static uint64_t count_rows(Tables *tables, const RowPlan *plan)
{
	const Timeline *timeline = tables_timeline(tables);
	uint64_t rows = 0;

	for (size_t i = 0; i < timeline_strips(timeline); i++)
		rows_walk(tables, plan, i, false, count_row, &rows);
	return rows;
}

/*
 * First fillers go, until they are few or only those of long waits are left;
 * then short intervals are folded, at a limit that doubles.
 */
void row_plan_fit(RowPlan *plan, Tables *tables, uint64_t budget)
{
	const Timeline *timeline = tables_timeline(tables);
	uint64_t window = timeline->end_ns - timeline->start_ns;
	uint64_t fillers = estimate(plan, timeline);

	while (plan->rows > budget && fillers > budget / 10 &&
	       plan->step_ns < window / LONG_PARTS) {
		plan->step_ns *= 2;
		fillers = estimate(plan, timeline);
	}
	while (plan->rows > budget && plan->fold_ns < window) {
		plan->fold_ns = plan->fold_ns ? plan->fold_ns * 2 : ROW_SHORT_NS;
		estimate(plan, timeline);
		/* The estimate leaves out what each stack has left at a thread's end. */
		if (plan->rows <= budget)
			plan->rows = count_rows(tables, plan);
	}
}
