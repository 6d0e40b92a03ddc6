/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * user_stack_memo.bpf.c - a thread that waits in a loop has the same stack each time. A walk is a
 * pure function of what it started from (program counter, stack pointer, other registers that had
 * a say, the tables) and of the words that it read. If all of these are the same, so is
 * the stack; nothing is assumed.
 */
#include "unwind.bpf.h"

static __always_inline struct again *again_of(const struct walk_start *start, u32 tid)
{
	u64 mixed = (start->pc ^ start->sp << 20 ^ tid) * 0x9e3779b97f4a7c15ULL;
	u32 key = (mixed >> 40) & (MEMO_SLOTS - 1);

	return bpf_map_lookup_elem(&stack_memos, &key);
}

static __always_inline bool take_again(struct again *again)
{
	return __sync_val_compare_and_swap(&again->busy, 0, 1) == 0;
}

static __always_inline void release_again(struct again *again)
{
	__sync_lock_test_and_set(&again->busy, 0);
}

/* Without a branch on what is compared, each of which the verifier would follow. */
static __always_inline bool same_start(const struct again *again, struct stack_slot *slot, u32 tid)
{
	const struct walk_start *start = &slot->start;
	u64 bp_mask = again->used & WALK_USED_BP ? ~0ULL : 0;
	u64 bx_mask = again->used & WALK_USED_BX ? ~0ULL : 0;
	u64 differ = again->start.pc ^ start->pc;

	differ |= again->start.sp ^ start->sp;
	differ |= again->start.exact ^ start->exact;
	differ |= again->seed ^ slot->stack.id;
	differ |= (again->start.bp ^ start->bp) & bp_mask;
	differ |= (again->start.bx ^ start->bx) & bx_mask;
	differ |= again->tid ^ tid;
	differ |= again->gen ^ slot->process.gen;
	differ |= again->seed_count ^ slot->process.seed_count;
	return differ == 0;
}

/* A global function: the verifier works through it once for both kinds of stacks. */
__noinline int again_same_words(struct stack_slot *slot, struct again_words *read, u64 moved)
{
	u64 differ = 0;

	if (!slot || !read || read->count == 0)
		return 0;
	for (u32 i = 0; i < MEMO_WORDS; i++) {
		if (i >= read->count)
			break;
		differ |= slot->span[read->words[i].at & (MEMO_SPAN / sizeof(u64) - 1)] ^
			  (read->words[i].value + (moved & -(u64)read->words[i].moves));
	}
	return differ == 0;
}

/* Reads the part of the stack that the walk read, and compares each word of the walk's. */
static __always_inline bool same_words(struct again *again, struct stack_slot *slot)
{
	u32 size = again->read.span;

	if (size == 0 || size > MEMO_SPAN ||
	    bpf_probe_read_user(slot->span, size, (void *)slot->start.sp))
		return false;
	return again_same_words(slot, &again->read, 0);
}

/* stack.id holds the seed. */
__noinline int unwind_again(struct stack_slot *slot)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct again *again;
	bool same;
	u64 id;

	if (!slot || slot->stack.result != WALK_ON || slot->process.gen == 0)
		return 0;
	again = again_of(&slot->start, tid);
	if (!again || !take_again(again))
		return 0;
	id = again->id;
	same = same_start(again, slot, tid) && stack_sent[id & (STACK_SENT_SLOTS - 1)] == id &&
	       same_words(again, slot);
	release_again(again);
	if (same)
		slot->stack.id = id;
	memo_counted(AGAIN_USER, same);
	return same;
}

/* Of the stack with the given id; the seed is the one that unwind_again() was asked with. */
__noinline int unwind_keep(struct stack_slot *slot, u64 seed)
{
	u32 tid = bpf_get_current_pid_tgid(), count = 0;
	struct again *again;

	if (!slot || slot->again.unfit || slot->walk.used & WALK_USED_OTHERS ||
	    slot->process.gen == 0 ||
	    (slot->stack.result != STACK_COMPLETE && slot->stack.result != STACK_END_ZERO))
		return 0;
	again = again_of(&slot->start, tid);
	if (!again || !take_again(again))
		return 0;
	again->tid = tid;
	again->seed = seed;
	again->id = slot->stack.id;
	again->start = slot->start;
	again->gen = slot->process.gen;
	again->seed_count = slot->process.seed_count;
	again->used = slot->walk.used;
	again->read.span = slot->again.read.span;
	/* Without a branch, as above. */
	for (u32 i = 0; i < MEMO_WORDS; i++) {
		if (i >= slot->again.read.count)
			break;
		again->read.words[count & (MEMO_WORDS - 1)] = slot->again.read.words[i];
		count += slot->again.read.words[i].counts;
	}
	again->read.count = count;
	release_again(again);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
