/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "functions.h"
#include "kernel_rules.h"
#include "page_table.h"
#include "path_waits.h"
#include "report_sections.h"
#include "text.h"
#include "wait_fields.h"
#include "wait_groups.h"
#include "waited_for.h"

#define OBJECTS_APART	3 /* per stack; more objects are merged into one line */
#define FUNCTIONS_SHOWN 30
#define GROUPS_WRITTEN	1000 /* to JSON */

#define PATH_COLUMN 0

static const TableColumn columns[] = {{"on the path", 12, 1}, {"waited", 12, 0}, {"times", 9, 2},
				      {"mean", 12, 4},	      {"p50", 12, 5},	 {"p99", 12, 6},
				      {"longest", 12, 3},     {"threads", 8, 2}};
static const TableColumn function_columns[] = {
	{"waited", 12, 0}, {"times", 9, 1}, {"shortest", 12, 7}, {"p25", 12, 6},   {"p50", 12, 5},
	{"p75", 12, 6},	   {"mean", 12, 4}, {"longest", 12, 3},	 {"threads", 8, 2}};

/* ---- waits --------------------------------------------------------------------------------- */

static void print_line(const Table *table, Distribution *waits, uint64_t path_ns, size_t threads,
		       const char *what)
{
	const char *cells[] = {DURATION(path_ns),
			       DURATION(waits->total_ns),
			       COUNT(waits->ns.count),
			       DURATION(distribution_mean(waits)),
			       DURATION(distribution_at(waits, 0.5)),
			       DURATION(distribution_at(waits, 0.99)),
			       DURATION(distribution_at(waits, 1)),
			       COUNT(threads)};

	page_table_row(table, cells, what);
}

/* Returns ", /etc/passwd", ", 150 files" or "". The caller frees it. */
static char *object_text_of(const Timeline *timeline, const WaitGroup *group)
{
	const Object *object;

	if (group->object >= timeline->objects.list.count)
		return xstrdup("");
	object = &timeline->objects.list.items[group->object];
	if (group->objects > 1)
		return xasprintf(", %zu %s", group->objects,
				 object->kind == OBJECT_FILE ? "files" : "objects");
	_cleanup_free_ char *name = text_printable(object->name);
	return xasprintf(", %s", name);
}

/* Returns the name of the processes that waited, if they have one name; else their number. */
static char *process_text(const Timeline *timeline, const WaitGroup *group)
{
	const char *name = NULL;
	bool same = true;
	Map seen = {};
	char *text;

	for (size_t i = 0; i < group->threads.count; i++) {
		uint32_t number = timeline->threads.items[group->threads.items[i]].process;
		const char *its_name = timeline->processes.items[number].name;

		map_set(&seen, number, 1);
		same = same && its_name && (!name || !strcmp(name, its_name));
		name = its_name;
	}
	text = same && name ? text_printable(name) : xasprintf("%zu processes", seen.count);
	map_free(&seen);
	return text;
}

static void print_group(const Table *table, const Report *report, WaitGroup *group)
{
	/* The kernel's functions are evidence, which few readers of a page want. */
	const char *basis = report->brief ? NULL : group->basis;
	_cleanup_free_ char *of = object_text_of(report->timeline, group);
	_cleanup_free_ char *where = text_printable(group->chain);
	_cleanup_free_ char *then = text_then_runnable(group->waits.total_ns, group->delay_ns);
	_cleanup_free_ char *reason = report_reason_text(report->page, group->reason);
	_cleanup_free_ char *what =
		xasprintf("%s%s%s%s%s", reason, basis ? " " : "", basis ? basis : "", of, then);
	_cleanup_free_ char *who = report->brief ? process_text(report->timeline, group) : NULL;
	_cleanup_free_ char *detail = xasprintf(
		"%s%s%s%s", who ? who : "", who && *where ? ": " : "", *where ? "in " : "", where);

	print_line(table, &group->waits, group->path_ns, group->threads.count, what);
	if (*detail)
		page_table_detail(table, detail);
}

