/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "track_rows.h"

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

void track_rows_make(TrackRows *rows, StackTable *tables, const RowPlan *plan, const CpuPlan *cpus,
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
