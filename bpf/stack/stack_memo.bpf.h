/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_memo.bpf.h - stack memos for user and kernel stacks that repeat.
 */
#ifndef WALLPROF_STACK_MEMO_BPF_H
#define WALLPROF_STACK_MEMO_BPF_H

#include "wallprof.bpf.h"

/* The programs that remember kernel stacks. They stand at different hooks, so a memo is for
 * one of them. */
enum kernel_probe { KERNEL_PROBE_SWITCH, KERNEL_PROBE_WAKING };

/*
 * Whether this is a remembered stack of this process: every word that its walk read is the same
 * now. slot->start is set (unwind_start()); the seed identifies the process's image. If it is the
 * remembered stack, slot->memo_id gets that stack's id, and 1 is returned.
 */
extern int user_memo_lookup(struct stack_slot *slot, u64 seed);

/*
 * Remembers what the walk read, for user_memo_lookup() with that seed, if the walk reached the end
 * of the stack.
 */
extern int user_memo_store(struct stack_slot *slot, u64 seed);

/*
 * Looks up the current task's kernel stack. slot->kernel_from is an address in the frame of the
 * kernel function that runs the program. If the stack is the remembered one, its id is stored in
 * slot->memo_id, and 1 is returned.
 */
extern int kernel_memo_lookup(struct stack_slot *slot, enum kernel_probe probe);

/*
 * Remembers the words that kernel_memo_lookup() read, with slot->stack: its id, and the frames that
 * were found.
 */
extern int kernel_memo_store(struct stack_slot *slot, enum kernel_probe probe);

#endif
