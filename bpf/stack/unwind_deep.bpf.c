/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_deep.bpf.c - bounds what the walks of deep user stacks take.
 *
 * A frame takes about 0.05 us, so a stack of 20,000 frames takes 1 ms, at each tick and at each
 * switch, with interrupts disabled. The first SURE_PARTS parts of a walk are always made. What
 * follows may take one part in DEEP_SHARE of a CPU's time: after a deep walk that CPU makes no
 * other one for DEEP_SHARE times as long.
 *
 * In that time only the innermost frames are walked, and then the outermost ones, from a frame that
 * the thread's last deep walk went through (its anchor). That frame is on the stack still if its
 * return address is, and if the walk is on that stack, between the frame and where that last walk
 * came to it: the stack of a suspended coroutine keeps its return addresses, too. The stack grows
 * downwards, and a call from one of the frame's callers would have written another address there.
 * (An exception is a callee that has called from elsewhere, over memory that it has not written
 * yet.) From there on the walk reads the stack as it is. How many frames lie in between is not
 * known; STACK_JOINED says so.
 */
#include "unwind_deep.bpf.h"

#define DEEP_SHARE 32

#define ANCHOR_BUSY ~0ULL /* the owner while an anchor is written */

/* The anchor is so many parts before the one in which the walk ends. */
#define ANCHOR_PARTS 6
_Static_assert(ANCHOR_PARTS *WALK_PART >= ROOT_FRAMES, "all outermost frames are walked again");
_Static_assert(ANCHOR_PARTS < WALK_MARKS, "the anchor is still noted");
_Static_assert(SURE_PARTS *WALK_PART > MAX_FRAMES, "only deep stacks are cut");

static __always_inline struct stack_anchor *anchor_of(struct task_struct *task)
{
	return &stack_anchors[task->pid & (STACK_ANCHORS - 1)];
}

static __always_inline u64 anchor_owner(struct task_struct *task)
{
	return STACK_ANCHOR_OWNER(task->pid, task->self_exec_id);
}

/* The rest of a walk that goes on at an anchor, or is beyond it already. */
#define END_PARTS (ANCHOR_PARTS + 2)

__noinline int unwind_deepen(struct stack_slot *slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cpu_account *account = cpu_account();
	u64 owner = anchor_owner(task), word = 0;
	struct stack_anchor *anchor = anchor_of(task), *copy;
	const struct walk *frame;

	if (!slot || !account || slot->last_part != SURE_PARTS)
		return 1;
	slot->deep_ns = bpf_ktime_get_ns();
	slot->last_part = WALK_PARTS;
	if (slot->deep_ns >= account->deep_after_ns)
		return 0;
	slot->deep_ns = 0;
	slot->last_part = SURE_PARTS + END_PARTS;
	/* It is taken out of the slot, because another thread may write it meanwhile. */
	copy = &slot->marks[0];
	__builtin_memcpy(copy, anchor, sizeof(*copy));
	barrier();
	frame = (const struct walk *)copy->frame;
	if ((copy->owner ^ owner) | (*(volatile u64 *)&anchor->owner ^ owner))
		return 1;
	if (frame->sp <= slot->walk.sp)
		return 0;
	bpf_probe_read_user(&word, sizeof(word), (void *)(frame->sp - sizeof(word)));
	if (word != frame->pc || slot->walk.sp < frame->low)
		return 1;
	/*
	 * This walk began on the same stack, so that a recursion can grow from sample to sample. It
	 * is stored only if the anchor is still the same.
	 */
	if (slot->walk.low < frame->low)
		__sync_val_compare_and_swap(&((struct walk *)anchor->frame)->low, frame->low,
					    slot->walk.low);
	__builtin_memcpy(&slot->walk, copy->frame, sizeof(copy->frame));
	slot->walk.bp_from_leaf = slot->walk.bx_from_leaf = false;
	slot->walk.known = 0; /* slot->walk.regs are of this walk */
	slot->stack.h.flags |= STACK_JOINED;
	return 0;
}

static __always_inline void keep_anchor(struct stack_slot *slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct stack_anchor *anchor = anchor_of(task);
	u32 part = (slot->depth - 1) / WALK_PART - ANCHOR_PARTS;
	const struct stack_anchor *mark = &slot->marks[part & (WALK_MARKS - 1)];
	u64 last = *(volatile u64 *)&anchor->owner, low;

	/* Another CPU may write it for another thread. */
	if (((const struct walk *)mark->frame)->inner || last == ANCHOR_BUSY ||
	    __sync_val_compare_and_swap(&anchor->owner, last, ANCHOR_BUSY) != last)
		return;
	/* Two walks that overlap were on one stack, which then is known as far as the longer one.
	 */
	low = ((const struct walk *)mark->frame)->low;
	if (last == anchor_owner(task) && ((const struct walk *)anchor->frame)->sp > low &&
	    ((const struct walk *)anchor->frame)->low < low)
		low = ((const struct walk *)anchor->frame)->low;
	__builtin_memcpy(anchor->frame, mark->frame, sizeof(anchor->frame));
	((struct walk *)anchor->frame)->low = low;
	barrier();
	*(volatile u64 *)&anchor->owner = anchor_owner(task);
}

__noinline int unwind_deep_end(struct stack_slot *slot)
{
	struct cpu_account *account = cpu_account();
	struct stack_gap *gap;

	if (!slot || !account)
		return 0;
	slot->reads.unusable = 1;
	slot->left_out = slot->depth - MAX_FRAMES;
	slot->stack.count = MAX_FRAMES;
	slot->stack.h.flags |= STACK_DEEP;
	gap = (struct stack_gap *)&slot->stack.frames[MAX_FRAMES];
	gap->left_out = slot->left_out;
	gap->leaf = LEAF_FRAMES;
	gap->reserved = 0;
	if (slot->stack.h.flags & STACK_JOINED) {
		/* The outermost frames must all be walked from the anchor. */
		if (slot->depth < SURE_PARTS * WALK_PART + ROOT_FRAMES) {
			slot->stack.count = LEAF_FRAMES;
			slot->left_out = 0;
			slot->stack.h.flags &= ~(STACK_DEEP | STACK_JOINED);
			slot->stack.result = STACK_TRUNCATED;
		}
	} else if (slot->deep_ns) {
		account->deep_after_ns =
			slot->deep_ns + (bpf_ktime_get_ns() - slot->deep_ns) * DEEP_SHARE;
		if (slot->stack.result == STACK_COMPLETE || slot->stack.result == STACK_END_ZERO)
			keep_anchor(slot);
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
