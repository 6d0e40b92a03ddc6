/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stack_spans.h"
#include "recording_cost.h"
#include "tick_weights.h"
#include "wait_fields.h"

/* A walk through the intervals of a thread. */
typedef struct SpanWalk {
	StackTable *tables;
	const Thread *thread;
	StackSpanVisitor visit;
	void *user;
	TickEnd tick_end;
	size_t tick; /* the next one */
} SpanWalk;

uint32_t stack_spans_recording(StackTable *tables)
{
	const StackRef ref = {
		.user_stack = STACK_NONE, .kernel_stack = STACK_NONE, .leaf = LEAF_RECORDING};

	return stack_table_stack(tables, &ref);
}

enum thread_state stack_span_state(const Thread *thread, const StackSpan *span)
{
	return thread->intervals.items[span->interval].state;
}

static void show_wait(const SpanWalk *walk, size_t i)
{
	StackRef ref = wait_stack(walk->tables->timeline, walk->thread, i);
	StackSpan span = {.start_ns = walk->thread->intervals.items[i].start_ns,
			  .end_ns = interval_end(walk->thread, i),
			  .interval = i,
			  .stack = stack_table_stack(walk->tables, &ref)};

	walk->visit(walk->user, walk->thread, &span);
}

/* tick is the one that stands for the span; NULL: the switch-out that ends the interval does. */
static void show_running(const SpanWalk *walk, size_t i, const Tick *tick, uint64_t start,
			 uint64_t end)
{
	const Timeline *timeline = walk->tables->timeline;
	StackSpan span = {.start_ns = start, .end_ns = end, .interval = i};
	StackRef ref;

	if (end <= start)
		return;
	ref = tick ? tick_stack(timeline, walk->thread, tick)
		   : wait_switch_out_stack(timeline, walk->thread, i);
	span.stack = stack_table_stack(walk->tables, &ref);
	span.recording_ns =
		MIN((uint64_t)(recording_cost_share(timeline, tick) * (end - start)), end - start);
	walk->visit(walk->user, walk->thread, &span);
}

static void walk_running(SpanWalk *walk, size_t i, bool hidden)
{
	const Pieces pieces = tick_pieces_begin(walk->thread, &walk->tick_end, walk->tick, i);
	uint64_t from = pieces.start;

	walk->tick = pieces.ticks_end;
	if (hidden)
		return;
	for (size_t k = pieces.tick; k < pieces.ticks_end; k++) {
		show_running(walk, i, &pieces.ticks[k], from, pieces.ticks[k].ns);
		from = MAX(from, pieces.ticks[k].ns);
	}
	show_running(walk, i, pieces.rest, from, pieces.end);
}

void stack_spans_walk(StackTable *tables, const Thread *thread, uint32_t hidden,
		      StackSpanVisitor visit, void *user)
{
	SpanWalk walk = {
		.tables = tables,
		.thread = thread,
		.visit = visit,
		.user = user,
		.tick_end = tick_end_of(thread),
	};

	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *interval = &thread->intervals.items[i];
		bool is_hidden = hidden >> interval->state & 1;

		if (interval_end(thread, i) <= interval->start_ns)
			continue;
		if (interval->state == STATE_RUNNING)
			walk_running(&walk, i, is_hidden);
		else if (!is_hidden)
			show_wait(&walk, i);
	}
}
