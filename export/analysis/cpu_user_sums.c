/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpu_user_sums.h"

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

CpuUserSums cpu_user_sums_of(const Timeline *timeline)
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

void cpu_user_sums_free(CpuUserSums *sums)
{
	vec_free(&sums->list);
	map_free(&sums->index);
}
