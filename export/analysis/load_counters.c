/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "load_counters.h"

#define BUCKET_NS   (10 * NSEC_PER_MSEC)
#define BUCKETS_MAX 4000

/* from and to: ns since the start of the window. */
static void add_interval(uint64_t *sums, const LoadCounters *levels, uint64_t from, uint64_t to)
{
	size_t last = levels->count - 1;

	for (size_t i = MIN(from / levels->width_ns, last); i <= last && from < to; i++) {
		uint64_t end = i == last ? to : MIN(to, (i + 1) * levels->width_ns);

		sums[i] += end - from;
		from = end;
	}
}

static void add_thread(LoadCounters *levels, const Timeline *timeline, const Thread *thread)
{
	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *interval = &thread->intervals.items[i];
		uint64_t *sums = interval->state == STATE_RUNNING    ? levels->running_ns
				 : interval->state == STATE_RUNNABLE ? levels->runnable_ns
								     : NULL;

		if (sums)
			add_interval(sums, levels, timeline_time(timeline, interval->start_ns),
				     timeline_time(timeline, interval_end(thread, i)));
	}
}

static void add_request(LoadCounters *levels, const Timeline *timeline, const Request *request)
{
	uint64_t from = timeline_time(timeline, request_let_go(request));
	uint64_t to = timeline_time(timeline, request->end_ns);
	size_t bucket = MIN(to / levels->width_ns, levels->count - 1);

	if (request->over_device || requests_lie_on_file(&timeline->requests, request->device))
		return;
	add_interval(levels->in_flight_ns, levels, from, to);
	if (request_is_read(request))
		levels->read_bytes[bucket] += request->bytes;
	else if (request_is_write(request))
		levels->written_bytes[bucket] += request->bytes;
}

LoadCounters load_counters_make(const Timeline *timeline)
{
	uint64_t window = timeline_time(timeline, timeline->end_ns);
	LoadCounters levels = {.window_ns = window,
			       .width_ns = MAX(BUCKET_NS, window / BUCKETS_MAX + 1)};

	levels.count = MAX(window / levels.width_ns, 1);
	levels.runnable_ns = xcalloc(levels.count, sizeof(uint64_t));
	levels.running_ns = xcalloc(levels.count, sizeof(uint64_t));
	levels.read_bytes = xcalloc(levels.count, sizeof(uint64_t));
	levels.written_bytes = xcalloc(levels.count, sizeof(uint64_t));
	levels.in_flight_ns = xcalloc(levels.count, sizeof(uint64_t));
	for (size_t i = 0; i < timeline->threads.count; i++)
		add_thread(&levels, timeline, &timeline->threads.items[i]);
	for (size_t i = 0; i < timeline->requests.list.count; i++)
		add_request(&levels, timeline, &timeline->requests.list.items[i]);
	return levels;
}

void load_counters_free(LoadCounters *levels)
{
	free(levels->runnable_ns);
	free(levels->running_ns);
	free(levels->read_bytes);
	free(levels->written_bytes);
	free(levels->in_flight_ns);
	*levels = (LoadCounters){};
}

uint64_t load_counters_end(const LoadCounters *levels, size_t i)
{
	return i + 1 < levels->count ? (i + 1) * levels->width_ns : levels->window_ns;
}

uint64_t load_counters_average(const LoadCounters *levels, const uint64_t *sums, size_t i)
{
	uint64_t width = load_counters_end(levels, i) - i * levels->width_ns;

	return width ? (uint64_t)((double)sums[i] * 1000 / width + 0.5) : 0;
}
