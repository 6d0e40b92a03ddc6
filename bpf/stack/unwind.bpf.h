/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind.bpf.h - user stacks by unwind tables: the functions for the other programs.
 */
#ifndef WALLPROF_UNWIND_BPF_H
#define WALLPROF_UNWIND_BPF_H

#include "wallprof.bpf.h"

/*
 * Loads the registers that a walk starts with into slot->start. Returns a number other than 0 if
 * the task exits.
 */
extern int unwind_start(struct stack_slot *slot);

/* Loads the mappings of the current task's process into slot->process, once after unwind_start().
 */
extern int unwind_load_process(struct stack_slot *slot);

/*
 * Loads the current task's registers and mappings for the walk; slot->stack.h.ns must be set, and
 * unwind_start() comes before. If
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
