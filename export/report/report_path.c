/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report_places.h"
#include "report_sections.h"
#include "text.h"
#include <inttypes.h>

#define THREADS_IN_LINE 3
#define THREADS_SHOWN	15
#define PLACES_SHOWN	20

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

static double share(const Timeline *timeline, uint64_t ns)
{
	uint64_t length_ns = length_of(timeline);

	return length_ns ? 100.0 * ns / length_ns : 0;
}

/* ---- text ---------------------------------------------------------------------------------- */

static void print_title(FILE *file, const Timeline *timeline)
{
	const Thread *end = &timeline->threads.items[timeline->path.end];
	uint64_t window_ns = timeline->end_ns - timeline->start_ns;
	uint64_t rest_ns = window_ns - MIN(window_ns, length_of(timeline));
	_cleanup_free_ char *name = text_printable(thread_label(timeline, end));

	fprintf(file, "critical path: %s", DURATION(length_of(timeline)));
	if (rest_ns > window_ns / 1000)
		fprintf(file, " (%s, %.1f %% of the window, not on it)", DURATION(rest_ns),
			100.0 * rest_ns / window_ns);
	fprintf(file, ", ending at %s (%u)", name, end->ns_tid);
}

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
			"not shown: %.1f %% of it is %s (%u) in %s until an event from outside "
			"wakes it",
			100 * path->hidden_share, end, timeline->threads.items[path->end].ns_tid,
			reason_info[path->hidden].leaf);
	} else {
		why = xstrdup(path->track.name ? "none: no events of the thread were recorded"
			      : timeline->whole_system
				      ? "none: it is not computed for a whole system"
			      : has_ended_process(timeline) ? "none: only child processes ended"
							    : "none: no process ended");
	}
	if (!busiest)
		return xstrdup(why);
	name = text_printable(thread_label(timeline, busiest));
	return xasprintf("%s; --critical-path=TID prints that of a thread (the busiest is %s (%u), "
			 "which ran for %s)",
			 why, name, busiest->ns_tid, DURATION(busiest->ledger[STATE_RUNNING]));
}

void report_path_line(FILE *file, const Timeline *timeline)
{
	Parts parts = {};

	if (timeline->path.track.intervals.count == 0) {
		_cleanup_free_ char *none = none_text(timeline);

		fprintf(file, "critical path: %s\n", none);
		return;
	}
	parts = parts_of(timeline);
	print_title(file, timeline);
	for (size_t i = 0; i < parts.count && i < THREADS_IN_LINE; i++) {
		const Thread *thread = &timeline->threads.items[parts.items[i].thread];
		_cleanup_free_ char *name = text_printable(thread_label(timeline, thread));

		fprintf(file, "%s %.1f %% %s (%u)", i == 0 ? ":" : ",",
			share(timeline, parts.items[i].ns), name, thread->ns_tid);
	}
	fputc('\n', file);
	vec_free(&parts);
}

static void print_part(FILE *file, const Timeline *timeline, const Part *part, const char *name)
{
	fprintf(file, "%12s %5.1f %% %12s %12s %12s %9" PRIu64 "  %s\n", DURATION(part->ns),
		share(timeline, part->ns), DURATION(part->states[STATE_RUNNING]),
		DURATION(part->states[STATE_RUNNABLE]), DURATION(part->states[STATE_BLOCKED]),
		part->times, name);
}

static void add_part(Part *others, const Part *part)
{
	others->ns += part->ns;
	others->times += part->times;
	for (size_t s = 0; s < STATE_COUNT; s++)
		others->states[s] += part->states[s];
}

static void print_threads(FILE *file, const Timeline *timeline)
{
	Parts parts = parts_of(timeline);
	Part others = {};

	fprintf(file, "\n%12s %7s %12s %12s %12s %9s  %s\n", "on the path", "share", "running",
		"runnable", "waiting", "times", "thread");
	for (size_t i = 0; i < parts.count; i++) {
		const Part *part = &parts.items[i];
		const Thread *thread = &timeline->threads.items[part->thread];
		_cleanup_free_ char *name = text_printable(thread_label(timeline, thread)),
				    *text = NULL;

		if (i >= THREADS_SHOWN) {
			add_part(&others, part);
			continue;
		}
		text = xasprintf("%s (%u)", name, thread->ns_tid);
		print_part(file, timeline, part, text);
	}
	if (parts.count > THREADS_SHOWN) {
		_cleanup_free_ char *text =
			text_others(parts.count - THREADS_SHOWN, /* files= */ false);

		print_part(file, timeline, &others, text);
	}
	vec_free(&parts);
}

static void print_share(FILE *file, const Timeline *timeline, uint64_t ns, const char *what)
{
	if (ns > 0)
		fprintf(file, "%12s %5.1f %%  %s\n", DURATION(ns), share(timeline, ns), what);
}

static void print_places(FILE *file, const Timeline *timeline, Frames *frames)
{
	uint64_t left_ns = 0;
	size_t left = 0;
	Places places;

	report_places_init(&places, timeline, frames);
	report_places_add(&places, timeline->threads.count);
	report_places_sort(&places);
	fprintf(file, "\n%12s %7s  %s\n", "on the path", "share", "where");
	for (size_t i = 0; i < places.list.count && places.list.items[i].ns > 0; i++) {
		const Place *place = &places.list.items[i];
		_cleanup_free_ char *name = report_place_name(&places, place);

		if (i >= PLACES_SHOWN) {
			left_ns += place->ns;
			left++;
			continue;
		}
		print_share(file, timeline, place->ns, name);
	}
	if (left > 0) {
		_cleanup_free_ char *text = text_others(left, /* files= */ false);

		print_share(file, timeline, left_ns, text);
	}
	report_places_free(&places);
}

void report_path_print(FILE *file, const Timeline *timeline, Frames *frames)
{
	const CriticalPath *path = &timeline->path;

	if (path->track.intervals.count == 0) {
		_cleanup_free_ char *none = none_text(timeline);

		fprintf(file, "critical path: %s\n", none);
		return;
	}
	print_title(file, timeline);
	fputc('\n', file);
	print_threads(file, timeline);
	print_places(file, timeline, frames);
	if (path->lost_ns || path->outside_ns || path->unknown_waker_ns || path->open_ns)
		fprintf(file, "\nincluding\n");
	print_share(file, timeline, path->open_ns, "asleep until the end of the recording");
	print_share(file, timeline, path->outside_ns, "woken by a task that was not recorded");
	print_share(file, timeline, path->unknown_waker_ns, "waker unknown; the path ends here");
	print_share(file, timeline, path->lost_ns,
		    "unknown (events lost, or context switches not traced)");
	if (path->unseen_ns)
		fprintf(file, "\nthe path is not known for the first %s\n",
			DURATION(path->unseen_ns));
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
	json_key_array(json, "places");
	for (size_t i = 0; i < places.list.count; i++) {
		const Place *place = &places.list.items[i];
		_cleanup_free_ char *name = report_place_name(&places, place);

		json_begin_object(json);
		json_key_string(json, "name", name);
		json_key_string(json, "category", category_info[place->category].name);
		json_key_u64(json, "ns", place->ns);
		json_end_object(json);
	}
	json_end_array(json);
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
