/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack.bpf.h - taking a stack and referring to it by id.
 *
 * A stack is built in a scratch slot, hashed, and sent only if its id is not among
 * those sent lately. That memory is a plain table indexed by the hash: a
 * collision makes a stack be sent again, nothing else. An id counts as sent
 * only after its record was written.
 */
#ifndef WALLPROF_STACK_BPF_H
#define WALLPROF_STACK_BPF_H

#include "wallprof.bpf.h"

extern int stack_hash(struct stack_slot *slot);

/*
 * Scratch is taken by an atomic try, not by depth: programs nest in each other by
 * interrupts, and from 7.0 on they are also preempted, so they need not end in
 * reverse order.
 */
static __always_inline struct stack_slot *slot_take(void)
{
	u32 first = bpf_get_smp_processor_id() * SCRATCH_SLOTS;

	for (u32 i = 0; i < SCRATCH_SLOTS; i++) {
		u32 key = first + i;
		struct stack_slot *slot = bpf_map_lookup_elem(&scratch, &key);

		if (slot && __sync_val_compare_and_swap(&slot->busy, 0, 1) == 0)
			return slot;
	}
	return NULL;
}

static __always_inline void slot_release(struct stack_slot *slot)
{
	__sync_lock_test_and_set(&slot->busy, 0);
}

static __always_inline struct stack_slot *slot_take_accounted(u64 ns)
{
	struct stack_slot *slot = slot_take();
	struct cpu_account *account;

	if (slot)
		return slot;
	account = cpu_account();
	if (account) {
		__sync_fetch_and_add(&account->sent[REC_STACK], 1);
		account_lost(account, REC_STACK, LOSS_SCRATCH_BUSY, ns);
	}
	return NULL;
}

/*
 * Gives the slot's `bytes` of frames an id, sends them if need be, releases the slot.
 * Returns the id, or 0 if there are no frames. The id stands even if sending
 * failed: the loss is accounted and the reader shows "[stack lost]".
 */
static __always_inline u64 slot_finish(struct stack_slot *slot, long bytes, u8 flags, u32 tgid,
				       u64 seed, u64 ns)
{
	struct rec_stack *stack = &slot->stack;
	u64 *sent;
	u64 id = 0;
	u32 count;

	if (bytes < (long)sizeof(u64))
		goto out;
	count = (u64)bytes / sizeof(u64);
	if (count > MAX_FRAMES)
		count = MAX_FRAMES;
	stack->count = count;
	stack->id = seed;
	stack->tgid = tgid;
	stack->tables_ns = 0;
	stack_hash(slot);
	id = stack->id;
	sent = &stack_sent[id & (STACK_SENT_SLOTS - 1)];
	if (*sent == id)
		goto out;
	if (count >= setting_max_stack)
		stack->result = STACK_TRUNCATED;
	else
		stack->result = flags & STACK_USER ? STACK_FRAME_POINTERS : STACK_COMPLETE;
	record_init(&stack->h, REC_STACK, flags, sizeof(*stack) + count * sizeof(u64), ns);
	if (!emit(&bulk_ring, &stack->h, sizeof(*stack) + count * sizeof(u64)))
		*sent = id;
out:
	slot_release(slot);
	return id;
}

/*
 * No more than bpf_get_stack can fill: it clears the rest of what it is given. A
 * constant to the verifier.
 */
static __always_inline u32 frames_size(void)
{
	u32 frames = setting_max_stack;

	return (frames < MAX_FRAMES ? frames : MAX_FRAMES) * sizeof(u64);
}

/* The kernel stack from the program's own place (or the interrupted one, for ticks). */
static __always_inline u64 kernel_stack(void *ctx, u64 ns)
{
	struct stack_slot *slot = slot_take_accounted(ns);

	if (!slot)
		return 0;
	return slot_finish(slot, bpf_get_stack(ctx, slot->stack.frames, frames_size(), 0), 0, 0, 0,
			   ns);
}

/*
 * The user stack of the current task, by frame pointers. This is the one function
 * that the walk by unwind tables replaces.
 *
 * The seed makes the id belong to the process image: after exec the same addresses
 * mean something else and must be sent again.
 */
static __always_inline u64 user_stack(void *ctx, struct task_struct *task, bool in_syscall, u64 ns)
{
	u64 seed = (u64)task->tgid << 32 ^ task->self_exec_id;
	u8 flags = STACK_USER | (in_syscall ? STACK_SYSCALL_PC : 0);
	struct stack_slot *slot;
	long bytes;

	if (!setting_user_stacks || task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return 0;
	slot = slot_take_accounted(ns);
	if (!slot)
		return 0;
	bytes = bpf_get_stack(ctx, slot->stack.frames, frames_size(), BPF_F_USER_STACK);
	return slot_finish(slot, bytes, flags, task->tgid, seed ^ in_syscall, ns);
}

#endif
