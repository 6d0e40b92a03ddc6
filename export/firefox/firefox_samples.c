/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "firefox_parts.h"

/* How far from the threads of a lane the rows of the gap between them stand. */
#define GAP_EDGE_NS 500

/* One column while it is written. */
typedef struct Column {
	Profile *profile;
	uint64_t base_running_ns; /* of the lane's threads before this one */
	uint64_t previous_running_ns;
	uint64_t rows;
} Column;

static void write_stack(void *user, const Row *row)
{
	Column *column = user;

	json_u64(&column->profile->json, row->stack);
	column->rows++;
}

static void write_time(void *user, const Row *row)
{
	Column *column = user;

	json_ms(&column->profile->json, timeline_time(column->profile->timeline, row->ns));
}

static void write_weight(void *user, const Row *row)
{
	Column *column = user;

	json_ms(&column->profile->json, row->weight_ns);
}

/* Running time since the row before. */
static void write_cpu_delta(void *user, const Row *row)
{
	Column *column = user;
	uint64_t running_ns = column->base_running_ns + row->running_ns;

	json_u64(&column->profile->json, running_ns - MIN(running_ns, column->previous_running_ns));
	column->previous_running_ns = MAX(running_ns, column->previous_running_ns);
}

/* Between two threads of a lane: without rows of its own the gap would take their colours. */
static void walk_gap(Column *column, uint64_t from_ns, uint64_t to_ns, bool with_stacks,
		     RowVisitor visit)
{
	StackRef ref = {
		.user_stack = STACK_NONE, .kernel_stack = STACK_NONE, .leaf = LEAF_NOT_ALIVE};
	Row row = {};

	if (to_ns <= from_ns)
		return;
	if (with_stacks)
		row.stack = tables_stack(column->profile->tables, &ref);
	row.ns = from_ns + MIN(GAP_EDGE_NS, (to_ns - from_ns) / 4);
	visit(column, &row);
	row.ns = to_ns - MIN(GAP_EDGE_NS, (to_ns - from_ns) / 4);
	visit(column, &row);
}

static uint64_t write_column(Profile *profile, const Track *track, const char *name,
			     RowVisitor visit, bool with_stacks)
{
	const Timeline *timeline = profile->timeline;
	Column column = {.profile = profile};

	json_key_array(&profile->json, name);
	if (track->cpu != CPU_NONE)
		cpu_rows_walk(profile->tables, &profile->cpus, track->cpu, with_stacks, visit,
			      &column);
	for (size_t i = 0; i < track->threads.count; i++) {
		uint32_t thread = track->threads.items[i];

		if (i > 0)
			walk_gap(&column,
				 timeline_strip(timeline, track->threads.items[i - 1])->end_ns,
				 timeline_strip(timeline, thread)->start_ns, with_stacks, visit);
		rows_walk(profile->tables, &profile->rows, thread, with_stacks, visit, &column);
		if (!(profile->rows.left_out >> STATE_RUNNING & 1))
			column.base_running_ns += profile->rows.tick_ends[thread].running_ns;
	}
	json_end_array(&profile->json);
	return column.rows;
}

void profile_write_samples(Profile *profile, const Track *track)
{
	Json *json = &profile->json;
	uint64_t rows;

	json_key_object(json, "samples");
	rows = write_column(profile, track, "stack", write_stack, true);
	write_column(profile, track, "time", write_time, false);
	write_column(profile, track, "weight", write_weight, false);
	if (profile->options->cpu_graph)
		write_column(profile, track, "threadCPUDelta", write_cpu_delta, false);
	json_key_string(json, "weightType", "tracing-ms");
	json_key_u64(json, "length", rows);
	json_end_object(json);
}
