/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_memo.bpf.h - stack memos for user stacks that repeat. kernel_memo.bpf.h has those of kernel
 * stacks.
 */
#ifndef WALLPROF_STACK_MEMO_BPF_H
#define WALLPROF_STACK_MEMO_BPF_H

#include "wallprof.bpf.h"

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

#endif
