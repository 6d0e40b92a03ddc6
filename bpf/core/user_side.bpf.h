/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * user_side.bpf.h - what the kernel knows of a task's user side: the mode of its registers and the
 * kind of its memory.
 */
#ifndef WALLPROF_USER_SIDE_BPF_H
#define WALLPROF_USER_SIDE_BPF_H

#include "wallprof.bpf.h"

/* pt_regs::cs became 16 bits wide, in a union with FRED's flags, in 6.9. */
static __always_inline u16 user_cs(struct pt_regs *regs)
{
	struct pt_regs___fred *fred = (void *)regs;

	if (bpf_core_field_size(regs->cs) == sizeof(u16))
		return BPF_CORE_READ(fred, cs);
	return BPF_CORE_READ(regs, cs);
}

static __always_inline u8 memory_without_file(struct vm_area_struct *vma)
{
	struct mm_struct *mm = BPF_CORE_READ(vma, vm_mm);
	u64 start = BPF_CORE_READ(vma, vm_start), end = BPF_CORE_READ(vma, vm_end);
	u64 stack = BPF_CORE_READ(mm, start_stack);

	/* The same tests as for /proc/PID/maps (fs/proc/task_mmu.c). */
	if (start < BPF_CORE_READ(mm, brk) && end > BPF_CORE_READ(mm, start_brk))
		return MEMORY_HEAP;
	if ((start <= stack && end >= stack) || BPF_CORE_READ(vma, vm_flags) & VM_GROWSDOWN)
		return MEMORY_STACK;
	return MEMORY_ANONYMOUS;
}

static __always_inline u8 memory_of(struct vm_area_struct *vma)
{
	if (!BPF_CORE_READ(vma, vm_file))
		return memory_without_file(vma);
	return BPF_CORE_READ(vma, vm_flags) & VM_SHARED ? MEMORY_SHARED : MEMORY_FILE;
}

#endif
