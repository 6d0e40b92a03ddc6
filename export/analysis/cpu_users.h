/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpu_users.h - a wait for a CPU, divided among what had that CPU meanwhile.
 *
 * A part is what a task, or the idle task, is proven to have had the CPU for. The rest is a part of
 * its own, not seen, so that the parts sum to the wait and none is a guess. Where the thread was
 * moved to another CPU, the time before is that of the CPU that it was preempted on, and the time
 * since then that of the CPU that it got. If it was moved more than once, or a wakeup put it into a
 * queue that it left again, it is not recorded in which queue it was before: that time is a part of
 * its own, "migrated".
 *
 * In a recording of the whole system the switches of all CPUs are known (Timeline::cpus); else when
 * recorded threads ran, and what ran while one of them waited for that CPU. Either way a thread of
 * the timeline has a part only for the time in which its own chain of states proves that it ran
 * there: the chain is checked by sequence numbers, which show a missing switch even if the CPU has
 * the same task before and after it.
 *
 * The kernel may count how much of a task's time on a CPU interrupts or the hypervisor took. It
 * does so from switch to switch. If a run extends beyond the wait, it is not known when in the run
 * that was: their part is the least that must lie in the wait, and what else may lie in it is "not
 * seen".
 */
#ifndef WALLPROF_CPU_USERS_H
#define WALLPROF_CPU_USERS_H

#include "timeline.h"

/* Beside CPU_IDLE and CPU_UNKNOWN: */
#define CPU_MIGRATED   (UINT32_MAX - 2)
#define CPU_INTERRUPTS (UINT32_MAX - 3)
#define CPU_STOLEN     (UINT32_MAX - 4) /* by the hypervisor */

typedef struct CpuPart {
	uint32_t task; /* Timeline::tasks, CPU_IDLE, CPU_UNKNOWN (not seen), or one of the above */
	uint64_t ns;   /* 0: it had the CPU, for a time that is not known */
} CpuPart;

/* Of one wait after the other: {} at first; the memory is kept until cpu_parts_free(). */
typedef struct CpuParts {
	CpuPart *items;
	size_t count, capacity;
	struct cpu_part_slot {
		uint64_t division; /* the last one that used the slot, from 1 on */
		uint32_t part;
	} * slots;   /* open addressing, by task */
	size_t mask; /* slots - 1, or 0 when there are none */
	uint64_t division;
} CpuParts;

void cpu_parts_free(CpuParts *parts);

/* The largest part comes first, those with ns 0 last. */
void cpu_parts_sort(CpuParts *parts);

/*
 * Fills Timeline::proven_cpus, once the threads' intervals are final: without this nothing is seen.
 * In order of time, so that a wait is looked up by one binary search.
 */
void cpu_users_index(Timeline *timeline);

/*
 * Divides interval i of the thread. A task has one part. There are no parts if the thread did not
 * wait for a CPU; one that was throttled waited for its control group's next period.
 */
void cpu_users_divide(const Timeline *timeline, const Thread *thread, size_t i, CpuParts *parts);

/* "hog", "CPU idle", "not seen", "migrated"; may point into name. */
const char *cpu_user_name(const Timeline *timeline, uint32_t task, char name[COMM_LEN + 1]);

/*
 * "hog 140.012 ms, not seen 1.000 ms, blip for an unknown time": the largest of sorted parts; to be
 * freed.
 */
char *cpu_users_text(const Timeline *timeline, const CpuParts *parts);

#endif
