/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_state.h - the state of the stack before an instruction, and how an instruction changes it.
 *
 * The CFA is the stack pointer before the call that led to the function, as in DWARF.
 */
#ifndef WALLPROF_UNWIND_STATE_H
#define WALLPROF_UNWIND_STATE_H

#include "unwind_instruction.h"
#include "unwind_rows.h"

#define UNWIND_SLOT 8 /* bytes of a word on the stack */

#define UNWIND_SAVED_NOWHERE 1 /* the saved value was overwritten or popped */

/* How to recover the caller's value of rbp or rbx. */
typedef struct UnwindSaved {
	int32_t saved_at; /* offset from the CFA, < 0; 0: not saved; UNWIND_SAVED_NOWHERE */
	bool changed;	  /* the register does not hold the caller's value any more */
} UnwindSaved;

/*
 * What is known by the address to which a function has aligned its stack (and $-32,%rsp). Its
 * distance from the CFA is not known, so the CFA is found by a copy of it, which such a function
 * keeps in a register or at a place in its stack.
 */
typedef struct UnwindAligned {
	bool sp_known, bp_known;
	bool copy_known; /* the register `copy` holds CFA - copy_to_cfa */
	bool slot_known; /* the word at `slot` holds CFA - slot_to_cfa */
	bool bp_saved;	 /* the word at `bp_at` holds the caller's rbp, and no place by the CFA */
	uint8_t copy;
	int32_t sp_to, bp_to; /* aligned address minus the register, bytes */
	int32_t slot, bp_at;  /* aligned address minus the address of the word */
	int32_t copy_to_cfa, slot_to_cfa;
} UnwindAligned;

/* The state before an instruction. All 0: no path to the instruction is known. */
typedef struct UnwindState {
	bool known; /* a path to the instruction is known */
	bool guessed;
	bool outermost;	  /* the function has no caller */
	bool system_call; /* the function has made a system call */
	bool sp_known, bp_known;
	bool broken;		      /* the function popped more than it had pushed */
	bool weak;		      /* reached only if the call before it returns */
	uint8_t ra;		      /* RA_AT_CFA, RA_REG + register, or UNWIND_RA_LOST */
	int32_t sp_to_cfa, bp_to_cfa; /* CFA minus the register, bytes */
	UnwindSaved bp, bx;
	UnwindAligned aligned;
} UnwindState;

#define UNWIND_RA_LOST 0xff

/* The state at the first instruction of a function. */
extern const UnwindState unwind_state_entered;

bool unwind_state_same(const UnwindState *a, const UnwindState *b);
/* Returns the state where two paths join: what differs between them is unknown. */
UnwindState unwind_state_merge(const UnwindState *a, const UnwindState *b);
/* Applies the instruction to the state. Its effect on control flow is not part of the state. */
void unwind_state_change(UnwindState *state, const Instruction *instruction);
/* Returns whether the stack and rbp, rbx are as on entry, so that the function can return. */
bool unwind_state_returns(const UnwindState *state);
/* Returns the unwind rule for the state; `unknown` if it cannot be expressed as a rule. */
struct unwind_rule unwind_state_rule(const UnwindState *state, const struct unwind_rule *unknown);

#endif