/*
 * Adds the parts of the critical path to the groups of the waits that it lies in, and of those that
 * it followed to another thread.
 */
static void charge_path(WaitGroups *groups, const Timeline *timeline)
{
	PathWaits waits = path_waits_find(timeline);

	for (size_t i = 0; i < waits.count; i++)
		wait_groups_charge(groups, timeline, waits.items[i].thread, waits.items[i].interval,
				   waits.items[i].ns + waits.items[i].other_ns);
	vec_free(&waits);
}

/* Sorts by the time on the critical path. */
static int compare_on_path(const void *a, const void *b)
{
	const WaitGroup *x = a, *y = b;

	if (x->path_ns != y->path_ns)
		return x->path_ns > y->path_ns ? -1 : 1;
	if (x->waits.total_ns != y->waits.total_ns)
		return x->waits.total_ns > y->waits.total_ns ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/*
 * Prints the largest groups, and the sum of the others; either all, or only those without a better
 * reason than the task state.
 */
static void print_list(const Report *report, WaitGroups *groups, const char *title,
		       bool unexplained)
{
	WaitGroup others = {};
	size_t shown = 0, left = 0;
	Table table;

	page_table_init(&table, report->page, columns, ARRAY_LEN(columns), report->max_rank);
	if (report->timeline->path.track.intervals.count == 0)
		table.hidden |= 1U << PATH_COLUMN;
	for (size_t i = 0; i < groups->list.count; i++) {
		WaitGroup *group = &groups->list.items[i];

		if ((unexplained && !reason_unexplained(group->reason)) ||
		    (report->brief && !waited_for_reason_counts(report->timeline, group->reason)))
			continue;
		page_table_head(&table, title);
		if (shown < report->rows) {
			print_group(&table, report, group);
			shown++;
		} else if (!report->brief) {
			wait_group_add(&others, group);
			left++;
		}
	}
	if (left > 0) {
		_cleanup_free_ char *text = text_others(left, /* files= */ false);

		wait_group_sort_threads(&others);
		print_line(&table, &others.waits, others.path_ns, others.threads.count, text);
	}
	distribution_free(&others.waits);
	vec_free(&others.threads);
}

void report_groups_print(const Report *report)
{
	WaitGroups groups =
		wait_groups_make(report->timeline, report->frames, /* with_idle= */ false);
	_cleanup_free_ char *unexplained =
		xasprintf("of these, named by the task state alone: %s, %.1f %% of the waits",
			  DURATION(groups.other_ns),
			  groups.total_ns ? 100.0 * groups.other_ns / groups.total_ns : 0);

	charge_path(&groups, report->timeline);
	wait_groups_merge_objects(&groups, OBJECTS_APART);
	/* What the run did not wait for may be longer, but is no answer. */
	if (report->brief && groups.list.count > 1)
		qsort(groups.list.items, groups.list.count, sizeof(WaitGroup), compare_on_path);
	print_list(report, &groups, "waits by reason, object and stack", /* unexplained= */ false);
	if (groups.other_ns > 0 && !report->brief)
		print_list(report, &groups, unexplained, /* unexplained= */ true);
	wait_groups_free(&groups);
}

/* ---- functions ----------------------------------------------------------------------------- */

static void print_function(void *user, FunctionWaits *function)
{
	Table *table = user;
	_cleanup_free_ char *text = function_text(function->function, function->library);
	_cleanup_free_ char *name = text_printable(text);
	Distribution *waits = &function->waits;
	const char *cells[] = {DURATION(waits->total_ns),
			       COUNT(waits->ns.count),
			       DURATION(distribution_at(waits, 0)),
			       DURATION(distribution_at(waits, 0.25)),
			       DURATION(distribution_at(waits, 0.5)),
			       DURATION(distribution_at(waits, 0.75)),
			       DURATION(distribution_mean(waits)),
			       DURATION(distribution_at(waits, 1)),
			       COUNT(function->threads)};

	page_table_head(table, "waits by function (inclusive)");
	page_table_row(table, cells, name);
	if (function->others && *function->others && table->details) {
		_cleanup_free_ char *others = text_printable(function->others);
		_cleanup_free_ char *detail = xasprintf("with the same waits: %s", others);

		page_table_detail(table, detail);
	}
}

bool report_function_print(const Report *report, const char *name)
{
	WaitGroups groups =
		wait_groups_make(report->timeline, report->frames, /* with_idle= */ true);
	Table table;
	bool found;

	page_table_init(&table, report->page, function_columns, ARRAY_LEN(function_columns),
			report->max_rank);
	found = wait_groups_by_function(&groups, name, report->rows, print_function, &table) > 0;
	wait_groups_free(&groups);
	return found;
}

void report_wait_functions_print(const Report *report)
{
	WaitGroups groups =
		wait_groups_make(report->timeline, report->frames, /* with_idle= */ false);
	Table table;

	page_table_init(&table, report->page, function_columns, ARRAY_LEN(function_columns),
			report->max_rank);
	table.details = !report->brief;
	wait_groups_telling_functions(&groups, report->rows, print_function, &table);
	wait_groups_free(&groups);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void key_or_null(Json *json, const char *key, const char *text)
{
	if (text)
		json_key_string(json, key, text);
	else
		json_key_null(json, key);
}

static void write_groups(Json *json, const Timeline *timeline, WaitGroups *groups)
{
	json_key_u64(json, "blocked_ns", groups->total_ns);
	json_key_u64(json, "other_ns", groups->other_ns);
	json_key_array(json, "waits");
	for (size_t i = 0; i < MIN(groups->list.count, (size_t)GROUPS_WRITTEN); i++) {
		WaitGroup *group = &groups->list.items[i];

		json_begin_object(json);
		json_key_string(json, "reason", reason_info[group->reason].leaf);
		key_or_null(json, "evidence", group->basis);
		object_json(json, group->object < timeline->objects.list.count
					  ? &timeline->objects.list.items[group->object]
					  : NULL);
		json_key_string(json, "chain", group->chain);
		json_key_u64(json, "threads", group->threads.count);
		json_key_u64(json, "path_ns", group->path_ns);
		json_key_u64(json, "then_runnable_ns", group->delay_ns);
		distribution_json(json, &group->waits);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_function_members(Json *json, FunctionWaits *function)
{
	json_key_string(json, "function", function->function);
	key_or_null(json, "library", function->library);
	json_key_u64(json, "threads", function->threads);
	distribution_json(json, &function->waits);
}

static void write_function(void *user, FunctionWaits *function)
{
	Json *json = user;

	json_begin_object(json);
	write_function_members(json, function);
	json_end_object(json);
}

static void write_telling_function(void *user, FunctionWaits *function)
{
	Json *json = user;

	json_begin_object(json);
	write_function_members(json, function);
	json_key_string(json, "same_waits", function->others);
	json_end_object(json);
}

void report_groups(Json *json, const Timeline *timeline, Frames *frames, const char *function,
		   bool by_path)
{
	WaitGroups groups = wait_groups_make(timeline, frames, /* with_idle= */ false), all = {};

	charge_path(&groups, timeline);
	if (by_path && groups.list.count > 1)
		qsort(groups.list.items, groups.list.count, sizeof(WaitGroup), compare_on_path);
	write_groups(json, timeline, &groups);
	json_key_array(json, "functions");
	if (function) {
		all = wait_groups_make(timeline, frames, /* with_idle= */ true);
		wait_groups_by_function(&all, function, SIZE_MAX, write_function, json);
		wait_groups_free(&all);
	} else {
		wait_groups_by_function(&groups, NULL, FUNCTIONS_SHOWN, write_function, json);
	}
	json_end_array(json);
	json_key_array(json, "wait_functions");
	wait_groups_telling_functions(&groups, GROUPS_WRITTEN, write_telling_function, json);
	json_end_array(json);
	wait_groups_free(&groups);
}
