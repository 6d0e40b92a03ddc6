/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind.bpf.h - user stacks by unwind tables: what the rest of the programs call.
 */
#ifndef WALLPROF_UNWIND_BPF_H
#define WALLPROF_UNWIND_BPF_H

#include "wallprof.bpf.h"

/*
 * The current task's registers and mappings, for the walk; slot->stack.h.ns is set. If its result
 * is not WALK_CONTINUE, the stack is at its end already.
 */
extern int unwind_begin(struct stack_slot *slot);

/*
 * Is it the stack that this thread had when it last was here? Then slot->stack.id, the seed
 * before, is that one's, and 1 is returned: every word that the walk read then is the same now.
 */
extern int user_memo_lookup(struct stack_slot *slot);

/* Walks the stack into slot->stack: frames, count, result, tables_ns and flags. */
extern int unwind_walk(struct stack_slot *slot);

/* Keeps what was read, for user_memo_lookup() with that seed, if the walk came to the stack's end.
 */
extern int user_memo_store(struct stack_slot *slot, u64 seed);

/* Sends registers and stack of what could not be walked; the record is spent then. */
extern int unwind_copy(struct stack_slot *slot);

/*
 * These two take the slot's number, because what is put into a map has to be a map's value to the
 * verifier of 6.1, not a function's argument.
 *
 * The current task has just executed another program: what can be known of that at once.
 */
extern int unwind_exec(u32 number);
/* A process was forked: it sees what its parent, the current one, sees. */
extern int unwind_fork(u32 number, u32 tgid, u64 start_boottime);
/* A process ended. */
extern int unwind_exit(u32 tgid, u64 start_boottime);

#endif
