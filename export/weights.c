/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "weights.h"
#include "firefox_rows_private.h"

/* A walk through a thread's running time, interval by interval. */
typedef struct Weighing {
	const Thread *thread;
	const struct TickEnd *tick_end;
	WeightVisitor visit;
	void *user;
	size_t tick;	     /* the next one */
	uint64_t running_ns; /* before the interval */
	uint64_t weighed_ns; /* up to the last tick */
} Weighing;

static void weigh_interval(Weighing *weighing, size_t i)
{
	const Thread *thread = weighing->thread;
	const Pieces pieces = pieces_begin(thread, weighing->tick_end, weighing->tick, i);

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

void weights_visit(const Timeline *timeline, WeightVisitor visit, void *user)
{
	RowPlan plan;

	row_plan_init(&plan, timeline, 0);
	for (size_t t = 0; t < timeline->threads.count; t++) {
		Weighing weighing = {.thread = &timeline->threads.items[t],
				     .tick_end = &plan.tick_ends[t],
				     .visit = visit,
				     .user = user};

		for (size_t i = 0; i < weighing.thread->intervals.count; i++) {
			const Interval *interval = &weighing.thread->intervals.items[i];

			if (interval->state == STATE_RUNNING &&
			    interval_end(weighing.thread, i) > interval->start_ns)
				weigh_interval(&weighing, i);
		}
	}
	row_plan_free(&plan);
}
