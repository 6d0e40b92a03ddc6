/* SPDX-License-Identifier: GPL-2.0-or-later */
/* memo_parts.bpf.h - what memos of user stacks and of kernel stacks share. */
#ifndef WALLPROF_MEMO_PARTS_BPF_H
#define WALLPROF_MEMO_PARTS_BPF_H

#include "wallprof.bpf.h"

/* A place is hashed; its set is given by the upper bits. */
#define PLACE_HASH(word) ((word)*0x9e3779b97f4a7c15ULL)
#define PLACE_SET(hash)	 ((u32)((hash) >> 48) & (MEMO_SETS - 1))

/* Begins to write a memo; returns false if another CPU writes it. */
static __always_inline bool memo_lock(u64 *lock)
{
	u64 now = *(volatile u64 *)lock;

	return !(now & 1) && __sync_val_compare_and_swap(lock, now, now + 1) == now;
}

static __always_inline void memo_unlock(u64 *lock)
{
	barrier();
	*(volatile u64 *)lock += 1;
}

/*
 * Whether the slot's stack was sent, so that it may be remembered: what is found in a memo is not
 * looked up again.
 */
static __always_inline bool was_sent(const struct stack_slot *slot)
{
	u64 id = slot->stack.id;

	return stack_sent[id & (STACK_SENT_SLOTS - 1)] == id;
}

/*
 * Whether slot->span has the same words as `read`, given that the span has moved by `moved` bytes
 * and the end of the stack by `top` bytes (stack_memo.bpf.c).
 */
extern int memo_words_match(struct stack_slot *slot, struct memo_words *read, u64 moved, u64 top);

#endif
