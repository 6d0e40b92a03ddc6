/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "page_table.h"
#include "report_places.h"
#include "report_sections.h"
#include "text.h"

#define THREADS_IN_LINE 3

static const TableColumn thread_columns[] = {{"on the path", 12, 0}, {"share", 7, 1},
					     {"running", 12, 2},     {"runnable", 12, 4},
					     {"waiting", 12, 3},     {"times", 9, 5}};
static const TableColumn place_columns[] = {{"on the path", 12, 0}, {"share", 7, 1}};

/* One thread's part of the path. */
typedef struct Part {
	uint32_t thread; /* Timeline::threads */
	uint64_t ns, states[STATE_COUNT];
	uint64_t times; /* how often it came on the path */
} Part;

typedef VEC(Part) Parts;

static int compare_parts(const void *a, const void *b)
{
	const Part *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

/* Sorts the largest first. */
static Parts parts_of(const Timeline *timeline)
{
	const Thread *track = &timeline->path.track;
	Parts parts = {};
	Map index = {};

	for (size_t i = 0; i < track->intervals.count; i++) {
		uint32_t owner = track->owners.items[i], number = map_get(&index, owner);
		uint64_t ns = interval_end(track, i) - track->intervals.items[i].start_ns;
		Part *part;

		if (number == MAP_NONE) {
			number = parts.count;
			map_set(&index, owner, number);
			*vec_push(&parts) = (Part){.thread = owner};
		}
		part = &parts.items[number];
		part->ns += ns;
		part->states[track->intervals.items[i].state] += ns;
		part->times += i == 0 || track->owners.items[i - 1] != owner;
	}
	map_free(&index);
	if (parts.count > 1)
		qsort(parts.items, parts.count, sizeof(Part), compare_parts);
	return parts;
}

static uint64_t length_of(const Timeline *timeline)
{
	return timeline->path.track.end_ns - timeline->path.track.start_ns;
}

/* ---- text ---------------------------------------------------------------------------------- */

static bool has_ended_process(const Timeline *timeline)
{
	for (size_t i = 0; i < timeline->processes.count; i++)
		if (timeline->processes.items[i].exited_in_window)
			return true;
	return false;
}

/*
 * Returns why there is no path, and the thread whose path to look at instead. The caller frees it.
 */
static char *none_text(const Timeline *timeline)
{
	const CriticalPath *path = &timeline->path;
	const Thread *busiest = NULL;
	_cleanup_free_ char *why = NULL, *name = NULL;

	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];

		if (!busiest || thread->ledger[STATE_RUNNING] > busiest->ledger[STATE_RUNNING])
			busiest = thread;
	}
	if (path->hidden) {
		_cleanup_free_ char *end =
			text_printable(thread_label(timeline, &timeline->threads.items[path->end]));

		why = xasprintf(
			"%.1f %% of it is %s (%u) in %s%s", 100 * path->hidden_share, end,
			timeline->threads.items[path->end].ns_tid, reason_info[path->hidden].leaf,
			path->hidden == REASON_SLEEP ? ""
						     : " until an event from outside wakes it");
	} else {
		why = xstrdup(path->track.name	       ? "no events of the thread were recorded"
			      : timeline->whole_system ? "it is not computed for a whole system"
			      : has_ended_process(timeline) ? "only child processes ended"
							    : "no process ended");
	}
	if (!busiest)
		return xstrdup(why);
	name = text_printable(thread_label(timeline, busiest));
	return xasprintf("%s; --critical-path=TID prints that of a thread (the busiest is %s (%u), "
			 "which ran for %s)",
			 why, name, busiest->ns_tid, DURATION(busiest->ledger[STATE_RUNNING]));
}

