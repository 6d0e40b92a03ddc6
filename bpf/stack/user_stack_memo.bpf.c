/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * user_stack_memo.bpf.c - stack memos for user stacks. A thread that waits in a loop has the same
 * stack each time. A walk is a pure function of its start (program counter, stack pointer, the
 * other registers that it used, the tables) and of the words that it read. If all of these are the
 * same, the stack is the same; nothing is assumed.
 */
#include "unwind.bpf.h"

static __always_inline struct user_stack_memo *user_memo_slot(const struct walk_start *start,
							      u32 tid)
{
	u64 mixed = (start->pc ^ start->sp << 20 ^ tid) * 0x9e3779b97f4a7c15ULL;
	u32 key = (mixed >> 40) & (MEMO_SLOTS - 1);

	return bpf_map_lookup_elem(&stack_memos, &key);
}

static __always_inline bool memo_acquire(struct user_stack_memo *memo)
{
	return __sync_val_compare_and_swap(&memo->busy, 0, 1) == 0;
}

static __always_inline void memo_release(struct user_stack_memo *memo)
{
	__sync_lock_test_and_set(&memo->busy, 0);
}

/* There are no branches on the compared values, because the verifier would follow each of them. */
static __always_inline bool same_start(const struct user_stack_memo *memo, struct stack_slot *slot,
				       u32 tid)
{
	const struct walk_start *start = &slot->start;
	u64 bp_mask = memo->used & WALK_USED_BP ? ~0ULL : 0;
	u64 bx_mask = memo->used & WALK_USED_BX ? ~0ULL : 0;
	u64 differ = memo->start.pc ^ start->pc;

	differ |= memo->start.sp ^ start->sp;
	differ |= memo->start.exact ^ start->exact;
	differ |= memo->seed ^ slot->stack.id;
	differ |= (memo->start.bp ^ start->bp) & bp_mask;
	differ |= (memo->start.bx ^ start->bx) & bx_mask;
	differ |= memo->tid ^ tid;
	differ |= memo->version ^ slot->process.version;
	differ |= memo->seed_count ^ slot->process.seed_count;
	return differ == 0;
}

/* A global function, so that the verifier checks it once for both kinds of stacks. */
__noinline int memo_words_match(struct stack_slot *slot, struct memo_words *read, u64 moved)
{
	u64 differ = 0;

	if (!slot || !read || read->count == 0)
		return 0;
	for (u32 i = 0; i < MEMO_WORDS; i++) {
		if (i >= read->count)
			break;
		differ |= slot->span[read->words[i].at & (MEMO_SPAN / sizeof(u64) - 1)] ^
			  (read->words[i].value + (moved & -(u64)read->words[i].relative));
	}
	return differ == 0;
}

/* Reads the part of the stack that the walk read, and compares the words. */
static __always_inline bool same_words(struct user_stack_memo *memo, struct stack_slot *slot)
{
	u32 size = memo->read.span;

	if (size == 0 || size > MEMO_SPAN ||
	    bpf_probe_read_user(slot->span, size, (void *)slot->start.sp))
		return false;
	return memo_words_match(slot, &memo->read, 0);
}

/* slot->stack.id holds the seed. */
__noinline int user_memo_lookup(struct stack_slot *slot)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct user_stack_memo *memo;
	bool same;
	u64 id;

	if (!slot || slot->stack.result != WALK_CONTINUE || slot->process.version == 0)
		return 0;
	memo = user_memo_slot(&slot->start, tid);
	if (!memo || !memo_acquire(memo))
		return 0;
	id = memo->id;
	same = same_start(memo, slot, tid) && stack_sent[id & (STACK_SENT_SLOTS - 1)] == id &&
	       same_words(memo, slot);
	memo_release(memo);
	if (same)
		slot->stack.id = id;
	memo_count(MEMO_USER, same);
	return same;
}

/* Remembers slot->stack; `seed` is the value that stack.id had at user_memo_lookup(). */
__noinline int user_memo_store(struct stack_slot *slot, u64 seed)
{
	u32 tid = bpf_get_current_pid_tgid(), count = 0;
	struct user_stack_memo *memo;

	if (!slot || slot->memo.unusable || slot->walk.used & WALK_USED_OTHERS ||
	    slot->process.version == 0 ||
	    (slot->stack.result != STACK_COMPLETE && slot->stack.result != STACK_END_ZERO))
		return 0;
	memo = user_memo_slot(&slot->start, tid);
	if (!memo || !memo_acquire(memo))
		return 0;
	memo->tid = tid;
	memo->seed = seed;
	memo->id = slot->stack.id;
	memo->start = slot->start;
	memo->version = slot->process.version;
	memo->seed_count = slot->process.seed_count;
	memo->used = slot->walk.used;
	memo->read.span = slot->memo.read.span;
	/* There is no branch, as above. */
	for (u32 i = 0; i < MEMO_WORDS; i++) {
		if (i >= slot->memo.read.count)
			break;
		memo->read.words[count & (MEMO_WORDS - 1)] = slot->memo.read.words[i];
		count += slot->memo.read.words[i].compared;
	}
	memo->read.count = count;
	memo_release(memo);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
