/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * budget.bpf.h - which switch-outs and wakeups have stacks and objects, if --budget limits the cost
 * of recording.
 *
 * Every switch and every wakeup has its record, so states and times stay exact. What is expensive,
 * stacks and objects, is taken with a chance that is the expected duration of the wait, divided by
 * a duration that the recorder adjusts (budget_rate): longer waits always have them. A thread does
 * not know how long it will sleep, so the expected duration is the average at its waiting place:
 * the thread, its system call and first argument, and where the program made the call. The records
 * have the place and the chance. The recorder takes the stacks of those that sleep for long
 * although they were expected not to (snapshot.bpf.c).
 */
#ifndef WALLPROF_BUDGET_BPF_H
#define WALLPROF_BUDGET_BPF_H

#include "wallprof.bpf.h"

/*
 * A waiting place in budget_places: the average duration of its waits in units of 1024 ns, above
 * that its tag. Places that share a slot replace each other.
 */
#define PLACE_AVERAGE(word)    ((u32)(word))
#define PLACE_TAG(word)	       ((u32)((word) >> 32))
#define PLACE_WORD(tag, units) ((u64)(tag) << 32 | (units))

/*
 * Without an average, a wait of 1 ms is expected, and the chance is not below a quarter, so that
 * there soon is a stack for each place. A place has an average only after it was sampled once. A
 * thread that is preempted does not wait for anything, so where that is makes no place.
 */
#define PLACE_UNKNOWN_UNITS 1000
#define CHANCE_UNKNOWN	    (CHANCE_CERTAIN / 4)

/* The weight of the last wait in the average. */
#define PLACE_LEARN_SHIFT 2

static __always_inline u64 *budget_slot(void *map, u32 index)
{
	return bpf_map_lookup_elem(map, &index);
}

/* Returns the chance of a wait of so many units, as in CHANCE_OF(), but not less than `least`. */
static __always_inline u32 budget_chance(u64 units, u32 least)
{
	u64 chance;

	if (units > BUDGET_UNITS_MAX)
		units = BUDGET_UNITS_MAX;
	chance = units * budget_rate >> BUDGET_RATE_SHIFT;
	if (chance < least)
		chance = least;
	return chance < CHANCE_CERTAIN ? chance : CHANCE_CERTAIN;
}

/* Stores the chance, and whether chance decided against, in a record's parts. */
static __always_inline bool budget_decide(u16 *parts, u32 chance, u16 unsampled)
{
	bool sampled = (bpf_get_prandom_u32() & (CHANCE_CERTAIN - 1)) < chance;

	*parts |= (chance & (CHANCE_CERTAIN - 1)) << CHANCE_SHIFT;
	*parts |= sampled ? 0 : unsampled;
	return sampled;
}

/*
 * Returns whether the stacks and the object of a switch-out are to be taken, and stores the place
 * in the record. number is the system call (-1: none) and argument its first argument. Outside of
 * system calls the place is the thread.
 */
static __always_inline bool budget_samples_switch(struct rec_switch *record,
						  struct task_struct *task, s32 number,
						  u64 argument, u32 blocks)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 place, *word, *sleep;
	u32 tag, units = PLACE_UNKNOWN_UNITS, least = CHANCE_UNKNOWN, tid = task->pid;

	if (!setting_budget)
		return true;
	place = (u64)tid << 40 ^ (u64)blocks << 16 ^ (u16)number;
	if (number >= 0)
		place ^= (regs->ip ^ regs->sp << 24 ^ argument << 12) * 0xd6e8feb86659fd93ULL;
	place = place * 0x9e3779b97f4a7c15ULL >> (64 - BUDGET_PLACE_BITS);
	word = budget_slot(&budget_places, place >> BUDGET_TAG_BITS);
	sleep = budget_slot(&budget_sleeps, tid & (SLEEP_SLOTS - 1));
	if (!word || !sleep)
		return true;
	tag = place & ((1u << BUDGET_TAG_BITS) - 1);
	if (!blocks) {
		least = CHANCE_LEAST;
	} else if (PLACE_TAG(*word) == tag) {
		units = PLACE_AVERAGE(*word);
		least = CHANCE_LEAST;
	}
	record->place = place >> BUDGET_TAG_BITS;
	if (budget_decide(&record->parts, budget_chance(units, least), SWITCH_UNSAMPLED)) {
		*sleep = blocks ? BUDGET_SLEEP(tid, place, 0) : 0;
		return true;
	}
	*sleep = blocks ? BUDGET_SLEEP(tid, place, 1) : 0;
	return false;
}

