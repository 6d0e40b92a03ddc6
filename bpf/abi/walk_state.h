/* SPDX-License-Identifier: GPL-2.0-or-later */
/* walk_state.h - what a walk has in hand (walk.h). */
#ifndef WALLPROF_WALK_STATE_H
#define WALLPROF_WALK_STATE_H

#include "maps.h"

#ifndef __bpf__
#include <stdbool.h>
#endif

/* What a function of the walk returns while it has not come to an end; else an enum stack_result.
 */
#define WALK_CONTINUE STACK_RESULTS

/* The leaf's. */
struct walk_start {
	u64 pc, sp, bp, bx;
	u64 exact;
};

/* Which registers of the leaf had a say in where the walk went, besides pc and sp. */
enum walk_used {
	WALK_USED_BP = 1 << 0,
	WALK_USED_BX = 1 << 1,
	WALK_USED_OTHERS = 1 << 2,
};

/* A frame, while its caller is looked for. */
struct walk {
	u64 pc, sp, bp, bx;
	bool exact; /* pc is where the frame is, not where it will go on */
	bool inner; /* regs are this frame's: it is the leaf, or was interrupted by a signal */
	bool bp_lost, bx_lost;		 /* nobody knows them */
	bool bp_from_leaf, bx_from_leaf; /* they are still the leaf's */
	u8 used;			 /* enum walk_used */
	u8 bp_word, bx_word;		 /* where they were read from (walk_read_saved()) */
	bool guessed;			 /* found by a frame pointer, or a rule that is a guess */
	u64 regs[DWARF_REGS + 1];
	struct unwind_mapping mapping; /* the one that held the last pc; last == 0: none */
};

/*
 * A signal frame, when its handler has returned: rsp points to struct ucontext, in which struct
 * sigcontext is at 40: r8 … r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip.
 */
#define SIGNAL_CONTEXT	 40
#define WALK_SIGNAL_REGS 17

#endif
