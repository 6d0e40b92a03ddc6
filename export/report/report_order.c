/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report_order.h"
#include "util.h"

/* What a thread or a process matters for the run. */
typedef struct Weight {
	uint32_t index;
	uint64_t path_ns, running_ns, runnable_ns, lifetime_ns;
} Weight;

static int compare_numbers(uint64_t x, uint64_t y)
{
	return x == y ? 0 : x > y ? -1 : 1;
}

static int compare_weights(const void *a, const void *b)
{
	const Weight *x = a, *y = b;
	int order = compare_numbers(x->path_ns, y->path_ns);

	order = order ? order : compare_numbers(x->running_ns, y->running_ns);
	order = order ? order : compare_numbers(x->runnable_ns, y->runnable_ns);
	order = order ? order : compare_numbers(x->lifetime_ns, y->lifetime_ns);
	return order ? order : (x->index > y->index) - (x->index < y->index);
}

static Weight *weights_of_threads(const Timeline *timeline)
{
	const Thread *track = &timeline->path.track;
	Weight *weights = xcalloc(timeline->threads.count + 1, sizeof(*weights));

	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];

		weights[i] = (Weight){
			.index = i,
			.running_ns = thread->ledger[STATE_RUNNING],
			.runnable_ns = thread->ledger[STATE_RUNNABLE],
			.lifetime_ns = thread->end_ns - MIN(thread->start_ns, thread->end_ns),
		};
	}
	for (size_t i = 0; i < track->intervals.count; i++)
		weights[track->owners.items[i]].path_ns +=
			interval_end(track, i) - track->intervals.items[i].start_ns;
	return weights;
}

/* Sorts the weights and returns their indexes. */
static uint32_t *sorted_indexes(Weight *weights, size_t count)
{
	uint32_t *indexes = xcalloc(count + 1, sizeof(*indexes));

	if (count > 1)
		qsort(weights, count, sizeof(*weights), compare_weights);
	for (size_t i = 0; i < count; i++)
		indexes[i] = weights[i].index;
	return indexes;
}

void report_order_init(ReportOrder *order, const Timeline *timeline)
{
	_cleanup_free_ Weight *threads = weights_of_threads(timeline);
	_cleanup_free_ Weight *processes =
		xcalloc(timeline->processes.count + 1, sizeof(*processes));

	for (size_t i = 0; i < timeline->processes.count; i++)
		processes[i].index = i;
	for (size_t i = 0; i < timeline->threads.count; i++) {
		Weight *process = &processes[timeline->threads.items[i].process];

		process->path_ns += threads[i].path_ns;
		process->running_ns += threads[i].running_ns;
		process->runnable_ns += threads[i].runnable_ns;
		process->lifetime_ns += threads[i].lifetime_ns;
	}
	order->threads = sorted_indexes(threads, timeline->threads.count);
	order->processes = sorted_indexes(processes, timeline->processes.count);
}

void report_order_free(ReportOrder *order)
{
	free(order->threads);
	free(order->processes);
}
