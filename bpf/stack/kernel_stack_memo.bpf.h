/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_stack_memo.bpf.h - kernel stacks that repeat.
 */
#ifndef WALLPROF_KERNEL_STACK_MEMO_BPF_H
#define WALLPROF_KERNEL_STACK_MEMO_BPF_H

#include "wallprof.bpf.h"

/*
 * Is what slot->span has at all places of `read` what was there, but that the span may have moved
 * by so many bytes? (user_stack_memo.bpf.c)
 */
extern int memo_words_match(struct stack_slot *slot, struct memo_words *read, u64 moved);

/*
 * The current task's kernel stack, of which slot->kernel_from is an address in the frame of the
 * kernel's function that runs the program: is it the one that was seen there last? Then
 * slot->stack.id is that one's, and 1 is returned.
 */
extern int kernel_memo_lookup(struct stack_slot *slot);

/* Keeps what kernel_memo_lookup() looked at, with slot->stack: its id, and the frames that were
 * found. */
extern int kernel_memo_store(struct stack_slot *slot);

#endif
