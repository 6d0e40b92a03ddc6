/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rivals.bpf.h - for which CPUs targets wait, so that it is recorded what has these meanwhile.
 *
 * Where not all switches are recorded those between two strangers are of use only while a target
 * is runnable on that CPU. So each CPU counts such targets, and each target has a word that says
 * where it is counted. It is counted from its waking on (sched_waking, which comes before a CPU is
 * chosen, with the CPU that it ran on last), or when it is switched out and could go on; it moves
 * with the target (sched_migrate_task), and ends when that is switched in.
 *
 * The kernel leaves a program out where it is already running on that CPU, and two targets
 * can share a word, so a count may be wrong. A CPU that turns idle has nothing that is runnable:
 * there a count begins anew.
 */
#ifndef WALLPROF_RIVALS_BPF_H
#define WALLPROF_RIVALS_BPF_H

#include "wallprof.bpf.h"

/* rivals.bpf.c. The target `tid` is runnable on the CPU, since ns, or on another one than it was.
 */
extern int rivals_wait(u32 tid, u32 cpu, u64 ns);
/* It is not any more, or is on a CPU. */
extern int rivals_wait_ended(u32 tid);

/* Whether strangers' switches on this CPU are of use; one to the idle task says that none is. */
static __always_inline bool rivals_wanted(struct task_struct *next)
{
	struct cpu_account *account = cpu_account();

	if (!account || account->waiting <= 0)
		return false;
	if (next->pid)
		return true;
	account->waiting = 0;
	account->waiting_since_ns = 0;
	return false;
}

#endif
