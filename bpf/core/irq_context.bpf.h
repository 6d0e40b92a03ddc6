/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * irq_context.bpf.h - whether this program runs on behalf of the current task, or in an interrupt
 * that happened to hit it.
 *
 * preempt_count is a per-CPU variable, and typed ksyms of data do not resolve without
 * CONFIG_KALLSYMS_ALL. But the current task's run queue *is* this CPU's `runqueues`, and the
 * kernel's BTF lists the offsets of all per-CPU variables: the recorder computes the distance
 * (percpu_offsets.c), and this file reads the variable there. preempt_count is `__preempt_count`,
 * and `pcpu_hot.preempt_count` from 6.2 to 6.14. From 7.3 on it has 64 bits, of which the upper
 * half is not read.
 */
#ifndef WALLPROF_IRQ_CONTEXT_BPF_H
#define WALLPROF_IRQ_CONTEXT_BPF_H

#include "wallprof.bpf.h"

/* The address of this CPU's run queue, which never changes; 0 if it is not known. */
static __always_inline u64 this_rq(struct cpu_account *account)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!account->rq && bpf_core_field_exists(task->se.cfs_rq))
		account->rq = (u64)BPF_CORE_READ(task, se.cfs_rq, rq);
	return account->rq;
}

/*
 * Returns the flags of REC_WAKING. *ret_vector is the number + 1 of the soft interrupt that is
 * being served, or 0. softirq.bpf.c does not know a soft interrupt that began before the recording,
 * so that one is attributed to an interrupt. A soft interrupt lasts 2 ms at most.
 */
static __always_inline u8 waking_context(u8 *ret_vector)
{
	struct cpu_account *account = cpu_account();
	u32 preempt_count;
	u64 rq;

	*ret_vector = 0;
	if (!setting_context_known || !account)
		return WAKING_UNKNOWN_CONTEXT;
	rq = this_rq(account);
	if (!rq || bpf_probe_read_kernel(&preempt_count, sizeof(preempt_count),
					 (void *)(rq + setting_preempt_count_offset)))
		return WAKING_UNKNOWN_CONTEXT;
	if (preempt_count & setting_hardirq_mask)
		return WAKING_HARDIRQ;
	if (!(preempt_count & SOFTIRQ_SERVING))
		return 0;
	*ret_vector = account->softirq;
	return account->softirq_own ? 0 : WAKING_SOFTIRQ;
}

#endif