char *report_path_title(const Timeline *timeline)
{
	const Thread *end;
	uint64_t window_ns = timeline->end_ns - timeline->start_ns;
	uint64_t rest_ns = window_ns - MIN(window_ns, length_of(timeline));
	_cleanup_free_ char *name = NULL;
	_cleanup_free_ char *rest =
		rest_ns > window_ns / 1000
			? xasprintf(" (%s, %s of the window, not on it)", DURATION(rest_ns),
				    PERCENT(rest_ns, window_ns))
			: xstrdup("");

	if (timeline->path.track.intervals.count == 0) {
		_cleanup_free_ char *none = none_text(timeline);

		return xasprintf("%s: %s",
				 timeline->path.hidden ? "the critical path is not shown"
						       : "no critical path",
				 none);
	}
	end = &timeline->threads.items[timeline->path.end];
	name = text_printable(thread_label(timeline, end));
	return xasprintf("critical path: %s%s, ending at %s (%u)", DURATION(length_of(timeline)),
			 rest, name, end->ns_tid);
}

char *report_path_text(const Timeline *timeline)
{
	char *text = report_path_title(timeline);
	Parts parts = parts_of(timeline);

	for (size_t i = 0; i < parts.count && i < THREADS_IN_LINE; i++) {
		const Thread *thread = &timeline->threads.items[parts.items[i].thread];
		_cleanup_free_ char *name = text_printable(thread_label(timeline, thread));
		char *longer = xasprintf("%s%s %s %s (%u)", text, i == 0 ? ":" : ",",
					 PERCENT(parts.items[i].ns, length_of(timeline)), name,
					 thread->ns_tid);

		free(text);
		text = longer;
	}
	vec_free(&parts);
	return text;
}

static void print_part(const Table *table, const Timeline *timeline, const Part *part,
		       const char *name)
{
	const char *cells[] = {DURATION(part->ns),
			       PERCENT(part->ns, length_of(timeline)),
			       DURATION(part->states[STATE_RUNNING]),
			       DURATION(part->states[STATE_RUNNABLE]),
			       DURATION(part->states[STATE_BLOCKED]),
			       COUNT(part->times)};

	page_table_row(table, cells, name);
}

static void add_part(Part *others, const Part *part)
{
	others->ns += part->ns;
	others->times += part->times;
	for (size_t s = 0; s < STATE_COUNT; s++)
		others->states[s] += part->states[s];
}

static void print_threads(const Report *report)
{
	const Timeline *timeline = report->timeline;
	Parts parts = parts_of(timeline);
	Part others = {};
	Table table;

	page_table_init(&table, report->page, thread_columns, ARRAY_LEN(thread_columns),
			report->max_rank);
	page_table_head(&table, "thread");
	for (size_t i = 0; i < parts.count; i++) {
		const Part *part = &parts.items[i];
		const Thread *thread = &timeline->threads.items[part->thread];
		_cleanup_free_ char *name = text_printable(thread_label(timeline, thread)),
				    *text = NULL;

		if (i >= report->rows) {
			add_part(&others, part);
			continue;
		}
		text = xasprintf("%s (%u)", name, thread->ns_tid);
		print_part(&table, timeline, part, text);
	}
	if (parts.count > report->rows) {
		_cleanup_free_ char *text =
			text_others(parts.count - report->rows, /* files= */ false);

		print_part(&table, timeline, &others, text);
	}
	vec_free(&parts);
}

static void print_share(const Table *table, const Timeline *timeline, uint64_t ns, const char *what)
{
	const char *cells[] = {DURATION(ns), PERCENT(ns, length_of(timeline))};

	if (ns > 0)
		page_table_row(table, cells, what);
}

static void print_places(const Report *report)
{
	const Timeline *timeline = report->timeline;
	uint64_t left_ns = 0;
	size_t left = 0;
	Places places;
	Table table;

	report_places_init(&places, timeline, report->frames);
	report_places_add(&places, timeline->threads.count);
	report_places_sort(&places);
	page_table_init(&table, report->page, place_columns, ARRAY_LEN(place_columns),
			report->max_rank);
	page_table_head(&table, "where");
	for (size_t i = 0; i < places.list.count && places.list.items[i].ns > 0; i++) {
		const Place *place = &places.list.items[i];
		_cleanup_free_ char *name = report_place_name(&places, place);

		if (i >= report->rows) {
			left_ns += place->ns;
			left++;
			continue;
		}
		print_share(&table, timeline, place->ns, name);
	}
	if (left > 0) {
		_cleanup_free_ char *text = text_others(left, /* files= */ false);

		print_share(&table, timeline, left_ns, text);
	}
	report_places_free(&places);
}

