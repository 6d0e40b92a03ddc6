/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tick_weights.h"

/*
 * Finds the ticks in [start, end): from *ret_first to the returned index, where the search
 * continues.
 */
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

Pieces tick_pieces_begin(const Thread *thread, const TickEnd *tick_end, size_t tick, size_t i)
{
	Pieces pieces = {.start = thread->intervals.items[i].start_ns,
			 .end = interval_end(thread, i),
			 .ticks = thread->ticks.items};

	pieces.ticks_end = ticks_inside(thread, tick, pieces.start, pieces.end, &pieces.tick);
	if (tick_end->last_tick != SIZE_MAX)
		pieces.rest = &pieces.ticks[MIN(pieces.ticks_end, tick_end->last_tick)];
	return pieces;
}

/* Ticks of one piece are painted alike. */
static bool is_alike(const Tick *a, const Tick *b)
{
	return a->user_mode == b->user_mode && a->recording == b->recording;
}

bool tick_pieces_next(Pieces *pieces, Piece *ret_piece)
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

TickEnd tick_end_of(const Thread *thread)
{
	TickEnd found = {.last_tick = SIZE_MAX};
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

/* ---- weights ---------------------------------------------------------------------- */

/* A walk through a thread's running time, interval by interval. */
typedef struct Weighing {
	const Thread *thread;
	const TickEnd *tick_end;
	WeightVisitor visit;
	void *user;
	size_t tick;	     /* the next one */
	uint64_t running_ns; /* before the interval */
	uint64_t weighed_ns; /* up to the last tick */
} Weighing;

static void weigh_interval(Weighing *weighing, size_t i)
{
	const Thread *thread = weighing->thread;
	const Pieces pieces = tick_pieces_begin(thread, weighing->tick_end, weighing->tick, i);

	for (size_t k = pieces.tick; k < pieces.ticks_end; k++) {
		uint64_t until = k == weighing->tick_end->last_tick
					 ? weighing->tick_end->running_ns
					 : weighing->running_ns + pieces.ticks[k].ns - pieces.start;

		weighing->visit(weighing->user, thread, i, &pieces.ticks[k],
				until - weighing->weighed_ns);
		weighing->weighed_ns = until;
	}
	if (!pieces.rest)
		weighing->visit(weighing->user, thread, i, NULL, pieces.end - pieces.start);
	weighing->tick = pieces.ticks_end;
	weighing->running_ns += pieces.end - pieces.start;
}

void tick_weights_visit(const Timeline *timeline, WeightVisitor visit, void *user)
{
	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];
		const TickEnd tick_end = tick_end_of(thread);
		Weighing weighing = {
			.thread = thread, .tick_end = &tick_end, .visit = visit, .user = user};

		for (size_t i = 0; i < weighing.thread->intervals.count; i++) {
			const Interval *interval = &weighing.thread->intervals.items[i];

			if (interval->state == STATE_RUNNING &&
			    interval_end(weighing.thread, i) > interval->start_ns)
				weigh_interval(&weighing, i);
		}
	}
}
