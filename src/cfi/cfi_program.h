/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_program.h - what the instructions of a CIE and an FDE say of each place in a function, as a
 * struct unwind_rule (its words). Follows the DWARF 5 standard, section 6.4.2, the LSB 5,
 * chapter 10.6, and the GNU extensions that binutils documents (args_size,
 * negative_offset_extended).
 *
 * Kept are the rules of rbx, rbp, rsp and the return address; those of other registers are read
 * over: the walk does not need them.
 */
#ifndef WALLPROF_CFI_PROGRAM_H
#define WALLPROF_CFI_PROGRAM_H

#include "cfi.h"
#include "unwind_rules.h"

/* How the CFA is found, before it is known whether that fits into a rule. */
typedef struct CfiCfa {
	uint8_t kind; /* enum unwind_cfa: CFA_REG, CFA_DEREF, CFA_PLT, or CFA_NONE */
	uint8_t none; /* CFA_NONE: why (enum unwind_none) */
	uint8_t reg;  /* more than 255 is 255 */
	/* Register and number were given as such: instructions may change one of them. */
	bool plain;
	int64_t offset, extra;
} CfiCfa;

enum cfi_how {
	CFI_UNSPECIFIED = 0,
	CFI_UNDEFINED,
	CFI_SAME,
	CFI_AT_CFA,	 /* saved at CFA + value */
	CFI_IS_CFA,	 /* CFA + value */
	CFI_IN_REG,	 /* in reg */
	CFI_AT_REG,	 /* saved at reg + value */
	CFI_UNSUPPORTED, /* by an expression that no rule stands for */
};

typedef struct CfiReg {
	uint8_t how;   /* enum cfi_how */
	uint8_t reg;   /* more than 255 is 255 */
	int32_t value; /* what does not fit is the nearest that does: no rule has room for either */
} CfiReg;

/* The registers of which rules are kept. */
enum cfi_reg_index {
	CFI_UNTRACKED = 0, /* all others: written, so that nobody need ask, and never read */
	CFI_BX,
	CFI_BP,
	CFI_SP,
	CFI_RA,
	CFI_TRACKED
};

typedef struct CfiState {
	CfiCfa cfa;
	CfiReg regs[CFI_TRACKED];
	/* What of a rule regs make, as long as they stay as they are. */
	enum cfi_regs { CFI_CHANGED = 0, CFI_USUAL, CFI_UNUSUAL } how;
	UnwindRuleWords saved; /* CFI_USUAL: all but the CFA */
} CfiState;

/* remember_state within remember_state: compilers and assemblers use one or two. */
#define CFI_DEPTH_MAX 64

/* Told in ascending order: from < to. */
typedef void (*CfiEmit)(void *user, uint64_t from, uint64_t to, UnwindRuleWords rule);

/*
 * The state at the beginning of each FDE of this CIE. Returns 0, or -EBADMSG: nothing is known
 * in its FDEs.
 */
int cfi_program_begin(const CfiCie *cie, CfiState *ret_initial);

/*
 * Emits all of [fde->pc, fde->pc + fde->size), which must not overflow. Where the instructions
 * cannot be read any more, the rest is NONE_BROKEN.
 */
void cfi_program_run(const CfiCie *cie, const CfiState *initial, const CfiFde *fde, CfiEmit emit,
		     void *user);

/*
 * An expression of DWARF for a CFA, as far as a rule stands for it: a register and a number; the
 * same, read from, and a number; and the one that linkers write for the PLT. Else CFA_NONE.
 */
CfiCfa cfi_expression(CfiBytes expression);

#endif
