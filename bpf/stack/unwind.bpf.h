/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind.bpf.h - user stacks by unwind tables: the functions for the other programs.
 */
#ifndef WALLPROF_UNWIND_BPF_H
#define WALLPROF_UNWIND_BPF_H

#include "wallprof.bpf.h"

/*
 * Loads the current task's registers and mappings for the walk; slot->stack.h.ns must be set. If
 * the result is not WALK_CONTINUE, there is nothing to walk, and the stack has its frames already.
 */
extern int unwind_begin(struct stack_slot *slot);

/* Walks the stack into slot->stack: frames, count, result, tables_ns and flags. */
extern int unwind_walk(struct stack_slot *slot);

/*
 * Sends the registers and the stack if the walk could not reach its end. It overwrites slot->walk.
 */
extern int unwind_copy(struct stack_slot *slot);

#endif
