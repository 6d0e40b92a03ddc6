/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "firefox_parts.h"

static void write_milliseconds(Json *json, const char *name, const uint64_t *ns, size_t count)
{
	json_key_array(json, name);
	for (size_t i = 0; i < count; i++)
		json_ms(json, ns[i]);
	json_end_array(json);
}

static void write_times(Profile *profile)
{
	const TrackRows *rows = &profile->track_rows;

	json_key_array(&profile->json, "time");
	for (size_t i = 0; i < rows->ns.count; i++)
		json_ms(&profile->json, timeline_time(profile->timeline, rows->ns.items[i]));
	json_end_array(&profile->json);
}

/* Running time since the previous row. */
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

	track_rows_make(rows, profile->tables, &profile->rows, &profile->cpus, track,
			profile->options->cpu_graph);
	json_key_object(json, "samples");
	json_key_array(json, "stack");
	for (size_t i = 0; i < rows->stacks.count; i++)
		json_u64(json, rows->stacks.items[i]);
	json_end_array(json);
	write_times(profile);
	write_milliseconds(json, "weight", rows->weight_ns.items, rows->weight_ns.count);
	if (profile->options->cpu_graph)
		write_cpu_deltas(profile);
	json_key_string(json, "weightType", "tracing-ms");
	json_key_u64(json, "length", rows->stacks.count);
	json_end_object(json);
}