/* Returns how long the task has slept, in units; 0 if that is not known. */
static __always_inline u64 budget_slept_units(struct task_struct *task, u64 ns)
{
	u64 start = thread_slot(task->pid)->sleep_start;
	u64 start_ns = SLEEP_START_NS(start);

	return SLEEP_START_TID(start) == (u32)task->pid && ns > start_ns ? (ns - start_ns) >> 10
									 : 0;
}

/* The task was woken: learns how long waits at its place last. */
static __always_inline void budget_learn(struct task_struct *task, u64 ns)
{
	u64 units, place, *word, *sleep;
	u32 tag, average;
	bool unsampled;

	if (!setting_budget)
		return;
	sleep = budget_slot(&budget_sleeps, task->pid & (SLEEP_SLOTS - 1));
	if (!sleep || BUDGET_SLEEP_TID(*sleep) != (u32)task->pid)
		return;
	place = BUDGET_SLEEP_PLACE(*sleep);
	unsampled = *sleep & BUDGET_SLEEP_UNSAMPLED;
	*sleep = 0;
	word = budget_slot(&budget_places, place >> BUDGET_TAG_BITS);
	if (!word)
		return;
	units = budget_slept_units(task, ns);
	if (units > BUDGET_UNITS_MAX)
		units = BUDGET_UNITS_MAX;
	tag = place & ((1u << BUDGET_TAG_BITS) - 1);
	average = PLACE_AVERAGE(*word);
	if (PLACE_TAG(*word) == tag)
		units = average + ((s64)(units - average) >> PLACE_LEARN_SHIFT);
	else if (unsampled)
		return;
	*word = PLACE_WORD(tag, units);
}

/* Returns whether the waker's stacks are to be taken; how long the wait was is known. */
static __always_inline bool budget_samples_waking(struct rec_waking *record,
						  struct task_struct *task)
{
	return !setting_budget ||
	       budget_decide(&record->parts,
			     budget_chance(budget_slept_units(task, record->h.ns), CHANCE_LEAST),
			     WAKING_UNSAMPLED);
}

/*
 * Returns whether the task has slept for long, and chance decided that its switch-out has no
 * stacks.
 */
static __always_inline bool budget_lacks_stacks(struct task_struct *task, u64 ns)
{
	u64 *sleep = budget_slot(&budget_sleeps, task->pid & (SLEEP_SLOTS - 1));

	return sleep && BUDGET_SLEEP_LACKS(*sleep, task->pid) &&
	       budget_slept_units(task, ns) >= BUDGET_LONG_NS >> 10;
}

/* The task's stacks were taken while it sleeps. */
static __always_inline void budget_has_stacks(struct task_struct *task)
{
	u64 *sleep = budget_slot(&budget_sleeps, task->pid & (SLEEP_SLOTS - 1));

	if (sleep && BUDGET_SLEEP_TID(*sleep) == (u32)task->pid)
		*sleep &= ~BUDGET_SLEEP_UNSAMPLED;
}

/*
 * Adds to the sums by which the recorder adjusts budget_rate. run_ns is what the record has of
 * own_run_ns; the remainder, which stays in the account, counts at a later switch. It is called
 * before switch_account() takes the cost and the time of the last switch from the account.
 */
static __always_inline void budget_account(struct cpu_account *account,
					   const struct rec_switch *record, u64 run_ns)
{
	if (!setting_budget)
		return;
	account->cost_ns += account->own_in_ns + run_ns;
	if (record->h.flags & SWITCH_PREV && account->switched_ns) /* not the CPU's first switch */
		account->ran_ns += record->h.ns - account->switched_ns;
}

#endif
