/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpu_wait.bpf.h - for which CPUs targets wait, so that it is recorded what has these meanwhile.
 *
 * Where not all switches are recorded those between two other tasks are of use only while a target
 * is runnable on that CPU. So each CPU counts such targets, and each target has a word that says
 * where it is counted. It is counted from its waking on (sched_waking, which comes before a CPU is
 * chosen, with the CPU that it ran on last), or when it is switched out and could go on; it moves
 * with the target (sched_migrate_task), and ends when that is switched in.
 *
 * The kernel leaves a program out where it is already running on that CPU, and two targets can
 * share a word, so a count may be wrong. That proves nothing that is not so: switches are recorded
 * as long as the count is not 0, and the count says since when it is not. A CPU that turns idle has
 * nothing that is runnable: there a count begins anew.
 */
#ifndef WALLPROF_CPU_WAIT_BPF_H
#define WALLPROF_CPU_WAIT_BPF_H

#include "wallprof.bpf.h"

/*
 * cpu_wait.bpf.c. The target `tid` is runnable on the CPU, and may have waited for another one. ns:
 * since when all switches there are recorded; 0: from now on.
 */
extern int cpu_wait_begin(u32 tid, u32 cpu, u64 ns);
/* It is not any more, or is on a CPU. */
extern int cpu_wait_end(u32 tid);

/* Whether a switch on this CPU between two others is of use; to the idle task it never is. */
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
