/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "functions.h"
#include "kernel_rules.h"
#include "report_sections.h"
#include "text.h"
#include "wait_fields.h"
#include "wait_groups.h"
#include <inttypes.h>

#define GROUPS_SHOWN	10
#define INDENT		22 /* of the stack below a wait */
#define OTHERS_SHOWN	5
#define OBJECTS_APART	3 /* per stack; more objects are merged into one line */
#define FUNCTIONS_SHOWN 30
#define GROUPS_WRITTEN	1000 /* to JSON */

/* ---- waits --------------------------------------------------------------------------------- */

static void print_line(FILE *file, Distribution *waits, size_t threads, const char *what)
{
	fprintf(file, "%12s %9zu %12s %12s %12s %12s %8zu  %s\n", DURATION(waits->total_ns),
		waits->ns.count, DURATION(distribution_mean(waits)),
		DURATION(distribution_at(waits, 0.5)), DURATION(distribution_at(waits, 0.99)),
		DURATION(distribution_at(waits, 1)), threads, what);
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

static void print_group(FILE *file, const Timeline *timeline, WaitGroup *group)
{
	_cleanup_free_ char *of = object_text_of(timeline, group);
	_cleanup_free_ char *where = text_printable(group->chain);
	_cleanup_free_ char *then = text_then_runnable(group->waits.total_ns, group->delay_ns);
	_cleanup_free_ char *what =
		xasprintf("%s%s%s%s%s", reason_info[group->reason].leaf, group->basis ? " " : "",
			  group->basis ? group->basis : "", of, then);

	print_line(file, &group->waits, group->threads.count, what);
	if (*where)
		fprintf(file, "%*s  in %s\n", INDENT, "", where);
}

/*
 * Prints the largest groups, and the sum of the others; either all, or only those without a better
 * reason than the task state.
 */
static void print_list(FILE *file, const Timeline *timeline, WaitGroups *groups, size_t most,
		       bool unexplained)
{
	WaitGroup others = {};
	size_t shown = 0, left = 0;

	for (size_t i = 0; i < groups->list.count; i++) {
		WaitGroup *group = &groups->list.items[i];

		if (unexplained && !reason_unexplained(group->reason))
			continue;
		if (shown < most) {
			print_group(file, timeline, group);
			shown++;
		} else {
			wait_group_add(&others, group);
			left++;
		}
	}
	if (left > 0) {
		_cleanup_free_ char *text = text_others(left, /* files= */ false);

		print_line(file, &others.waits, others.threads.count, text);
	}
	distribution_free(&others.waits);
	vec_free(&others.threads);
}

static void print_groups(FILE *file, const Timeline *timeline, WaitGroups *groups)
{
	if (groups->list.count == 0)
		return;
	fprintf(file, "\n%12s %9s %12s %12s %12s %12s %8s  %s\n", "waited", "times", "mean", "p50",
		"p99", "longest", "threads", "largest waits by reason, object and stack");
	print_list(file, timeline, groups, GROUPS_SHOWN, /* unexplained= */ false);
}

static void print_others(FILE *file, const Timeline *timeline, WaitGroups *groups)
{
	if (groups->other_ns == 0)
		return;
	fprintf(file, "\nclassified by task state alone: %s, %.2f %% of the waits\n",
		DURATION(groups->other_ns), 100.0 * groups->other_ns / groups->total_ns);
	print_list(file, timeline, groups, OTHERS_SHOWN, /* unexplained= */ true);
}

/* ---- functions ----------------------------------------------------------------------------- */

typedef struct FunctionTable {
	FILE *file;
	bool has_head;
} FunctionTable;

static void print_function(void *user, FunctionWaits *function)
{
	FunctionTable *table = user;
	_cleanup_free_ char *text = function_text(function->function, function->library);
	_cleanup_free_ char *name = text_printable(text);
	Distribution *waits = &function->waits;

	if (!table->has_head)
		fprintf(table->file, "\n%12s %9s %12s %12s %12s %12s %12s %12s %8s  %s\n", "waited",
			"times", "shortest", "p25", "p50", "p75", "mean", "longest", "threads",
			"waits by function (inclusive)");
	table->has_head = true;
	fprintf(table->file, "%12s %9zu %12s %12s %12s %12s %12s %12s %8zu  %s\n",
		DURATION(waits->total_ns), waits->ns.count, DURATION(distribution_at(waits, 0)),
		DURATION(distribution_at(waits, 0.25)), DURATION(distribution_at(waits, 0.5)),
		DURATION(distribution_at(waits, 0.75)), DURATION(distribution_mean(waits)),
		DURATION(distribution_at(waits, 1)), function->threads, name);
}

bool report_function_print(FILE *file, const Timeline *timeline, Frames *frames, const char *name)
{
	WaitGroups groups = wait_groups_make(timeline, frames, /* with_idle= */ true);
	FunctionTable table = {.file = file};
	bool found = wait_groups_by_function(&groups, name, SIZE_MAX, print_function, &table) > 0;

	wait_groups_free(&groups);
	return found;
}

void report_groups_print(FILE *file, const Timeline *timeline, Frames *frames)
{
	WaitGroups groups = wait_groups_make(timeline, frames, /* with_idle= */ false);
	FunctionTable table = {.file = file};

	wait_groups_merge_objects(&groups, OBJECTS_APART);
	print_groups(file, timeline, &groups);
	print_others(file, timeline, &groups);
	wait_groups_by_function(&groups, NULL, FUNCTIONS_SHOWN, print_function, &table);
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
		json_key_u64(json, "then_runnable_ns", group->delay_ns);
		distribution_json(json, &group->waits);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_function(void *user, FunctionWaits *function)
{
	Json *json = user;

	json_begin_object(json);
	json_key_string(json, "function", function->function);
	key_or_null(json, "library", function->library);
	json_key_u64(json, "threads", function->threads);
	distribution_json(json, &function->waits);
	json_end_object(json);
}

void report_groups(Json *json, const Timeline *timeline, Frames *frames, const char *function)
{
	WaitGroups groups = wait_groups_make(timeline, frames, /* with_idle= */ false), all = {};

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
	wait_groups_free(&groups);
}
