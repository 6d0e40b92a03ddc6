/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * user_stack.bpf.h - takes a stack and returns its id.
 *
 * A stack is built in a scratch slot, hashed, and sent only if its id is not among those sent
 * lately. The ids sent lately are in a plain table that is indexed by the hash; a collision only
 * makes a stack be sent again. An id counts as sent only after its record was written.
 */
#ifndef WALLPROF_USER_STACK_BPF_H
#define WALLPROF_USER_STACK_BPF_H

#include "cost.bpf.h"
#include "kernel_memo.bpf.h"
#include "stack_memo.bpf.h"
#include "unwind.bpf.h"

extern int stack_hash(struct stack_slot *slot);

/*
 * Acquires a scratch slot of this CPU and returns its index. If all are in use, a stack is
 * accounted as lost, and the index is of no slot.
 *
 * It is acquired by an atomic exchange, not by nesting depth: programs interrupt each other, and
 * from 7.0 on they are also preempted, so they need not end in reverse order.
 */
extern u32 stack_slot_take(u64 ns);
/* Accounts for a second stack that was to be built in the slot. */
extern int stack_lost(u64 ns);

static __always_inline struct stack_slot *slot_acquire_accounted(u64 ns)
{
	u32 index = stack_slot_take(ns);

	return bpf_map_lookup_elem(&scratch, &index);
}

static __always_inline void slot_release(struct stack_slot *slot)
{
	__sync_lock_test_and_set(&slot->busy, 0);
}

/*
 * Gives the slot's stack an id and sends the stack unless it was sent lately. The seed makes the id
 * specific to the process image. Returns the id, or 0 if there are no frames and no result that
 * explains it. The id is valid even if sending failed: the loss is accounted, and the reader shows
 * "[stack lost]".
 */
static __always_inline u64 slot_send(struct stack_slot *slot, u64 seed, u64 ns)
{
	struct rec_stack *stack = &slot->stack;
	u32 size, count = stack->count;
	u64 *sent;

	if (count > MAX_FRAMES ||
	    (count == 0 && stack->result != STACK_EXEC && stack->result != STACK_NO_MM))
		return 0;
	stack->id = seed;
	stack_hash(slot);
	sent = &stack_sent[stack->id & (STACK_SENT_SLOTS - 1)];
	if (*sent == stack->id)
		return stack->id;
	size = sizeof(*stack) + count * sizeof(u64) +
	       !!(stack->h.flags & STACK_DEEP) * sizeof(struct stack_gap);
	record_init(&stack->h, REC_STACK, stack->h.flags, size, ns);
	if (!emit(RING_BULK, &stack->h, size))
		*sent = stack->id;
	return stack->id;
}

/*
 * The same for frames from bpf_get_stack, of which there are `bytes`, without the `skipped` first
 * ones.
 */
static __always_inline u64 slot_finish(struct stack_slot *slot, long bytes, u32 skipped, u8 flags,
				       u32 tgid, u64 seed, u64 ns)
{
	struct rec_stack *stack = &slot->stack;
	u64 count = bytes < 0 ? 0 : (u64)bytes / sizeof(u64);

	stack->count = count > MAX_FRAMES ? MAX_FRAMES : count;
	stack->h.flags = flags;
	stack->tgid = tgid;
	stack->tables_ns = 0;
	if (count + skipped >= setting_max_stack)
		stack->result = STACK_TRUNCATED;
	else
		stack->result = flags & STACK_USER ? STACK_FRAME_POINTERS : STACK_COMPLETE;
	/* Or clang omits slot_send()'s check of the count, which the verifier of 6.12 needs. */
	barrier();
	return slot_send(slot, seed, ns);
}

/*
 * The size of the buffer for bpf_get_stack: no more than it can fill, because it clears the rest.
 * It is a constant for the verifier.
 */
static __always_inline u32 frames_size(void)
{
	u32 frames = setting_max_stack;

	return (frames < MAX_FRAMES ? frames : MAX_FRAMES) * sizeof(u64);
}

static __always_inline u64 walk_kernel_stack(struct stack_slot *slot, void *ctx, u32 skipped,
					     u64 ns)
{
	return slot_finish(slot, bpf_get_stack(ctx, slot->stack.frames, frames_size(), skipped),
			   skipped, 0, 0, 0, ns);
}

/* The kernel stack at a tick, which hits any function: it has no memo. */
static __always_inline u64 interrupted_kernel_stack(struct stack_slot *slot, void *ctx, u64 ns)
{
	u64 id = walk_kernel_stack(slot, ctx, 0, ns);

	cost_phase(COST_KERNEL_WALK);
	return id;
}

/*
 * The frames below ctx: the program, and the kernel function that runs it. The latter runs it at
 * one of two places, by whether the kernel counts the programs' time, so the same stack
 * would have two ids.
 */
#define TRACING_FRAMES 2

