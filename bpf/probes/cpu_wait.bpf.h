/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpu_wait.bpf.h - the CPUs that targets wait for, so that the tasks which run there are recorded.
 *
 * Unless the whole system is recorded, a switch between two non-targets matters only while a target
 * is runnable on that CPU. So each CPU counts its runnable targets, and each target has a word that
 * says on which CPU it is counted. A target is counted from its wakeup on (sched_waking comes
 * before a CPU is chosen, so this is the CPU that it last ran on), or from a switch-out that leaves
 * it runnable. The count moves with the target (sched_migrate_task) and ends with its switch-in.
 *
 * The kernel does not run a program that is already running on that CPU, and two targets can share
 * a word, so a count may be wrong. A wrong count proves nothing false: switches are recorded as
 * long as the count is not 0, and the word says since when. A CPU that turns idle has no runnable
 * task, so its count is reset there.
 */
#ifndef WALLPROF_CPU_WAIT_BPF_H
#define WALLPROF_CPU_WAIT_BPF_H

#include "wallprof.bpf.h"

/*
 * cpu_wait.bpf.c: the target `tid` is runnable on the CPU, and may have waited for another CPU
 * before. All switches of the CPU are recorded since ns; 0: from now on.
 */
extern int cpu_wait_begin(u32 tid, u32 cpu, u64 ns);
/* The target is no longer runnable, or is on a CPU. */
extern int cpu_wait_end(u32 tid);

/*
 * Whether a switch between two non-targets on this CPU is recorded; one to the idle task never is.
 */
static __always_inline bool cpu_is_awaited(struct task_struct *next)
{
	struct cpu_account *account = cpu_account();

	if (!account || !account->waiting)
		return false;
	if (next->pid)
		return true;
	account->waiting = 0;
	return false;
}

#endif
