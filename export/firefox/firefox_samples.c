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

/* A track is a CPU, or threads one after the other. */
void profile_make_rows(Profile *profile, const Track *track)
{
	TrackRows *rows = &profile->track_rows;
	StackTable *tables = profile->tables;
	const RowPlan *plan = &profile->rows;
	const Timeline *timeline = tables->timeline;
	Adding adding = {.rows = rows, .with_cpu_use = profile->cpu_graph};

	rows->stacks.count = rows->ns.count = rows->weight_ns.count = rows->running_ns.count = 0;
	if (track->cpu != CPU_NONE)
		cpu_rows_walk(tables, &profile->cpus, track->cpu, add_row, &adding);
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

/*
 * Repeats the last row that is not idle, without its weight: between two rows of one time, a row
 * has no width.
 */
static void repeat_row(TrackRows *rows, const StackTable *tables, uint64_t times)
{
	size_t at = rows->stacks.count, tail;

	while (at > 0 &&
	       stack_table_leaf_category(tables, rows->stacks.items[at - 1]) == CATEGORY_IDLE)
		at--;
	if (at == 0 || times == 0)
		return;
	tail = rows->stacks.count - at;
	for (uint64_t i = 0; i < times; i++) {
		*vec_push(&rows->stacks) = 0;
		*vec_push(&rows->ns) = 0;
		*vec_push(&rows->weight_ns) = 0;
	}
	memmove(&rows->stacks.items[at + times], &rows->stacks.items[at],
		tail * sizeof(*rows->stacks.items));
	memmove(&rows->ns.items[at + times], &rows->ns.items[at], tail * sizeof(*rows->ns.items));
	memmove(&rows->weight_ns.items[at + times], &rows->weight_ns.items[at],
		tail * sizeof(*rows->weight_ns.items));
	for (uint64_t i = 0; i < times; i++) {
		rows->stacks.items[at + i] = rows->stacks.items[at - 1];
		rows->ns.items[at + i] = rows->ns.items[at - 1];
		rows->weight_ns.items[at + i] = 0;
	}
}

static uint32_t path_root(const Profile *profile, const Track *track, const Thread *thread)
{
	const Process *process = &profile->timeline->processes.items[thread->process];
	uint32_t root = stack_table_named_stack(profile->tables, UINT32_MAX, process->label,
						CATEGORY_OTHER);

	if (thread->is_main)
		return root;
	return stack_table_named_stack(profile->tables, root,
				       track->is_lane ? thread->name : track->name, CATEGORY_OTHER);
}

uint32_t *profile_path_roots(const Profile *profile)
{
	const Timeline *timeline = profile->timeline;
	const Thread *path = &timeline->path.track;
	uint32_t *roots = xcalloc(timeline->threads.count + 1, sizeof(*roots));
	_cleanup_free_ bool *is_owner = xcalloc(timeline->threads.count + 1, sizeof(*is_owner));

	for (size_t i = 0; i < path->intervals.count; i++)
		is_owner[path->owners.items[i]] = true;
	for (size_t i = 0; i < profile->tracks.list.count; i++) {
		const Track *track = &profile->tracks.list.items[i];

		for (size_t k = 0; k < track->threads.count && !track->is_path; k++) {
			uint32_t number = track->threads.items[k];

			if (is_owner[number])
				roots[number] =
					path_root(profile, track, &timeline->threads.items[number]);
		}
	}
	return roots;
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

	profile_make_rows(profile, track);
	repeat_row(rows, profile->tables, profile->order_rows[track - profile->tracks.list.items]);
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
