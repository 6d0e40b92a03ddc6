/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault.bpf.h - the fault that a task is in, and sending its record.
 */
#ifndef WALLPROF_FAULT_BPF_H
#define WALLPROF_FAULT_BPF_H

#include "inode.bpf.h"
#include "script_programs.bpf.h"
#include "user_side.bpf.h"

/* The task's slot, which may hold a fault of another task. */
static __always_inline struct open_fault *fault_slot(struct task_struct *task)
{
	u32 key = task->pid & (OPEN_FAULTS - 1);

	return bpf_map_lookup_elem(&open_faults, &key);
}

/* Stores what is mapped at the address. */
static __always_inline void describe_memory(struct rec_fault *record, struct vm_area_struct *vma,
					    u64 address)
{
	struct file *file = BPF_CORE_READ(vma, vm_file);

	record->memory = memory_of(vma);
	if (!file)
		return;
	record->device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	record->inode = BPF_CORE_READ(file, f_inode, i_ino);
	record->generation = BPF_CORE_READ(file, f_inode, i_generation);
	record->offset = (address >> PAGE_SHIFT << PAGE_SHIFT) - BPF_CORE_READ(vma, vm_start) +
			 (BPF_CORE_READ(vma, vm_pgoff) << PAGE_SHIFT);
	inode_emit_file((u64)file);
}

static __always_inline void fault_emit(void *ctx, struct rec_fault *record,
				       const struct open_fault *open, bool with_stack)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	record->tid = task->pid;
	record->start_ns = open->start_ns;
	record->address = open->address;
	if (with_stack) {
		record->ustack = own_user_stack(ctx, task, (s64)regs->orig_ax >= 0, record->h.ns);
		script_note(SCRIPT_AT_FAULT, record->tid, record->h.ns);
	}
	emit(RING_BULK, &record->h, sizeof(*record));
}

/* fault.bpf.c defines it. */
extern int fault_emit_sleep(void);

/* The thread is being switched out and blocks. */
static __always_inline void fault_switched_out(void *ctx, struct task_struct *task)
{
	struct open_fault *open = fault_slot(task);

	if (!open || open->tid != (u32)task->pid || open->reported)
		return;
	open->stack_address = (u64)ctx;
	fault_emit_sleep();
}

#endif