/* Takes the kernel stack at a tracepoint; ctx lies on that stack. */
static __always_inline u64 kernel_stack(struct stack_slot *slot, void *ctx, enum kernel_probe probe,
					u64 ns)
{
	u64 id = 0, known = 0;

	slot->kernel_from = (u64)ctx;
	if (kernel_memo_lookup(slot, probe))
		known = slot->memo_id;
	if (known && !memo_is_checked(MEMO_KERNEL)) {
		id = known;
		cost_phase(COST_KERNEL_HIT);
	} else {
		id = walk_kernel_stack(slot, ctx, TRACING_FRAMES, ns);
		if (known && id != known)
			memo_count(MEMO_KERNEL, MEMO_WRONG);
		if (id)
			kernel_memo_store(slot, probe);
		cost_phase(COST_KERNEL_WALK);
	}
	return id;
}

/*
 * Whether the walk ended because a mapping or a table was missing; then the recorder walks a copy
 * of the stack later.
 */
static __always_inline bool is_copy_wanted(u32 result)
{
	return result == STACK_NO_MAPPING || result == STACK_NO_TABLE;
}

/*
 * Whether the walk had the mappings of the memo that was found before it. They may be replaced in
 * between, and then the stack has another id.
 */
static __always_inline bool has_mappings_of_memo(const struct stack_slot *slot)
{
	return ((slot->process.version ^ slot->memo_version) |
		(slot->process.seed_count ^ slot->memo_seed_count)) == 0;
}

/*
 * may_repeat: the task is in a system call, where a thread that waits in a loop has the same stack
 * again.
 */
static __always_inline u64 walk_user_stack(struct stack_slot *slot, struct task_struct *task,
					   u64 seed, bool may_repeat, u64 ns)
{
	struct rec_stack *stack = &slot->stack;
	u64 id, unique = 0, known = 0;

	/* A task that exits has no memory from some moment on, so its stack is looked at. */
	may_repeat &= !unwind_start(slot);
	if (may_repeat && user_memo_lookup(slot, seed))
		known = slot->memo_id;
	if (known && !memo_is_checked(MEMO_USER)) {
		cost_phase(COST_USER_HIT);
		return known;
	}
	stack->h.ns = ns;
	unwind_begin(slot);
	unwind_walk(slot);
	stack->tgid = task->tgid;
	if (is_copy_wanted(stack->result)) {
		if (tables_pending)
			return 0;
		unique = ns * 0x9e3779b97f4a7c15ULL ^ task->pid;
	}
	id = slot_send(slot,
		       seed ^ unique ^ stack->tables_ns ^ (u64)stack->result << 24 ^
			       slot->left_out * 0x9e3779b97f4a7c15ULL ^ (u64)stack->h.flags << 16,
		       ns);
	if (known && id != known && has_mappings_of_memo(slot))
		memo_count(MEMO_USER, MEMO_WRONG);
	if (unique && id)
		unwind_copy(slot);
	else if (may_repeat && id)
		user_memo_store(slot, seed);
	cost_phase(COST_USER_WALK);
	return id;
}

/* Whether user_stack() takes a stack of the task. */
static __always_inline bool takes_user_stack(struct task_struct *task)
{
	return setting_user_stacks != USER_STACKS_NONE &&
	       !(task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER));
}

/*
 * Takes the user stack of the current task. The seed makes the id specific to the process image:
 * after exec the same addresses mean something else, so the stack must be sent again.
 */
static __always_inline u64 user_stack(struct stack_slot *slot, void *ctx, struct task_struct *task,
				      bool in_syscall, u64 ns)
{
	u64 seed = (u64)task->tgid << 32 ^ task->self_exec_id;
	u8 flags = STACK_USER | (in_syscall ? STACK_SYSCALL_PC : 0);
	long bytes;

	if (setting_user_stacks == USER_STACKS_TABLES)
		return walk_user_stack(slot, task, seed, in_syscall, ns);
	bytes = bpf_get_stack(ctx, slot->stack.frames, frames_size(), BPF_F_USER_STACK);
	return slot_finish(slot, bytes, 0, flags, task->tgid, seed ^ in_syscall, ns);
}

/* Takes it in a slot of its own. */
static __always_inline u64 own_user_stack(void *ctx, struct task_struct *task, bool in_syscall,
					  u64 ns)
{
	struct stack_slot *slot;
	u64 id;

	if (!takes_user_stack(task))
		return 0;
	slot = slot_acquire_accounted(ns);
	if (!slot)
		return 0;
	id = user_stack(slot, ctx, task, in_syscall, ns);
	slot_release(slot);
	return id;
}

/*
 * Acquires a slot for the stacks that are wanted of the current task. NULL: none is wanted, or
 * those that are wanted are accounted as lost.
 */
static __always_inline struct stack_slot *stacks_acquire(bool kernel, bool user, u64 ns)
{
	struct stack_slot *slot;

	if (!kernel && !user)
		return NULL;
	slot = slot_acquire_accounted(ns);
	if (!slot && kernel && user)
		stack_lost(ns);
	return slot;
}

#endif
