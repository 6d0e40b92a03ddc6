/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "firefox.h"
#include "firefox_parts.h"

#define ROW_STEP_NS NSEC_PER_MSEC
/* CPUs have rows besides those of the threads: this fraction of them. */
#define CPU_ROWS_PART 4

/*
 * The viewer shows a process's type in the row's tooltip, and puts processes of this type first; it
 * orders the others by their numbers of rows.
 */
#define PARENT_PROCESS "default"

/* Writes a time, or null for an event outside of the window. */
static void key_time(Profile *profile, const char *key, bool known, uint64_t ns)
{
	json_key(&profile->json, key);
	if (known)
		json_ms(&profile->json, timeline_time(profile->timeline, ns));
	else
		json_put_null(&profile->json);
}

static void write_thread(Profile *profile, const Track *track)
{
	Json *json = &profile->json;

	json_begin_object(json);
	json_key_string(json, "name", track->name);
	json_key_string(json, "processName", track->process_name);
	json_key_bool(json, "isMainThread", track->is_main);
	json_key(json, "pid");
	track_json_pid(json, track->pid);
	json_key(json, "tid");
	track_json_tid(json, track->tid);
	json_key_string(json, "processType", track->is_path ? PARENT_PROCESS : track->process_name);
	key_time(profile, "processStartupTime", true, track->process_start_ns);
	key_time(profile, "processShutdownTime", track->process_ended, track->process_end_ns);
	key_time(profile, "registerTime", true, track->start_ns);
	key_time(profile, "unregisterTime", track->ended, track->end_ns);
	json_key_array(json, "pausedRanges");
	json_end_array(json);
	json_key_bool(json, "showMarkersInTimeline", false);
	profile_write_samples(profile, track);
	profile_write_markers(profile, track);
	json_end_object(json);
}

static void write_profile(Profile *profile)
{
	Json *json = &profile->json;

	json_begin_object(json);
	profile_write_meta(profile);
	json_key_array(json, "threads");
	for (size_t i = 0; i < profile->tracks.list.count; i++)
		write_thread(profile, &profile->tracks.list.items[i]);
	json_end_array(json);
	profile_write_counters(profile);
	firefox_write_shared(profile->tables, json);
	json_key_array(json, "pages");
	json_end_array(json);
	json_end_object(json);
}

int firefox_write(Output *out, const Timeline *timeline, Frames *frames,
		  const FirefoxOptions *options)
{
	static const FirefoxOptions defaults = {};
	Profile profile = {
		.json = {.out = out},
		.timeline = timeline,
		.frames = frames,
		.tables = stack_table_new(timeline, frames),
	};
	uint64_t row_budget;

	options = options ? options : &defaults;
	row_budget = options->row_budget ? options->row_budget : FIREFOX_ROW_BUDGET;
	profile.cpu_graph = options->cpu_graph;
	tracks_init(&profile.tracks, timeline);
	row_plan_init(&profile.rows, timeline, ROW_STEP_NS);
	profile.rows.hidden = options->hidden;
	profile.rows.path_roots = profile_path_roots(&profile);
	sample_rows_fit(&profile.rows, profile.tables, row_budget);
	cpu_plan_fit(&profile.cpus, timeline, row_budget / CPU_ROWS_PART);
	marker_plan_fit(&profile.markers, timeline,
			options->marker_budget ? options->marker_budget : FIREFOX_MARKER_BUDGET);
	profile_plan_order(&profile, row_budget);
	write_profile(&profile);
	track_rows_free(&profile.track_rows);
	free(profile.rows.path_roots);
	free(profile.order_rows);
	row_plan_free(&profile.rows);
	tracks_free(&profile.tracks);
	stack_table_free(profile.tables);
	output_flush(out);
	return out->error;
}
