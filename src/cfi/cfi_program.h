/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_program.h - runs the instructions of a CIE and an FDE, which give a struct unwind_rule (its
 * words) for each address of a function. Follows the DWARF 5 standard, section 6.4.2, the LSB 5,
 * chapter 10.6, and the GNU extensions that binutils documents (args_size,
 * negative_offset_extended).
 *
 * Only the rules of rbx, rbp, rsp and the return address are tracked; those of other registers are
 * skipped, because the walk does not need them.
 */
#ifndef WALLPROF_CFI_PROGRAM_H
#define WALLPROF_CFI_PROGRAM_H

#include "cfi.h"
#include "unwind_rules.h"

/* How the CFA is found, whether or not that fits into a rule. */
typedef struct CfiCfa {
	uint8_t kind;  /* enum unwind_cfa: CFA_REG, CFA_DEREF, CFA_PLT, or CFA_NONE */
	uint8_t none;  /* CFA_NONE: why (enum unwind_none) */
	uint8_t reg;   /* more than 255 is 255 */
	uint8_t index; /* CFA_DEREF: of the index register; 0 = none */
	/* It is a register and an offset: instructions may change one of them. */
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
	CFI_UNSUPPORTED, /* by an expression for which there is no rule */
};

typedef struct CfiReg {
	uint8_t how;   /* enum cfi_how */
	uint8_t reg;   /* more than 255 is 255 */
	int32_t value; /* what does not fit is the nearest that does: no rule has room for either */
} CfiReg;

/* The registers whose rules are tracked. */
enum cfi_reg_index {
	CFI_UNTRACKED =
		0, /* all others: one slot that is written without a check, and never read */
	CFI_BX,
	CFI_BP,
	CFI_SP,
	CFI_RA,
	CFI_TRACKED
};

typedef struct CfiState {
	CfiCfa cfa;
	CfiReg regs[CFI_TRACKED];
	/* Which rule results from regs, until they change. */
	enum cfi_regs { CFI_CHANGED = 0, CFI_USUAL, CFI_UNUSUAL } how;
	UnwindRuleWords saved; /* CFI_USUAL: all but the CFA */
} CfiState;

/* The depth of nested remember_state: compilers and assemblers use one or two. */
#define CFI_DEPTH_MAX 64

/* It is called in ascending order: from < to. */
typedef void (*CfiEmit)(void *user, uint64_t from, uint64_t to, UnwindRuleWords rule);

/*
 * Computes the state at the beginning of each FDE of this CIE. Returns 0, or -EBADMSG: its FDEs
 * cannot be used.
 */
int cfi_program_begin(const CfiCie *cie, CfiState *ret_initial);

/*
 * Emits rules for all of [fde->pc, fde->pc + fde->size), which must not overflow. If instructions
 * cannot be read, the rest is NONE_BROKEN.
 */
void cfi_program_run(const CfiCie *cie, const CfiState *initial, const CfiFde *fde, CfiEmit emit,
		     void *user);

/*
 * Translates a DWARF expression for a CFA if there is a rule for it: a register plus an offset; the
 * same, dereferenced, plus an offset, also with an index register that counts words; and the one
 * that linkers write for the PLT. Otherwise CFA_NONE.
 */
CfiCfa cfi_expression(CfiBytes expression);

#endif
