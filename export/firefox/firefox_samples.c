/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "firefox_parts.h"

/* The distance of the rows of a gap from the threads of the track around it. */
#define GAP_EDGE_NS 500

typedef struct Adding {
	TrackRows *rows;
	uint64_t base_running_ns; /* of the track's threads before this one */
	bool with_cpu_use;
} Adding;

static void add_row(void *user, const Row *row)
{
	Adding *adding = user;

	*vec_push(&adding->rows->stacks) = row->stack;
	*vec_push(&adding->rows->ns) = row->ns;
	*vec_push(&adding->rows->weight_ns) = row->weight_ns;
	if (adding->with_cpu_use)
		*vec_push(&adding->rows->running_ns) = adding->base_running_ns + row->running_ns;
}

/* Without rows of its own the gap between two threads would have the colour of one of them. */
static void add_gap(Adding *adding, StackTable *tables, uint64_t from_ns, uint64_t to_ns)
{
	StackRef ref = {
		.user_stack = STACK_NONE, .kernel_stack = STACK_NONE, .leaf = LEAF_NOT_ALIVE};
	Row row = {};

	if (to_ns <= from_ns)
		return;
	row.stack = stack_table_stack(tables, &ref);
	row.ns = from_ns + MIN(GAP_EDGE_NS, (to_ns - from_ns) / 4);
	add_row(adding, &row);
	row.ns = to_ns - MIN(GAP_EDGE_NS, (to_ns - from_ns) / 4);
	add_row(adding, &row);
}

/* Replaces the content of rows by those of a track: a CPU, or threads one after the other. */
static void make_rows(TrackRows *rows, StackTable *tables, const RowPlan *plan, const CpuPlan *cpus,
		      const Track *track, bool with_cpu_use)
{
	const Timeline *timeline = tables->timeline;
	Adding adding = {.rows = rows, .with_cpu_use = with_cpu_use};

	rows->stacks.count = rows->ns.count = rows->weight_ns.count = rows->running_ns.count = 0;
	if (track->cpu != CPU_NONE)
		cpu_rows_walk(tables, cpus, track->cpu, add_row, &adding);
	for (size_t i = 0; i < track->threads.count; i++) {
		uint32_t thread = track->threads.items[i];

		if (i > 0)
			add_gap(&adding, tables,
				timeline_track(timeline, track->threads.items[i - 1])->end_ns,
				timeline_track(timeline, thread)->start_ns);
		sample_rows_walk(tables, plan, thread, /* with_stacks= */ true, add_row, &adding);
		if (!(plan->hidden >> STATE_RUNNING & 1))
			adding.base_running_ns += plan->tick_ends[thread].running_ns;
	}
}

void track_rows_free(TrackRows *rows)
{
	vec_free(&rows->stacks);
	vec_free(&rows->ns);
	vec_free(&rows->weight_ns);
	vec_free(&rows->running_ns);
}

static void write_times(Profile *profile)
{
	const TrackRows *rows = &profile->track_rows;

	json_key_array(&profile->json, "time");
	for (size_t i = 0; i < rows->ns.count; i++)
		json_ms(&profile->json, timeline_time(profile->timeline, rows->ns.items[i]));
	json_end_array(&profile->json);
}

/* Writes the running time since the previous row. */
static void write_cpu_deltas(Profile *profile)
{
	const TrackRows *rows = &profile->track_rows;
	uint64_t previous_ns = 0;

	json_key_array(&profile->json, "threadCPUDelta");
	for (size_t i = 0; i < rows->running_ns.count; i++) {
		uint64_t ns = rows->running_ns.items[i];

		json_u64(&profile->json, ns - MIN(ns, previous_ns));
		previous_ns = MAX(ns, previous_ns);
	}
	json_end_array(&profile->json);
}

void profile_write_samples(Profile *profile, const Track *track)
{
	TrackRows *rows = &profile->track_rows;
	Json *json = &profile->json;

	make_rows(rows, profile->tables, &profile->rows, &profile->cpus, track, profile->cpu_graph);
	json_key_object(json, "samples");
	json_key_array(json, "stack");
	for (size_t i = 0; i < rows->stacks.count; i++)
		json_u64(json, rows->stacks.items[i]);
	json_end_array(json);
	write_times(profile);
	json_key_array(json, "weight");
	for (size_t i = 0; i < rows->weight_ns.count; i++)
		json_ms(json, rows->weight_ns.items[i]);
	json_end_array(json);
	if (profile->cpu_graph)
		write_cpu_deltas(profile);
	json_key_string(json, "weightType", "tracing-ms");
	json_key_u64(json, "length", rows->stacks.count);
	json_end_object(json);
}
