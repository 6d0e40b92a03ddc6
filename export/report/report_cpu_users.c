/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpu_users.h"
#include "page_table.h"
#include "report_sections.h"
#include "text.h"

#define USERS_WRITTEN 1000 /* to JSON */

static const TableColumn columns[] = {
	{"waited", 12, 0}, {"times", 9, 1}, {"mean", 12, 3}, {"longest", 12, 2}};

/* The sums of the parts of all waits that belong to one task. */
typedef struct CpuUser {
	uint32_t task; /* as in CpuPart */
	uint64_t count, untimed_count;
	uint64_t total_ns, longest_ns;
} CpuUser;

typedef struct CpuUserSums {
	Map index; /* task -> list */
	VEC(CpuUser) list;
} CpuUserSums;

static void add_part(CpuUserSums *sums, const CpuPart *part)
{
	uint32_t number = map_get(&sums->index, part->task);
	CpuUser *user;

	if (number == MAP_NONE) {
		number = sums->list.count;
		map_set(&sums->index, part->task, number);
		*vec_push(&sums->list) = (CpuUser){.task = part->task};
	}
	user = &sums->list.items[number];
	user->count += part->ns > 0;
	user->untimed_count += part->ns == 0;
	user->total_ns += part->ns;
	user->longest_ns = MAX(user->longest_ns, part->ns);
}

static int compare_users(const void *a, const void *b)
{
	const CpuUser *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	if (x->untimed_count != y->untimed_count)
		return x->untimed_count > y->untimed_count ? -1 : 1;
	return (x->task > y->task) - (x->task < y->task);
}

static CpuUserSums sum_up(const Timeline *timeline)
{
	CpuUserSums sums = {};
	CpuParts parts = {};

	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			if (thread->intervals.items[i].state != STATE_RUNNABLE)
				continue;
			cpu_users_divide(timeline, thread, i, &parts);
			for (size_t p = 0; p < parts.count; p++)
				add_part(&sums, &parts.items[p]);
		}
	}
	cpu_parts_free(&parts);
	if (sums.list.count > 1)
		qsort(sums.list.items, sums.list.count, sizeof(CpuUser), compare_users);
	return sums;
}

static void sums_free(CpuUserSums *sums)
{
	vec_free(&sums->list);
	map_free(&sums->index);
}

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
	CpuUserSums sums = sum_up(report->timeline);
	size_t shown = MIN(sums.list.count, report->rows);
	Table table;

	page_table_init(&table, report->page, columns, ARRAY_LEN(columns), report->max_rank);
	for (size_t i = 0; i < shown; i++) {
		page_table_head(&table, "CPU contention: ran instead");
		print_user(&table, report->timeline, &sums.list.items[i]);
	}
	if (sums.list.count > shown && !report->brief)
		print_others(&table, &sums, shown);
	sums_free(&sums);
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
	CpuUserSums sums = sum_up(timeline);

	json_key_array(json, "rivals");
	for (size_t i = 0; i < MIN(sums.list.count, (size_t)USERS_WRITTEN); i++)
		write_user(json, timeline, &sums.list.items[i]);
	json_end_array(json);
	sums_free(&sums);
}
