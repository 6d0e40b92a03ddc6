/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_state.h - what is known of the stack at a place in code, and what an instruction makes of
 * it.
 *
 * The CFA is the stack pointer before the call that led to the function, as in DWARF.
 */
#ifndef WALLPROF_UNWIND_STATE_H
#define WALLPROF_UNWIND_STATE_H

#include "unwind.h"
#include "unwind_instruction.h"

#define UNWIND_SLOT 8 /* bytes of a word on the stack */

#define UNWIND_SAVED_NOWHERE 1 /* it was, and cannot be had any more */

/* How the caller's value of rbp or rbx can be had. */
typedef struct UnwindKept {
	int32_t saved_at; /* from the CFA, below 0; 0 = not saved; or: */
	bool changed;	  /* the register holds something else */
} UnwindKept;

/* What is known before an instruction. All 0: no way leads to it. */
typedef struct UnwindState {
	bool known; /* the instruction is reached */
	bool guessed;
	bool outermost;	  /* nothing is returned to */
	bool system_call; /* the function has made one */
	bool sp_known, bp_known;
	bool broken; /* more was taken off the stack than there was */
	bool weak;   /* reached only if the function that is called before it returns */
	uint8_t ra;  /* 0 = on the stack; UNWIND_RA_LOST; else RA_REG + register */
	int32_t sp_to_cfa, bp_to_cfa; /* CFA less the register */
	UnwindKept bp, bx;
} UnwindState;

#define UNWIND_RA_LOST 0xff

/* Where a function begins. */
extern const UnwindState unwind_state_entered;

bool unwind_state_same(const UnwindState *a, const UnwindState *b);
/* What is known where two ways meet. */
UnwindState unwind_state_merge(const UnwindState *a, const UnwindState *b);
/* What the instruction does to the stack; where control goes from it is not looked at. */
void unwind_state_change(UnwindState *state, const Instruction *instruction);
/* Is it as the function was entered with, so that it can return? */
bool unwind_state_returns(const UnwindState *state);
/* The rule of such a place; unknown if none can be made. */
struct unwind_rule unwind_state_rule(const UnwindState *state, const struct unwind_rule *unknown);

#endif
