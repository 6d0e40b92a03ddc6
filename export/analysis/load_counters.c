/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "load_counters.h"

#define BUCKET_NS   (10 * NSEC_PER_MSEC)
#define BUCKETS_MAX 4000

/* Adds a span; from and to: ns since the start of the window. */
static void add_interval(uint64_t *sums, const LoadCounters *counters, uint64_t from, uint64_t to)
{
	size_t last = counters->count - 1;

	for (size_t i = MIN(from / counters->width_ns, last); i <= last && from < to; i++) {
		uint64_t end = i == last ? to : MIN(to, (i + 1) * counters->width_ns);

		sums[i] += end - from;
		from = end;
	}
}

static void add_thread(LoadCounters *counters, const Timeline *timeline, const Thread *thread)
{
	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *interval = &thread->intervals.items[i];
		uint64_t *sums = interval->state == STATE_RUNNING    ? counters->running_ns
				 : interval->state == STATE_RUNNABLE ? counters->runnable_ns
								     : NULL;

		if (sums)
			add_interval(sums, counters, timeline_time(timeline, interval->start_ns),
				     timeline_time(timeline, interval_end(thread, i)));
	}
}

static void add_request(LoadCounters *counters, const Timeline *timeline, const Request *request)
{
	uint64_t from = timeline_time(timeline, request_let_go(request));
	uint64_t to = timeline_time(timeline, request->end_ns);
	size_t bucket = MIN(to / counters->width_ns, counters->count - 1);

	if (request->over_device || requests_lie_on_file(&timeline->requests, request->device))
		return;
	add_interval(counters->in_flight_ns, counters, from, to);
	if (request_is_read(request))
		counters->read_bytes[bucket] += request->bytes;
	else if (request_is_write(request))
		counters->written_bytes[bucket] += request->bytes;
}

LoadCounters load_counters_make(const Timeline *timeline)
{
	uint64_t window = timeline_time(timeline, timeline->end_ns);
	LoadCounters counters = {.window_ns = window,
				 .width_ns = MAX(BUCKET_NS, window / BUCKETS_MAX + 1)};

	counters.count = MAX(window / counters.width_ns, 1);
	counters.runnable_ns = xcalloc(counters.count, sizeof(uint64_t));
	counters.running_ns = xcalloc(counters.count, sizeof(uint64_t));
	counters.read_bytes = xcalloc(counters.count, sizeof(uint64_t));
	counters.written_bytes = xcalloc(counters.count, sizeof(uint64_t));
	counters.in_flight_ns = xcalloc(counters.count, sizeof(uint64_t));
	for (size_t i = 0; i < timeline->threads.count; i++)
		add_thread(&counters, timeline, &timeline->threads.items[i]);
	for (size_t i = 0; i < timeline->requests.list.count; i++)
		add_request(&counters, timeline, &timeline->requests.list.items[i]);
	return counters;
}

void load_counters_free(LoadCounters *counters)
{
	free(counters->runnable_ns);
	free(counters->running_ns);
	free(counters->read_bytes);
	free(counters->written_bytes);
	free(counters->in_flight_ns);
	*counters = (LoadCounters){};
}

uint64_t load_counters_end(const LoadCounters *counters, size_t i)
{
	return i + 1 < counters->count ? (i + 1) * counters->width_ns : counters->window_ns;
}

uint64_t load_counters_average(const LoadCounters *counters, const uint64_t *sums, size_t i)
{
	uint64_t width = load_counters_end(counters, i) - i * counters->width_ns;

	return width ? (uint64_t)((double)sums[i] * 1000 / width + 0.5) : 0;
}
