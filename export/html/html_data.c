/* SPDX-License-Identifier: GPL-2.0-or-later */
/* html_data.c - the data of the page: names, sums, the report, and where the columns are. */
#include "html_parts.h"
#include "report.h"
#include "text.h"
#include <errno.h>

#define DATA_FORMAT 1
/* Rows of each table of the report, which is cut like that of `report --json --top`. */
#define TABLE_ROWS 200
/* Of source texts the page has so many bytes at most. */
#define SOURCE_BYTES (1u << 20)

static const char *const column_names[COLUMN_COUNT] = {
	[COLUMN_SEGMENT_START] = "segmentStart",
	[COLUMN_SEGMENT_WEIGHT] = "segmentWeight",
	[COLUMN_SEGMENT_STACK] = "segmentStack",
	[COLUMN_STACK_PREFIX] = "stackPrefix",
	[COLUMN_STACK_FRAME] = "stackFrame",
	[COLUMN_FRAME_FUNC] = "frameFunc",
	[COLUMN_FRAME_LINE] = "frameLine",
	[COLUMN_FRAME_CATEGORY] = "frameCategory",
	[COLUMN_FUNC_NAME] = "funcName",
	[COLUMN_FUNC_LIB] = "funcLib",
	[COLUMN_FUNC_SOURCE] = "funcSource",
	[COLUMN_PATH_START] = "pathStart",
	[COLUMN_PATH_LENGTH] = "pathLength",
	[COLUMN_PATH_OWNER] = "pathOwner",
	[COLUMN_PATH_NAME] = "pathName",
	[COLUMN_WAIT_THREAD] = "waitThread",
	[COLUMN_WAIT_START] = "waitStart",
	[COLUMN_WAIT_LENGTH] = "waitLength",
	[COLUMN_WAIT_OBJECT] = "waitObject",
	[COLUMN_WAIT_WAKER] = "waitWaker",
	[COLUMN_WAIT_WAKER_THREAD] = "waitWakerThread",
	[COLUMN_WAIT_HOLDER] = "waitHolder",
	[COLUMN_WAIT_CHAIN] = "waitChain",
};

/* The states of the ledger that a category belongs to. */
static const char *state_of(enum category category)
{
	switch (category) {
	case CATEGORY_USER:
	case CATEGORY_KERNEL:
	case CATEGORY_RECORDING:
		return "running";
	case CATEGORY_RUNNABLE:
		return "runnable";
	case CATEGORY_UNKNOWN:
		return "unknown";
	default:
		return "blocked";
	}
}

static void write_categories(Json *json)
{
	json_key_array(json, "categories");
	for (size_t i = 0; i < CATEGORY_COUNT; i++) {
		json_begin_object(json);
		json_key_string(json, "name", category_info[i].name);
		json_key_string(json, "meaning", category_info[i].meaning);
		json_key_string(json, "state", state_of(i));
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_threads(Json *json, const HtmlData *data)
{
	const Timeline *timeline = data->timeline;

	json_key_array(json, "threads");
	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];
		const Process *process = &timeline->processes.items[thread->process];

		json_begin_object(json);
		json_key_u64(json, "tid", thread->ns_tid ? thread->ns_tid : thread->tid);
		json_key_u64(json, "pid", process->ns_tgid ? process->ns_tgid : process->tgid);
		json_key_string(json, "name", thread->name ? thread->name : "");
		json_key_string(json, "label", process->label ? process->label : "");
		json_key_u64(json, "start", timeline_time(timeline, thread->start_ns));
		json_key_u64(json, "end", timeline_time(timeline, thread->end_ns));
		json_key_u64(json, "segments", data->segment_counts.items[i]);
		json_key_array(json, "states");
		for (size_t state = 0; state < STATE_COUNT; state++)
			json_u64(json, thread->ledger[state]);
		json_end_array(json);
		json_end_object(json);
	}
	json_end_array(json);
}

/* The path and the CPUs are tracks without a thread. */
static void write_series(Json *json, const HtmlData *data)
{
	const Timeline *timeline = data->timeline;
	size_t at = timeline->threads.count;

	if (timeline->path.track.intervals.count > 0) {
		const Thread *track = &timeline->path.track;

		json_key_object(json, "path");
		json_key_string(json, "name", track->name ? track->name : "");
		json_key_u64(json, "start", timeline_time(timeline, track->start_ns));
		json_key_u64(json, "end", timeline_time(timeline, track->end_ns));
		json_key_u64(json, "segments", data->segment_counts.items[at++]);
		json_end_object(json);
	} else {
		json_key_null(json, "path");
	}
	json_key_array(json, "cpus");
	for (size_t i = 0; i < timeline->cpus.count; i++)
		json_u64(json, data->segment_counts.items[at++]);
	json_end_array(json);
}

/* In the order of all profiles: what matters most comes first. */
static void write_tracks(Json *json, const HtmlData *data)
{
	json_key_array(json, "tracks");
	for (size_t i = 0; i < data->tracks.list.count; i++) {
		const Track *track = &data->tracks.list.items[i];

		if (track->threads.count == 0 || track->is_path)
			continue;
		json_begin_object(json);
		json_key_string(json, "name", track->name ? track->name : "");
		json_key_string(json, "process", track->process_name ? track->process_name : "");
		json_key_bool(json, "main", track->is_main);
		json_key_bool(json, "lane", track->is_lane);
		json_key_array(json, "threads");
		for (size_t k = 0; k < track->threads.count; k++)
			json_u64(json, track->threads.items[k]);
		json_end_array(json);
		json_end_object(json);
	}
	json_end_array(json);
}

