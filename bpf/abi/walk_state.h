/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk_state.h - the state of a walk (walk.h).
 */
#ifndef WALLPROF_WALK_STATE_H
#define WALLPROF_WALK_STATE_H

#include "maps.h"

#ifndef __bpf__
#include <stdbool.h>
#endif

/* Returned by the functions of the walk to continue; any other result is an enum stack_result. */
#define WALK_CONTINUE STACK_RESULTS

/* The registers of the leaf. */
struct walk_start {
	u64 pc, sp, bp, bx;
	u32 exact;
	u32 compat; /* 1: not 64-bit code, which has no walk */
};

/* The registers of the leaf, besides pc and sp, on which the walk depended. */
enum walk_used {
	WALK_USED_BP = 1 << 0,
	WALK_USED_BX = 1 << 1,
	WALK_USED_OTHERS = 1 << 2,
};

/*
 * The registers besides rbx, rbp and rsp that count as unchanged in callers: those that a function
 * need not preserve. If the CFA is in such a register across a call, the callee is known to leave
 * it alone. What a callee saves and changes (r12 to r15) is not in the tables.
 */
#define WALK_SCRATCH_REGS 0x0f37
#define WALK_ALL_REGS	  0xffff

/* A frame whose caller is to be found. */
struct walk {
	u64 pc, sp, bp, bx;
	u64 low;    /* sp where the walk came to this stack: what lies above is one stack */
	bool exact; /* pc is an exact program counter, not a return address */
	bool inner; /* regs are this frame's: it is the leaf, or a signal interrupted it */
	u16 known;  /* the registers that regs has the values of, one bit each */
	bool bp_lost, bx_lost;		 /* their values are not known */
	bool bp_from_leaf, bx_from_leaf; /* they still have the leaf's values */
	u8 used;			 /* enum walk_used */
	bool guessed;			 /* found by a frame pointer or by an uncertain rule */
	u16 bp_word, bx_word; /* the words that they were read from (walk_read_saved()) */
	u64 regs[DWARF_REGS + 1];
	struct unwind_mapping mapping; /* the mapping of the last pc; last == 0: none */
};

/*
 * A signal frame after its handler has returned: rsp points to struct ucontext, in which struct
 * sigcontext is at offset 40: r8 … r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip.
 */
#define SIGNAL_CONTEXT	 40
#define WALK_SIGNAL_REGS 17

#endif
