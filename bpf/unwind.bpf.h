/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind.bpf.h - user stacks by unwind tables: what the rest of the programs call.
 */
#ifndef WALLPROF_UNWIND_BPF_H
#define WALLPROF_UNWIND_BPF_H

#include "wallprof.bpf.h"

/*
 * Walks the current task's user stack into slot->stack, of which h.ns is set: frames, count,
 * result, tables_ns and flags. Its registers remain in slot->walk.regs.
 */
extern int unwind_current(struct stack_slot *slot);

/* Sends registers and stack of what unwind_current() could not walk; the record is spent then. */
extern int unwind_copy(struct stack_slot *slot);

/* The current task has just executed another program: what can be known of that at once. */
extern int unwind_exec(struct stack_slot *slot);
/* A process was forked: it sees what its parent, the current one, sees. */
extern int unwind_fork(struct stack_slot *slot, u32 tgid, u32 parent, u64 start_boottime);
/* A process ended. */
extern int unwind_exit(u32 tgid);

#endif
