/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * firefox_counters.c - the member "counters": the averages of load_counters.h, as the viewer draws
 * them.
 */
#include "firefox_parts.h"
#include "load_counters.h"

static void write_times(Json *json, const LoadCounters *counters)
{
	json_key_array(json, "time");
	json_u64(json, 0);
	for (size_t i = 0; i < counters->count; i++)
		json_ms(json, load_counters_end(counters, i));
	json_end_array(json);
}

/* Writes exact thousandths. */
static void json_thousandths(Json *json, int64_t value)
{
	char *p = json_value(json, FORMAT_MAX);

	if (value < 0) {
		*p++ = '-';
		value = -value;
	}
	json_value_end(json, json_format_ms(p, value * 1000));
}

/*
 * The viewer takes differences and sets the first to 0: both counters begin with an empty sample at
 * the start of the window.
 */
static void write_level(Json *json, const LoadCounters *counters, const uint64_t *sums)
{
	int64_t level = 0;

	json_key_array(json, "count");
	json_u64(json, 0);
	for (size_t i = 0; i < counters->count; i++) {
		int64_t next = load_counters_average(counters, sums, i);

		json_thousandths(json, next - level);
		level = next;
	}
	json_end_array(json);
}

/* Writes milliseconds of CPU time per bucket: the viewer divides by the bucket's width. */
static void write_usage(Json *json, const LoadCounters *counters, const uint64_t *sums)
{
	json_key_array(json, "count");
	json_u64(json, 0);
	for (size_t i = 0; i < counters->count; i++)
		json_ms(json, sums[i]);
	json_end_array(json);
}

static void write_bytes(Json *json, const LoadCounters *counters, const uint64_t *sums)
{
	json_key_array(json, "count");
	json_u64(json, 0);
	for (size_t i = 0; i < counters->count; i++)
		json_u64(json, sums[i]);
	json_end_array(json);
}

typedef struct CounterKind {
	const char *name, *description, *graph, *color, *source, *unit;
	unsigned int weight;
	void (*write_counts)(Json *json, const LoadCounters *counters, const uint64_t *sums);
	/* The offset of the sums in LoadCounters. */
	size_t sums;
	bool of_devices; /* only if there were requests */
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

static void write_counter(Profile *profile, const CounterKind *kind, const LoadCounters *counters)
{
	Json *json = &profile->json;
	uint32_t system = tracks_system(&profile->tracks);

	json_begin_object(json);
	json_key_string(json, "name", kind->name);
	json_key_string(json, "category", "CPU");
	json_key_string(json, "description", kind->description);
	json_key(json, "pid");
	track_json_pid(json, profile->tracks.list.items[system].pid);
	json_key_u64(json, "mainThreadIndex", system);
	json_key_object(json, "samples");
	write_times(json, counters);
	kind->write_counts(json, counters,
			   *(uint64_t *const *)((const char *)counters + kind->sums));
	json_key_u64(json, "length", counters->count + 1);
	json_end_object(json);
	write_display(json, kind);
	json_end_object(json);
}

void profile_write_counters(Profile *profile)
{
	static const CounterKind kinds[] = {
		{"Runnable threads", "threads waiting for a CPU", "line-accumulated", "red",
		 "accumulated", "number", 10, write_level, offsetof(LoadCounters, runnable_ns),
		 false},
		{"CPU", "of one CPU used by the recorded threads", "line-rate", "blue", "rate",
		 "percent", 20, write_usage, offsetof(LoadCounters, running_ns), false},
		{"Disk read", "read from block devices", "line-rate", "teal", "rate",
		 "bytes-per-second", 30, write_bytes, offsetof(LoadCounters, read_bytes), true},
		{"Disk write", "written to block devices", "line-rate", "orange", "rate",
		 "bytes-per-second", 31, write_bytes, offsetof(LoadCounters, written_bytes), true},
		{"I/O in flight", "requests to block devices", "line-accumulated", "purple",
		 "accumulated", "number", 32, write_level, offsetof(LoadCounters, in_flight_ns),
		 true},
	};
	LoadCounters counters = load_counters_make(profile->timeline);

	json_key_array(&profile->json, "counters");
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (!kinds[i].of_devices || profile->timeline->requests.list.count > 0)
			write_counter(profile, &kinds[i], &counters);
	json_end_array(&profile->json);
	load_counters_free(&counters);
}
