/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpu_users.h - divides a wait for a CPU among the tasks that had that CPU meanwhile.
 *
 * A part is the time in which a task, or the idle task, provably had the CPU. The rest is a part of
 * its own, "not seen", so that the parts add up to the wait and none is a guess. If the thread was
 * moved to another CPU, the time before the move is divided among the tasks on the CPU that it was
 * preempted on, and the time after it among those on the CPU that it got. If it was moved more than
 * once, or a wakeup put it into a queue that it then left, the queue before the move is not
 * recorded: that time is the part "migrated".
 *
 * In a recording of the whole system the switches of all CPUs are known (Timeline::cpus). Otherwise
 * it is known when recorded threads ran, and what ran while one of them waited for that CPU. Either
 * way a thread of the timeline has a part only for the time in which its own chain of states proves
 * that it ran there: the chain is checked by sequence numbers, which show a missing switch even if
 * the CPU has the same task before and after it.
 *
 * The kernel may count how much of a task's time on a CPU interrupts or the hypervisor took. It
 * counts from switch to switch. If a run extends beyond the wait, it is unknown when in the run
 * that was. Then their part is the least that must lie in the wait, and what else may lie in it is
 * "not seen".
 */
#ifndef WALLPROF_CPU_USERS_H
#define WALLPROF_CPU_USERS_H

#include "timeline.h"

/* Parts that are no task, besides CPU_IDLE and CPU_UNKNOWN: */
#define CPU_MIGRATED   (UINT32_MAX - 2)
#define CPU_INTERRUPTS (UINT32_MAX - 3)
#define CPU_STOLEN     (UINT32_MAX - 4) /* taken by the hypervisor */

typedef struct CpuPart {
	/* Timeline::tasks, CPU_IDLE, CPU_UNKNOWN ("not seen"), or one of the above. */
	uint32_t task;
	uint64_t ns; /* 0: it had the CPU for an unknown time */
} CpuPart;

/*
 * The parts of one wait. It is reused for further waits: {} at first; cpu_parts_free() frees the
 * memory.
 */
typedef struct CpuParts {
	CpuPart *items;
	size_t count, capacity;
	struct cpu_part_slot {
		uint64_t division; /* the last division that used the slot, from 1 on */
		uint32_t part;
	} * slots;   /* open addressing, by task */
	size_t mask; /* slots - 1, or 0 when there are none */
	uint64_t division;
} CpuParts;

void cpu_parts_free(CpuParts *parts);

/* Sorts the parts: the largest first, those with ns 0 last. */
void cpu_parts_sort(CpuParts *parts);

/*
 * Fills Timeline::proven_cpus; without it everything is "not seen". To be called when the threads'
 * intervals are final. The runs are sorted by time, so that a wait is found by one binary search.
 */
void cpu_users_index(Timeline *timeline);

/*
 * Divides interval i of the thread. Each task has at most one part. There are no parts if the
 * thread did not wait for a CPU; a throttled thread waited for its cgroup's next period.
 */
void cpu_users_divide(const Timeline *timeline, const Thread *thread, size_t i, CpuParts *parts);

/* Returns "hog", "CPU idle", "not seen", "migrated", …; it may point into name. */
const char *cpu_user_name(const Timeline *timeline, uint32_t task, char name[COMM_LEN + 1]);

/*
 * Returns the largest of the sorted parts: "hog 140.012 ms, not seen 1.000 ms, blip for an unknown
 * time". The caller frees it.
 */
char *cpu_users_text(const Timeline *timeline, const CpuParts *parts);

#endif
