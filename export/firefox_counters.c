/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * firefox_counters.c - how many threads want a CPU, and how much CPU is used, over
 * time; both averages over buckets, from the same intervals as everything else.
 */
#include "firefox_parts.h"

#define BUCKET_NS   (10 * NSEC_PER_MSEC)
#define BUCKETS_MAX 4000

typedef struct Buckets {
	uint64_t width_ns;
	size_t count;
	uint64_t *runnable_ns, *running_ns; /* summed over all threads */
} Buckets;

static void add_interval(uint64_t *sums, const Buckets *buckets, uint64_t from, uint64_t to)
{
	size_t last = buckets->count - 1;

	for (size_t i = MIN(from / buckets->width_ns, last); i <= last && from < to; i++) {
		uint64_t end = i == last ? to : MIN(to, (i + 1) * buckets->width_ns);

		sums[i] += end - from;
		from = end;
	}
}

static void add_thread(Buckets *buckets, const Timeline *timeline, const Thread *thread)
{
	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *interval = &thread->intervals.items[i];
		uint64_t *sums = interval->state == STATE_RUNNING    ? buckets->running_ns
				 : interval->state == STATE_RUNNABLE ? buckets->runnable_ns
								     : NULL;

		if (sums)
			add_interval(sums, buckets, profile_time(timeline, interval->start_ns),
				     profile_time(timeline, interval_end(thread, i)));
	}
}

static uint64_t bucket_end(const Buckets *buckets, const Timeline *timeline, size_t i)
{
	uint64_t window = profile_time(timeline, timeline->end_ns);

	return i + 1 < buckets->count ? (i + 1) * buckets->width_ns : window;
}

/* Average over bucket i, in thousandths. */
static uint64_t bucket_level(const Buckets *buckets, const Timeline *timeline, const uint64_t *sums,
			     size_t i)
{
	uint64_t width = bucket_end(buckets, timeline, i) - i * buckets->width_ns;

	return width ? (uint64_t)((double)sums[i] * 1000 / width + 0.5) : 0;
}

static void write_times(Json *json, const Buckets *buckets, const Timeline *timeline)
{
	json_key_array(json, "time");
	json_u64(json, 0);
	for (size_t i = 0; i < buckets->count; i++)
		json_ms(json, bucket_end(buckets, timeline, i));
	json_end_array(json);
}

/* Thousandths, exact. */
static void json_thousandths(Json *json, int64_t value)
{
	char *p = json_value(json, FORMAT_MAX);

	if (value < 0) {
		*p++ = '-';
		value = -value;
	}
	json_value_end(json, format_ms(p, value * 1000));
}

/*
 * The viewer takes differences and forces the first to 0: both counters begin
 * with an empty sample at the start of the window.
 */
static void write_levels(Json *json, const Buckets *buckets, const Timeline *timeline)
{
	int64_t level = 0;

	json_key_array(json, "count");
	json_u64(json, 0);
	for (size_t i = 0; i < buckets->count; i++) {
		int64_t next = bucket_level(buckets, timeline, buckets->runnable_ns, i);

		json_thousandths(json, next - level);
		level = next;
	}
	json_end_array(json);
}

/* Milliseconds of CPU time per bucket: the viewer divides by the bucket's width. */
static void write_usage(Json *json, const Buckets *buckets, const Timeline *timeline)
{
	(void)timeline;
	json_key_array(json, "count");
	json_u64(json, 0);
	for (size_t i = 0; i < buckets->count; i++)
		json_ms(json, buckets->running_ns[i]);
	json_end_array(json);
}

typedef struct CounterKind {
	const char *name, *description, *graph, *color, *source, *unit;
	unsigned int weight;
	void (*write_counts)(Json *json, const Buckets *buckets, const Timeline *timeline);
} CounterKind;

static void write_display(Json *json, const CounterKind *kind)
{
	json_key_object(json, "display");
	json_key_string(json, "graphType", kind->graph);
	json_key_string(json, "unit", "");
	json_key_string(json, "color", kind->color);
	json_key_null(json, "markerSchemaLocation");
	json_key_u64(json, "sortWeight", kind->weight);
	json_key_string(json, "label", kind->name);
	json_key_array(json, "tooltipRows");
	json_begin_object(json);
	json_key_string(json, "type", "value");
	json_key_string(json, "source", kind->source);
	json_key_object(json, "format");
	json_key_string(json, "unit", kind->unit);
	json_end_object(json);
	json_key_string(json, "label", kind->description);
	json_end_object(json);
	json_end_array(json);
	json_end_object(json);
}

static void write_counter(Profile *profile, const CounterKind *kind, const Buckets *buckets)
{
	Json *json = &profile->json;
	uint32_t system = tracks_system(&profile->tracks);

	json_begin_object(json);
	json_key_string(json, "name", kind->name);
	json_key_string(json, "category", "CPU");
	json_key_string(json, "description", kind->description);
	json_key(json, "pid");
	json_track_pid(json, profile->tracks.list.items[system].pid);
	json_key_u64(json, "mainThreadIndex", system);
	json_key_object(json, "samples");
	write_times(json, buckets, profile->timeline);
	kind->write_counts(json, buckets, profile->timeline);
	json_key_u64(json, "length", buckets->count + 1);
	json_end_object(json);
	write_display(json, kind);
	json_end_object(json);
}

void profile_write_counters(Profile *profile)
{
	static const CounterKind kinds[] = {
		{"Runnable threads", "threads waiting for a CPU", "line-accumulated", "red",
		 "accumulated", "number", 10, write_levels},
		{"CPU", "of one CPU used by the recorded threads", "line-rate", "blue", "rate",
		 "percent", 20, write_usage},
	};
	const Timeline *timeline = profile->timeline;
	uint64_t window = profile_time(timeline, timeline->end_ns);
	Buckets buckets = {.width_ns = MAX(BUCKET_NS, window / BUCKETS_MAX + 1)};

	buckets.count = MAX(window / buckets.width_ns, 1);
	buckets.runnable_ns = xcalloc(buckets.count, sizeof(uint64_t));
	buckets.running_ns = xcalloc(buckets.count, sizeof(uint64_t));
	for (size_t i = 0; i < timeline->threads.count; i++)
		add_thread(&buckets, timeline, &timeline->threads.items[i]);
	json_key_array(&profile->json, "counters");
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		write_counter(profile, &kinds[i], &buckets);
	json_end_array(&profile->json);
	free(buckets.runnable_ns);
	free(buckets.running_ns);
}
