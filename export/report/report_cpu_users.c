/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpu_user_sums.h"
#include "page_table.h"
#include "report_sections.h"
#include "text.h"

#define USERS_WRITTEN 1000 /* to JSON */

static const TableColumn columns[] = {
	{"waited", 12, 0}, {"times", 9, 1}, {"mean", 12, 3}, {"longest", 12, 2}};

/* 0: it is not a task. */
static uint32_t user_tid(const Timeline *timeline, const CpuUser *user)
{
	const Task *task;

	if (user->task >= timeline->tasks.count)
		return 0;
	task = &timeline->tasks.items[user->task];
	return task->ns_tid ? task->ns_tid : task->tid;
}

static uint64_t mean_ns(const CpuUser *user)
{
	return user->count ? user->total_ns / user->count : 0;
}

static void print_line(const Table *table, const CpuUser *user, const char *name)
{
	/* An unknown time is printed as "-", not as 0. */
	const char *unknown[] = {"-", COUNT(user->untimed_count), "-", "-"};
	const char *known[] = {DURATION(user->total_ns), COUNT(user->count),
			       DURATION(mean_ns(user)), DURATION(user->longest_ns)};

	page_table_row(table, user->count == 0 ? unknown : known, name);
}

static void print_user(const Table *table, const Timeline *timeline, const CpuUser *user)
{
	char comm[COMM_LEN + 1];
	_cleanup_free_ char *name = text_printable(cpu_user_name(timeline, user->task, comm));
	uint32_t tid = user_tid(timeline, user);
	_cleanup_free_ char *text = tid ? xasprintf("%s (%u)", name, tid) : xstrdup(name);

	print_line(table, user, text);
}

/* The sum of the lines that are not shown. */
static void print_others(const Table *table, const CpuUserSums *sums, size_t shown)
{
	_cleanup_free_ char *text = text_others(sums->list.count - shown, /* files= */ false);
	CpuUser others = {};

	for (size_t i = shown; i < sums->list.count; i++) {
		const CpuUser *user = &sums->list.items[i];

		others.count += user->count;
		others.untimed_count += user->untimed_count;
		others.total_ns += user->total_ns;
		others.longest_ns = MAX(others.longest_ns, user->longest_ns);
	}
	print_line(table, &others, text);
}

void report_cpu_users_print(const Report *report)
{
	CpuUserSums sums = cpu_user_sums_of(report->timeline);
	size_t shown = MIN(sums.list.count, report->rows);
	Table table;

	page_table_init(&table, report->page, columns, ARRAY_LEN(columns), report->max_rank);
	for (size_t i = 0; i < shown; i++) {
		page_table_head(&table, "CPU contention: ran instead");
		print_user(&table, report->timeline, &sums.list.items[i]);
	}
	if (sums.list.count > shown && !report->brief)
		print_others(&table, &sums, shown);
	cpu_user_sums_free(&sums);
}

static void write_user(Json *json, const Timeline *timeline, const CpuUser *user)
{
	char comm[COMM_LEN + 1];

	json_begin_object(json);
	json_key_string(json, "name", cpu_user_name(timeline, user->task, comm));
	json_key_u64(json, "tid", user_tid(timeline, user));
	json_key_u64(json, "count", user->count);
	json_key_u64(json, "total_ns", user->total_ns);
	json_key_u64(json, "mean_ns", mean_ns(user));
	json_key_u64(json, "max_ns", user->longest_ns);
	json_key_u64(json, "untimed_count", user->untimed_count);
	json_end_object(json);
}

void report_cpu_users(Json *json, const Timeline *timeline)
{
	CpuUserSums sums = cpu_user_sums_of(timeline);

	json_key_array(json, "rivals");
	for (size_t i = 0; i < MIN(sums.list.count, (size_t)USERS_WRITTEN); i++)
		write_user(json, timeline, &sums.list.items[i]);
	json_end_array(json);
	cpu_user_sums_free(&sums);
}