static void print_unknown(const Report *report)
{
	const CriticalPath *path = &report->timeline->path;
	const struct {
		uint64_t ns;
		const char *what;
	} parts[] = {
		{path->open_ns, "asleep until the end of the recording"},
		{path->outside_ns, "woken by a task that was not recorded"},
		{path->unknown_waker_ns, "waker unknown; the path ends here"},
		{path->lost_ns, "unknown (events lost, or context switches not traced)"},
	};
	Table table;

	page_table_init(&table, report->page, place_columns, ARRAY_LEN(place_columns),
			report->max_rank);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (parts[i].ns > 0)
			page_table_head(&table, "including");
		print_share(&table, report->timeline, parts[i].ns, parts[i].what);
	}
	if (path->unseen_ns) {
		page_line(report->page, "%s", "");
		page_line(report->page, "the path is not known for the first %s",
			  DURATION(path->unseen_ns));
	}
}

void report_path_print(const Report *report)
{
	const Timeline *timeline = report->timeline;

	_cleanup_free_ char *title = report_path_title(timeline);

	page_paragraph(report->page, REPORT_INDENT, title);
	if (timeline->path.track.intervals.count == 0)
		return;
	print_threads(report);
	print_places(report);
	print_unknown(report);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void write_parts(Json *json, const Timeline *timeline)
{
	Parts parts = parts_of(timeline);

	json_key_array(json, "threads");
	for (size_t i = 0; i < parts.count; i++) {
		const Part *part = &parts.items[i];
		const Thread *thread = &timeline->threads.items[part->thread];

		json_begin_object(json);
		json_key_u64(json, "tid", thread->ns_tid);
		json_key_string(json, "name", thread->name ? thread->name : "");
		json_key_u64(json, "ns", part->ns);
		json_key_u64(json, "running_ns", part->states[STATE_RUNNING]);
		json_key_u64(json, "runnable_ns", part->states[STATE_RUNNABLE]);
		json_key_u64(json, "blocked_ns", part->states[STATE_BLOCKED]);
		json_key_u64(json, "times", part->times);
		json_end_object(json);
	}
	json_end_array(json);
	vec_free(&parts);
}

static void write_places(Json *json, const Timeline *timeline, Frames *frames)
{
	Places places;

	report_places_init(&places, timeline, frames);
	report_places_add(&places, timeline->threads.count);
	report_places_sort(&places);
	report_places(json, &places);
	report_places_free(&places);
}

void report_path(Json *json, const Timeline *timeline, Frames *frames)
{
	const CriticalPath *path = &timeline->path;

	if (path->track.intervals.count == 0) {
		_cleanup_free_ char *none = none_text(timeline);

		json_key_null(json, "critical_path");
		json_key_string(json, "no_critical_path", none);
		return;
	}
	json_key_object(json, "critical_path");
	json_key_u64(json, "end_tid", timeline->threads.items[path->end].ns_tid);
	json_key_u64(json, "length_ns", length_of(timeline));
	json_key_u64(json, "lost_ns", path->lost_ns);
	json_key_u64(json, "outside_ns", path->outside_ns);
	json_key_u64(json, "unknown_waker_ns", path->unknown_waker_ns);
	json_key_u64(json, "open_ns", path->open_ns);
	json_key_u64(json, "unseen_ns", path->unseen_ns);
	write_parts(json, timeline);
	json_key_object(json, "reasons");
	for (size_t i = 0; i < REASON_COUNT; i++)
		if (path->track.reason_ledger[i] > 0)
			json_key_u64(json, reason_info[i].leaf, path->track.reason_ledger[i]);
	json_end_object(json);
	write_places(json, timeline, frames);
	json_end_object(json);
}
