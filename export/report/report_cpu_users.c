/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpu_users.h"
#include "report_sections.h"
#include "text.h"

#define USERS_SHOWN   10
#define USERS_WRITTEN 1000 /* to JSON */

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

static void print_line(FILE *file, const CpuUser *user, const char *name)
{
	/* An unknown time is printed as "-", not as 0. */
	if (user->count == 0)
		fprintf(file, "%12s %9zu %12s %12s  %s", "-", (size_t)user->untimed_count, "-", "-",
			name);
	else
		fprintf(file, "%12s %9zu %12s %12s  %s", DURATION(user->total_ns),
			(size_t)user->count, DURATION(mean_ns(user)), DURATION(user->longest_ns),
			name);
}

static void print_user(FILE *file, const Timeline *timeline, const CpuUser *user)
{
	char comm[COMM_LEN + 1];
	_cleanup_free_ char *name = text_printable(cpu_user_name(timeline, user->task, comm));
	uint32_t tid = user_tid(timeline, user);

	print_line(file, user, name);
	if (tid)
		fprintf(file, " (%u)", tid);
	fputc('\n', file);
}

/* The sum of the lines that are not shown. */
static void print_others(FILE *file, const CpuUserSums *sums, size_t shown)
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
	print_line(file, &others, text);
	fputc('\n', file);
}

void report_cpu_users_print(FILE *file, const Timeline *timeline)
{
	CpuUserSums sums = sum_up(timeline);
	size_t shown = MIN(sums.list.count, (size_t)USERS_SHOWN);

	if (shown > 0)
		fprintf(file, "\n%12s %9s %12s %12s  %s\n", "waited", "times", "mean", "longest",
			"CPU contention: ran instead");
	for (size_t i = 0; i < shown; i++)
		print_user(file, timeline, &sums.list.items[i]);
	if (sums.list.count > shown)
		print_others(file, &sums, shown);
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
