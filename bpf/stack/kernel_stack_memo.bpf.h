/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_stack_memo.bpf.h - stack memos for kernel stacks that repeat.
 */
#ifndef WALLPROF_KERNEL_STACK_MEMO_BPF_H
#define WALLPROF_KERNEL_STACK_MEMO_BPF_H

#include "wallprof.bpf.h"

/*
 * Whether slot->span has the same words as `read`, given that the span has moved by `moved` bytes
 * (user_stack_memo.bpf.c).
 */
extern int memo_words_match(struct stack_slot *slot, struct memo_words *read, u64 moved);

/*
 * Looks up the current task's kernel stack. slot->kernel_from is an address in the frame of the
 * kernel function that runs the program. If the stack is the remembered one, its id is stored in
 * slot->stack.id, and 1 is returned.
 */
extern int kernel_memo_lookup(struct stack_slot *slot);

/*
 * Remembers the words that kernel_memo_lookup() read, with slot->stack: its id, and the frames that
 * were found.
 */
extern int kernel_memo_store(struct stack_slot *slot);

#endif
