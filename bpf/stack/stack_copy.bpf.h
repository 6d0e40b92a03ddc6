/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_copy.bpf.h - reads a task's registers, with which a walk begins, and copies its stack for
 * the recorder to walk (struct rec_stack_copy).
 */
#ifndef WALLPROF_STACK_COPY_BPF_H
#define WALLPROF_STACK_COPY_BPF_H

#include "wallprof.bpf.h"

#define ENOSYS 38

/*
 * Whether pc is an exact program counter. In a system call it is a return address. When the call
 * has ended, ax holds a result instead of the value that the entry code put there; then pc may be
 * the first instruction of a signal handler or of a new program.
 */
static __always_inline bool is_exact(struct pt_regs *regs)
{
	return (s64)regs->orig_ax < 0 || regs->ax != (u64)-ENOSYS;
}

static __always_inline void load_registers(struct walk *walk, struct pt_regs *regs)
{
	walk->regs[0] = regs->ax;
	walk->regs[1] = regs->dx;
	walk->regs[2] = regs->cx;
	walk->regs[3] = walk->bx = regs->bx;
	walk->regs[4] = regs->si;
	walk->regs[5] = regs->di;
	walk->regs[6] = walk->bp = regs->bp;
	walk->regs[7] = walk->sp = walk->low = regs->sp;
	walk->regs[8] = regs->r8;
	walk->regs[9] = regs->r9;
	walk->regs[10] = regs->r10;
	walk->regs[11] = regs->r11;
	walk->regs[12] = regs->r12;
	walk->regs[13] = regs->r13;
	walk->regs[14] = regs->r14;
	walk->regs[15] = regs->r15;
	walk->regs[DWARF_RETURN] = walk->pc = regs->ip;
	walk->exact = is_exact(regs);
	walk->inner = true;
	walk->known = WALK_ALL_REGS;
	walk->bp_lost = walk->bx_lost = walk->guessed = false;
	walk->bp_from_leaf = walk->bx_from_leaf = true;
	walk->bp_word = walk->bx_word = 0;
	walk->used = 0;
	walk->mapping.start = walk->mapping.last = 0;
}

#define PAGE_SIZE (1UL << PAGE_SHIFT)

/* Returns this CPU's copy, to be given back with copy_release(), or NULL if it is in use. */
static __always_inline struct rec_stack_copy *copy_take(const struct stack_slot *slot)
{
	u32 cpu = slot->index / SCRATCH_SLOTS;
	struct rec_stack_copy *copy = bpf_map_lookup_elem(&copies, &cpu);

	if (!copy)
		return NULL;
	if (__sync_val_compare_and_swap(&copy->busy, 0, 1) == 0)
		return copy;
	__sync_fetch_and_add(&unwind_counts.copies_busy, 1);
	return NULL;
}

static __always_inline void copy_release(struct rec_stack_copy *copy)
{
	__sync_val_compare_and_swap(&copy->busy, 1, 0);
}

/*
 * Sends the copy with slot->walk.regs and the id of slot->stack. start_boottime, tables_ns and the
 * stack are in the copy already.
 */
static __always_inline int send_copy(struct stack_slot *slot, struct rec_stack_copy *copy,
				     struct task_struct *task, u64 ns)
{
	u32 length;

	copy->id = slot->stack.id;
	copy->tgid = task->tgid;
	copy->exec_id = task->self_exec_id;
	__builtin_memcpy(copy->regs, slot->walk.regs, sizeof(copy->regs));
	length = offsetof(struct rec_stack_copy, stack) + copy->size;
	if (length > sizeof(*copy))
		return 0;
	length &= ~7;
	record_init(&copy->h, REC_STACK_COPY, slot->stack.h.flags, length, ns);
	__sync_fetch_and_add(&unwind_counts.copies, 1);
	emit(RING_COPY, &copy->h, length);
	return 0;
}

#endif
