/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * html_columns.c - the timeline as columns of small numbers: segments of tracks, their stacks as a
 * tree, the critical path, and the longest waits.
 *
 * A segment is time with one stack: rows of one stack that follow each other are one. Its weight is
 * what it counts in sums, also where short intervals are folded (row_plan.h); mostly it is its
 * length.
 */
#include "critical_path.h"
#include "html_parts.h"
#include "wait_fields.h"

#define NONE UINT32_MAX
/* CPUs have rows besides those of the threads: this fraction of them. */
#define CPU_ROWS_PART 4
/* A line has three bytes in the key of its frame. */
#define LINE_MAX_SHOWN 0xffffff

static void put(HtmlData *data, enum html_column column, uint64_t value)
{
	Bytes *bytes = &data->columns[column];

	while (value >= 0x80) {
		*vec_push(bytes) = value | 0x80;
		value >>= 7;
	}
	*vec_push(bytes) = value;
}

/* Small numbers of both signs have few bytes. */
static void put_signed(HtmlData *data, enum html_column column, int64_t value)
{
	put(data, column, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static uint64_t since(uint64_t ns, uint64_t start_ns)
{
	return ns - MIN(ns, start_ns);
}

/* ---- stacks -------------------------------------------------------------------------------- */

static uint32_t number_func(HtmlData *data, uint32_t func)
{
	const StackTable *tables = data->tables;
	const FuncRow *row = &tables->funcs.items[func];
	uint32_t number = map_get(&data->func_index, func);

	if (number != MAP_NONE)
		return number;
	number = data->funcs++;
	map_set(&data->func_index, func, number);
	put(data, COLUMN_FUNC_NAME, row->name);
	/* That of a state is the name of a group of the Firefox Profiler. */
	put(data, COLUMN_FUNC_LIB,
	    row->resource == NONE || tables->resources.items[row->resource].lib == NONE
		    ? 0
		    : tables->resources.items[row->resource].name + 1);
	put(data, COLUMN_FUNC_SOURCE, row->source == NONE ? 0 : row->source + 1);
	return number;
}

static uint32_t number_frame(HtmlData *data, uint32_t frame)
{
	const FrameRow *row = &data->tables->frame_rows.items[frame];
	uint32_t func = number_func(data, row->func);
	uint32_t line = row->line > LINE_MAX_SHOWN ? 0 : row->line;
	uint64_t key = (uint64_t)func << 32 | line << 8 | row->category;
	uint32_t number = map_get(&data->frame_index, key);

	if (number != MAP_NONE)
		return number;
	number = data->frame_count++;
	map_set(&data->frame_index, key, number);
	put(data, COLUMN_FRAME_FUNC, func);
	put(data, COLUMN_FRAME_LINE, line);
	put(data, COLUMN_FRAME_CATEGORY, row->category);
	return number;
}

static uint32_t known_stack(const HtmlData *data, uint32_t stack)
{
	return stack < data->stack_of.count ? data->stack_of.items[stack] : MAP_NONE;
}

/* Stacks that differ by their addresses alone are one. */
static uint32_t add_stack(HtmlData *data, uint32_t prefix, uint32_t stack)
{
	uint32_t frame = number_frame(data, data->tables->stacks.items[stack].frame);
	uint64_t key = (uint64_t)(prefix == NONE ? 0 : prefix + 1) << 32 | frame;
	uint32_t number = map_get(&data->stack_index, key);

	if (number == MAP_NONE) {
		number = data->stacks++;
		map_set(&data->stack_index, key, number);
		put(data, COLUMN_STACK_PREFIX, prefix == NONE ? 0 : prefix + 1);
		put(data, COLUMN_STACK_FRAME, frame);
	}
	while (data->stack_of.count <= stack)
		*vec_push(&data->stack_of) = MAP_NONE;
	data->stack_of.items[stack] = number;
	return number;
}

/* Returns the number of a stack of the tables in the file. A prefix is written before its stack. */
static uint32_t number_stack(HtmlData *data, uint32_t stack)
{
	VEC(uint32_t) missing = {};
	uint32_t number = known_stack(data, stack);

	while (number == MAP_NONE) {
		*vec_push(&missing) = stack;
		stack = stack_table_stack_prefix(data->tables, stack);
		if (stack == NONE)
			break;
		number = known_stack(data, stack);
	}
	while (missing.count > 0)
		number = add_stack(data, number == MAP_NONE ? NONE : number,
				   missing.items[--missing.count]);
	vec_free(&missing);
	return number;
}

/* ---- segments ------------------------------------------------------------------------------ */

static void add_row(void *user, const Row *row)
{
	HtmlData *data = user;
	uint32_t stack = number_stack(data, row->stack);
	HtmlSegment *last =
		data->segments.count > 0 ? &data->segments.items[data->segments.count - 1] : NULL;

	if (last && last->stack == stack)
		last->weight_ns += row->weight_ns;
	else
		*vec_push(&data->segments) = (HtmlSegment){row->ns, row->weight_ns, stack};
}

static void end_track(HtmlData *data, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t at_ns = start_ns;

	for (size_t i = 0; i < data->segments.count; i++) {
		const HtmlSegment *segment = &data->segments.items[i];
		/* The first row of a band lies a little behind its start (sample_rows.c). */
		uint64_t ns = i == 0 ? start_ns : segment->ns;
		uint64_t next_ns =
			i + 1 < data->segments.count ? data->segments.items[i + 1].ns : end_ns;

		put(data, COLUMN_SEGMENT_START, since(ns, at_ns));
		put_signed(data, COLUMN_SEGMENT_WEIGHT,
			   (int64_t)(segment->weight_ns - since(next_ns, MAX(ns, at_ns))));
		put(data, COLUMN_SEGMENT_STACK, segment->stack);
		at_ns = MAX(ns, at_ns);
	}
	*vec_push(&data->segment_counts) = data->segments.count;
	data->segments.count = 0;
}

static void make_segments(HtmlData *data)
{
	const Timeline *timeline = data->timeline;

	for (size_t i = 0; i < timeline_track_count(timeline); i++) {
		const Thread *thread = timeline_track(timeline, i);

		sample_rows_walk(data->tables, &data->rows, i, /* with_stacks= */ true, add_row,
				 data);
		end_track(data, thread->start_ns, thread->end_ns);
	}
	for (size_t i = 0; i < timeline->cpus.count; i++) {
		cpu_rows_walk(data->tables, &data->cpus, i, add_row, data);
		end_track(data, timeline->start_ns, timeline->end_ns);
	}
}

static void make_path(HtmlData *data)
{
	const Thread *track = &data->timeline->path.track;
	uint64_t at_ns = track->start_ns;

	for (size_t i = 0, end; i < track->intervals.count; i = end) {
		uint64_t start_ns = track->intervals.items[i].start_ns, end_ns;
		const char *name = critical_path_stretch_name(data->timeline, i);

		end = critical_path_stretch(track, i);
		end_ns = interval_end(track, end - 1);
		if (end_ns - MIN(end_ns, start_ns) < data->rows.fold_ns)
			continue;
		put(data, COLUMN_PATH_START, since(start_ns, at_ns));
		put(data, COLUMN_PATH_LENGTH, since(end_ns, start_ns));
		put(data, COLUMN_PATH_OWNER, track->owners.items[i]);
		put(data, COLUMN_PATH_NAME, stack_table_string(data->tables, name ? name : ""));
		at_ns = MAX(end_ns, start_ns);
	}
}

/* ---- waits --------------------------------------------------------------------------------- */

/* Counts waits by their lengths: 32 classes for each power of two. */
#define CLASS_BITS     5
#define LENGTH_CLASSES (64u << CLASS_BITS)

static size_t length_class(uint64_t ns)
{
	unsigned int bits = ns ? 63 - __builtin_clzll(ns) : 0;

	return bits < CLASS_BITS ? ns
				 : (bits << CLASS_BITS) +
					   (ns >> (bits - CLASS_BITS) & ((1u << CLASS_BITS) - 1));
}

static uint64_t wait_ns(const Thread *thread, size_t i)
{
	if (thread->intervals.items[i].state != STATE_BLOCKED)
		return 0;
	return since(interval_end(thread, i), thread->intervals.items[i].start_ns);
}

/* Returns from which class on all waits together keep to the budget. */
static size_t longest_classes(HtmlData *data, uint64_t budget)
{
	uint64_t counts[LENGTH_CLASSES] = {}, waits = 0;
	size_t class = LENGTH_CLASSES;

	for (size_t t = 0; t < data->timeline->threads.count; t++) {
		const Thread *thread = &data->timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			if (wait_ns(thread, i) == 0)
				continue;
			counts[length_class(wait_ns(thread, i))]++;
			data->waits++;
		}
	}
	while (class > 0 && waits + counts[class - 1] <= budget)
		waits += counts[--class];
	return class;
}

static uint32_t text_number(HtmlData *data, const char *text)
{
	return text && *text ? stack_table_string(data->tables, text) + 1 : 0;
}

static uint32_t thread_of_task(const Timeline *timeline, uint32_t task)
{
	uint32_t thread =
		task < timeline->tasks.count ? timeline->tasks.items[task].thread : THREAD_NONE;

	return thread < timeline->threads.count ? thread + 1 : 0;
}

static void add_wait(HtmlData *data, size_t number, size_t i)
{
	const Timeline *timeline = data->timeline;
	const Thread *thread = &timeline->threads.items[number];
	const Interval *interval = &thread->intervals.items[i];
	uint32_t object = wait_object(timeline, thread, i);
	_cleanup_free_ char *chain = wait_waker_chain(timeline, data->frames, thread, i);
	char name[COMM_LEN + 1];

	put(data, COLUMN_WAIT_THREAD, number);
	put(data, COLUMN_WAIT_START, since(interval->start_ns, thread->start_ns));
	put(data, COLUMN_WAIT_LENGTH, wait_ns(thread, i));
	put(data, COLUMN_WAIT_OBJECT,
	    object == OBJECT_NONE ? 0
				  : text_number(data, timeline->objects.list.items[object].name));
	put(data, COLUMN_WAIT_WAKER, text_number(data, wait_waker(timeline, thread, i, name)));
	put(data, COLUMN_WAIT_WAKER_THREAD, thread_of_task(timeline, interval->waker));
	put(data, COLUMN_WAIT_HOLDER, text_number(data, wait_holder(timeline, interval, name)));
	put(data, COLUMN_WAIT_CHAIN, text_number(data, chain));
	data->waits_with_details++;
	data->least_wait_ns = MIN(data->least_wait_ns, wait_ns(thread, i));
}

static void make_waits(HtmlData *data, uint64_t budget)
{
	size_t least = longest_classes(data, budget);

	data->least_wait_ns = UINT64_MAX;
	for (size_t t = 0; t < data->timeline->threads.count; t++) {
		const Thread *thread = &data->timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++)
			if (wait_ns(thread, i) > 0 && length_class(wait_ns(thread, i)) >= least)
				add_wait(data, t, i);
	}
}

/* ---- the whole ----------------------------------------------------------------------------- */

void html_columns_make(HtmlData *data, const HtmlPlan *plan)
{
	/* Segments have lengths, so that a wait needs no rows between its ends. */
	row_plan_init(&data->rows, data->timeline, /* step_ns= */ 0);
	data->rows.hidden = plan->hidden;
	sample_rows_fit(&data->rows, data->tables, plan->rows);
	cpu_plan_fit(&data->cpus, data->timeline, plan->rows / CPU_ROWS_PART);
	make_segments(data);
	make_path(data);
	make_waits(data, plan->waits);
}

void html_columns_free(HtmlData *data)
{
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		vec_free(&data->columns[i]);
	vec_free(&data->segment_counts);
	vec_free(&data->segments);
	vec_free(&data->stack_of);
	map_free(&data->stack_index);
	map_free(&data->frame_index);
	map_free(&data->func_index);
	row_plan_free(&data->rows);
}
