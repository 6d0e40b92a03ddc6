/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * user_stack_memo.bpf.c - a thread that waits in a loop has the same stack each time. A walk is a
 * pure function of what it started from (program counter, stack pointer, other registers that had
 * a say, the tables) and of the words that it read. If all of these are the same, so is
 * the stack; nothing is assumed.
 */
#include "unwind.bpf.h"

static __always_inline struct user_stack_memo *user_memo_slot(const struct walk_start *start,
							      u32 tid)
{
	u64 mixed = (start->pc ^ start->sp << 20 ^ tid) * 0x9e3779b97f4a7c15ULL;
	u32 key = (mixed >> 40) & (MEMO_SLOTS - 1);

	return bpf_map_lookup_elem(&stack_memos, &key);
}

static __always_inline bool memo_acquire(struct user_stack_memo *again)
{
	return __sync_val_compare_and_swap(&again->busy, 0, 1) == 0;
}

static __always_inline void memo_release(struct user_stack_memo *again)
{
	__sync_lock_test_and_set(&again->busy, 0);
}

/* Without a branch on what is compared, each of which the verifier would follow. */
static __always_inline bool same_start(const struct user_stack_memo *again, struct stack_slot *slot,
				       u32 tid)
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
	differ |= again->version ^ slot->process.version;
	differ |= again->seed_count ^ slot->process.seed_count;
	return differ == 0;
}

/* A global function: the verifier works through it once for both kinds of stacks. */
__noinline int memo_words_match(struct stack_slot *slot, struct memo_words *read, u64 moved)
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
static __always_inline bool same_words(struct user_stack_memo *again, struct stack_slot *slot)
{
	u32 size = again->read.span;

	if (size == 0 || size > MEMO_SPAN ||
	    bpf_probe_read_user(slot->span, size, (void *)slot->start.sp))
		return false;
	return memo_words_match(slot, &again->read, 0);
}

/* stack.id holds the seed. */
__noinline int user_memo_lookup(struct stack_slot *slot)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct user_stack_memo *again;
	bool same;
	u64 id;

	if (!slot || slot->stack.result != WALK_CONTINUE || slot->process.version == 0)
		return 0;
	again = user_memo_slot(&slot->start, tid);
	if (!again || !memo_acquire(again))
		return 0;
	id = again->id;
	same = same_start(again, slot, tid) && stack_sent[id & (STACK_SENT_SLOTS - 1)] == id &&
	       same_words(again, slot);
	memo_release(again);
	if (same)
		slot->stack.id = id;
	memo_hits(MEMO_USER, same);
	return same;
}

/* Of the stack with the given id; the seed is the one that user_memo_lookup() was asked with. */
__noinline int user_memo_store(struct stack_slot *slot, u64 seed)
{
	u32 tid = bpf_get_current_pid_tgid(), count = 0;
	struct user_stack_memo *again;

	if (!slot || slot->again.unusable || slot->walk.used & WALK_USED_OTHERS ||
	    slot->process.version == 0 ||
	    (slot->stack.result != STACK_COMPLETE && slot->stack.result != STACK_END_ZERO))
		return 0;
	again = user_memo_slot(&slot->start, tid);
	if (!again || !memo_acquire(again))
		return 0;
	again->tid = tid;
	again->seed = seed;
	again->id = slot->stack.id;
	again->start = slot->start;
	again->version = slot->process.version;
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
	memo_release(again);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
