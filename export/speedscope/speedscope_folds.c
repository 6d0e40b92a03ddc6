/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "speedscope_folds.h"

#define FOLD_START_NS 1000
/* A piece is at most so many thresholds long. */
#define FOLD_PIECE 16
/* Recording's share of running time is drawn when it is this long: else each tick had two spans. */
#define RECORDING_LEAST_NS (NSEC_PER_MSEC / 2)

static void end_piece(Folds *folds)
{
	uint64_t ns = folds->piece_ns;

	for (size_t i = 0; i < folds->list.count; i++) {
		Drawn drawn = folds->list.items[i];

		drawn.start_ns = ns;
		drawn.end_ns = ns += folds->list.items[i].end_ns;
		folds->visit(folds->user, &drawn);
	}
	if (folds->list.count > 0) {
		folds->list.count = 0;
		map_free(&folds->index);
		folds->index = (Map){};
	}
}

static void fold(Folds *folds, const Drawn *drawn)
{
	uint64_t key = (uint64_t)drawn->stack << 1 | drawn->running;
	uint32_t number;

	if (folds->list.count > 0 &&
	    (drawn->start_ns != folds->end_ns ||
	     drawn->end_ns - folds->piece_ns > FOLD_PIECE * folds->fold_ns))
		end_piece(folds);
	if (folds->list.count == 0)
		folds->piece_ns = drawn->start_ns;
	number = map_get(&folds->index, key);
	if (number == MAP_NONE) {
		number = folds->list.count;
		map_set(&folds->index, key, number);
		*vec_push(&folds->list) = (Drawn){.stack = drawn->stack, .running = drawn->running};
	}
	folds->list.items[number].end_ns += drawn->end_ns - drawn->start_ns;
	folds->end_ns = drawn->end_ns;
}

static void draw(Folds *folds, const Drawn *drawn)
{
	if (drawn->end_ns <= drawn->start_ns)
		return;
	if (drawn->end_ns - drawn->start_ns < folds->fold_ns) {
		fold(folds, drawn);
		return;
	}
	end_piece(folds);
	folds->visit(folds->user, drawn);
}

/* Recording's share is drawn at the beginning of a running span. */
static void draw_span(void *user, const Thread *thread, const StackSpan *span)
{
	Folds *folds = user;
	Drawn drawn = {.start_ns = span->start_ns,
		       .end_ns = span->end_ns,
		       .stack = span->stack,
		       .running = stack_span_state(thread, span) == STATE_RUNNING};

	folds->recording_ns += span->recording_ns;
	if (drawn.running && folds->recording_ns >= RECORDING_LEAST_NS) {
		Drawn recording = drawn;

		recording.stack = folds->recording;
		recording.running = false;
		recording.end_ns = MIN(recording.start_ns + folds->recording_ns, drawn.end_ns);
		folds->recording_ns -= recording.end_ns - recording.start_ns;
		drawn.start_ns = recording.end_ns;
		draw(folds, &recording);
	}
	draw(folds, &drawn);
}

void speedscope_folds_walk(Folds *folds, const Thread *thread, DrawnVisitor visit, void *user)
{
	folds->visit = visit;
	folds->user = user;
	folds->recording_ns = 0;
	stack_spans_walk(folds->tables, thread, folds->hidden, draw_span, folds);
	end_piece(folds);
}

/* The events of what is drawn, while they are counted. */
typedef struct Count {
	Folds *folds;
	uint64_t events, budget, end_ns;
	uint32_t stack; /* what was drawn last; UINT32_MAX: nothing is open */
	bool running;
} Count;

static uint32_t depth_of(Folds *folds, uint32_t stack)
{
	while (folds->depths.count <= stack) {
		uint32_t prefix = stack_table_stack_prefix(folds->tables, folds->depths.count);
		uint32_t depth = prefix == UINT32_MAX ? 1 : folds->depths.items[prefix] + 1;

		*vec_push(&folds->depths) = depth;
	}
	return folds->depths.items[stack];
}

/* Returns how many frames one of two stacks has that the other one has not, and the reverse. */
static uint64_t differing_frames(Folds *folds, uint32_t one, uint32_t other)
{
	uint32_t depth = depth_of(folds, one), other_depth = depth_of(folds, other);
	uint64_t frames = 0;

	while (one != other) {
		bool is_deeper = depth >= other_depth;

		if (depth <= other_depth) {
			other = stack_table_stack_prefix(folds->tables, other);
			other_depth--;
			frames++;
		}
		if (is_deeper) {
			one = stack_table_stack_prefix(folds->tables, one);
			depth--;
			frames++;
		}
	}
	return frames;
}

/* An event opens a frame or closes one; two stacks share frames from the root on. */
static void count_events(void *user, const Drawn *drawn)
{
	Count *count = user;

	if (count->events > count->budget)
		return;
	if (count->stack != UINT32_MAX && drawn->start_ns > count->end_ns) {
		count->events += depth_of(count->folds, count->stack) + count->running;
		count->stack = UINT32_MAX;
		count->running = false;
	}
	if (count->stack == UINT32_MAX)
		count->events += depth_of(count->folds, drawn->stack) + drawn->running;
	else if (count->stack != drawn->stack)
		count->events += differing_frames(count->folds, count->stack, drawn->stack) +
				 count->running + drawn->running;
	else if (count->running != drawn->running)
		count->events++;
	count->stack = drawn->stack;
	count->running = drawn->running;
	count->end_ns = drawn->end_ns;
}

/* Returns the number of events of all threads, or one that is over the budget. */
static uint64_t count_all(Folds *folds, uint64_t budget)
{
	const Timeline *timeline = folds->tables->timeline;
	Count count = {.folds = folds, .budget = budget};

	for (size_t i = 0; i < timeline->threads.count && count.events <= budget; i++) {
		count.stack = UINT32_MAX;
		count.running = false;
		speedscope_folds_walk(folds, &timeline->threads.items[i], count_events, &count);
		if (count.stack != UINT32_MAX)
			count.events += depth_of(folds, count.stack) + count.running;
	}
	return count.events;
}

void speedscope_folds_init(Folds *folds, StackTable *tables, uint32_t hidden, uint64_t budget)
{
	const Timeline *timeline = tables->timeline;
	uint64_t window_ns = timeline_time(timeline, timeline->end_ns);

	*folds = (Folds){
		.tables = tables, .hidden = hidden, .recording = stack_spans_recording(tables)};
	while (count_all(folds, budget) > budget && folds->fold_ns <= window_ns)
		folds->fold_ns = folds->fold_ns ? folds->fold_ns * 2 : FOLD_START_NS;
}

void speedscope_folds_free(Folds *folds)
{
	map_free(&folds->index);
	vec_free(&folds->list);
	vec_free(&folds->depths);
}