/* What the page shows folded or without details; it says so. */
static void write_left_out(Json *json, const HtmlData *data)
{
	json_key_object(json, "folded");
	json_key_u64(json, "intervals", data->rows.folded);
	json_key_u64(json, "ns", data->rows.folded_ns);
	json_key_u64(json, "below_ns", data->rows.fold_ns);
	json_key_u64(json, "cpu_runs", data->cpus.folded);
	json_key_u64(json, "cpu_below_ns", data->cpus.fold_ns);
	json_end_object(json);
	json_key_object(json, "waits");
	json_key_u64(json, "all", data->waits);
	json_key_u64(json, "detailed", data->waits_with_details);
	json_key_u64(json, "least_ns", data->waits_with_details ? data->least_wait_ns : 0);
	json_end_object(json);
}

/* Texts that do not fit are left out: the first ones are those of the functions that come first. */
static void write_sources(Json *json, const HtmlData *data)
{
	const StackTable *tables = data->tables;
	uint64_t bytes = 0, left_out = 0;

	json_key_array(json, "sources");
	for (size_t i = 0; i < tables->sources.count; i++) {
		const SourceRow *row = &tables->sources.items[i];
		const SourceText *text = frames_source_text(
			data->frames, strings_get(&data->frames->strings, row->path));

		json_begin_object(json);
		json_key_string(json, "path", strings_get(&data->frames->strings, row->path));
		json_key(json, "text");
		if (text && text->size <= SOURCE_BYTES - bytes) {
			json_text(json, text->text, text->size);
			bytes += text->size;
		} else {
			json_put_null(json);
			left_out += text != NULL;
		}
		json_end_object(json);
	}
	json_end_array(json);
	json_key_u64(json, "sources_left_out", left_out);
}

static void write_strings(Json *json, const StackTable *tables)
{
	json_key_array(json, "strings");
	for (size_t i = 0; i < tables->strings.list.count; i++)
		json_put_string(json, strings_get(&tables->strings, i));
	json_end_array(json);
}

static void write_meta(Json *json, const Timeline *timeline)
{
	json_key_object(json, "settings");
	for (size_t i = 0; i < timeline->meta_keys.list.count; i++)
		json_key_string(json, strings_get(&timeline->meta_keys, i),
				timeline->meta_values.items[i]);
	json_end_object(json);
}

static void write_columns(Json *json, const HtmlData *data)
{
	size_t at = 0;

	json_key_object(json, "columns");
	for (size_t i = 0; i < COLUMN_COUNT; i++) {
		json_key_array(json, column_names[i]);
		json_u64(json, at);
		json_u64(json, data->columns[i].count);
		json_end_array(json);
		at += data->columns[i].count;
	}
	json_end_object(json);
}

/* Returns 0 or a negative errno. */
static int write_report(Json *json, const HtmlData *data)
{
	const ReportSelection selection = {.top = TABLE_ROWS, .timeline = THREAD_NONE};
	_cleanup_free_ char *text = NULL;
	uint64_t smallest;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	Output *output;
	int error;

	if (!stream)
		return -ENOMEM;
	output = output_for_stream(stream);
	error = report_json_part(output, data->timeline, data->frames, NULL, &selection, &smallest);
	error = output_close(output) ?: error;
	fclose(stream);
	json_key(json, "report");
	/* It ends in a newline. */
	if (!error)
		output_write(json->out, text, strcspn(text, "\n"));
	json->comma = true;
	return error;
}

static int write_json(Json *json, const HtmlData *data)
{
	const Timeline *timeline = data->timeline;
	int error;

	json_begin_object(json);
	json_key_u64(json, "format", DATA_FORMAT);
	json_key_u64(json, "window_ns", timeline->end_ns - timeline->start_ns);
	json_key_bool(json, "whole_system", timeline->whole_system);
	write_categories(json);
	write_threads(json, data);
	write_series(json, data);
	write_tracks(json, data);
	write_left_out(json, data);
	write_sources(json, data);
	write_strings(json, data->tables);
	write_meta(json, timeline);
	write_columns(json, data);
	error = write_report(json, data);
	json_end_object(json);
	return error;
}

static void append_all(const HtmlData *data, const char *text, size_t size, Bytes *ret_data)
{
	const uint8_t length[4] = {size, size >> 8, size >> 16, size >> 24};

	vec_append(ret_data, length, sizeof(length));
	vec_append(ret_data, (const uint8_t *)text, size);
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		vec_append(ret_data, data->columns[i].items, data->columns[i].count);
}

int html_data_make(const Timeline *timeline, Frames *frames, const HtmlPlan *plan, Bytes *ret_data)
{
	HtmlData data = {
		.timeline = timeline,
		.frames = frames,
		.tables = stack_table_new(timeline, frames),
	};
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	int error = stream ? 0 : -ENOMEM;

	if (stream) {
		Json json = {.out = output_for_stream(stream)};

		tracks_init(&data.tracks, timeline);
		html_columns_make(&data, plan);
		error = write_json(&json, &data);
		error = output_close(json.out) ?: error;
		fclose(stream);
		if (!error)
			append_all(&data, text, size, ret_data);
		html_columns_free(&data);
		tracks_free(&data.tracks);
	}
	stack_table_free(data.tables);
	return error;
}
