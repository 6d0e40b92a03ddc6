/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * context.bpf.h - is this program running on behalf of the current task, or in an
 * interrupt that happened to hit it?
 *
 * preempt_count and __irq_regs are per-CPU variables, and typed ksyms of data do
 * not resolve without CONFIG_KALLSYMS_ALL. But the current task's run queue *is*
 * this CPU's `runqueues`, and the kernel's BTF lists the offsets of all per-CPU
 * variables: the recorder works out their distance (percpu.c) and this reads
 * them. preempt_count is `__preempt_count`, and `pcpu_hot.preempt_count` from
 * 6.2 to 6.14; from 7.3 on it has 64 bits, of which the upper half is not asked for.
 */
#ifndef WALLPROF_CONTEXT_BPF_H
#define WALLPROF_CONTEXT_BPF_H

#include "wallprof.bpf.h"

static __always_inline u8 waking_context(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	void *rq, *irq_regs = NULL;
	u32 preempt_count;

	if (!setting_context_known || !bpf_core_field_exists(task->se.cfs_rq))
		return WAKING_UNKNOWN_CONTEXT;
	rq = BPF_CORE_READ(task, se.cfs_rq, rq);
	if (bpf_probe_read_kernel(&preempt_count, sizeof(preempt_count),
				  rq + setting_preempt_count_offset))
		return WAKING_UNKNOWN_CONTEXT;
	if (preempt_count & setting_hardirq_mask)
		return WAKING_HARDIRQ;
	if (!(preempt_count & SOFTIRQ_SERVING))
		return 0;
	/*
	 * A soft interrupt that runs at the end of a hard one has __irq_regs set; one that
	 * runs because the task itself raised it (sending over loopback) has not,
	 * and is the task's own doing.
	 */
	if (bpf_probe_read_kernel(&irq_regs, sizeof(irq_regs), rq + setting_irq_regs_offset))
		return WAKING_UNKNOWN_CONTEXT;
	return irq_regs ? WAKING_SOFTIRQ : 0;
}

#endif
