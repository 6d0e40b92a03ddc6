/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_rows.h - the unwind tables that the recorder writes and the walk reads.
 *
 * A table belongs to an object (an ELF file). It has rows, sorted by pc, each of which names the
 * rule that applies from its pc up to the next row's. Every pc has a row, also if no rule is known
 * for it: that is a rule, too (CFA_NONE, with the reason). There are few rules (some hundred in an
 * object, most of them in all objects), so they are stored once for the whole system.
 *
 * Terms are those of the DWARF 5 standard, section 6.4, and of the x86-64 psABI, section 3.6
 * (register numbers: 6 = rbp, 7 = rsp, 16 = the return address).
 */
#ifndef WALLPROF_UNWIND_ROWS_H
#define WALLPROF_UNWIND_ROWS_H

#include "records.h"

#define DWARF_RBX    3
#define DWARF_RBP    6
#define DWARF_RSP    7
#define DWARF_REGS   16 /* general registers; the return address is one more */
#define DWARF_RETURN 16

/* How the canonical frame address (CFA) is found. */
enum unwind_cfa {
	CFA_NONE = 0,	/* not known; extra = enum unwind_none */
	CFA_END = 1,	/* the outermost frame: it has no return address */
	CFA_REG = 2,	/* cfa_reg + cfa_offset */
	CFA_DEREF = 3,	/* *(cfa_reg + cfa_offset + 8 * index) + extra */
	CFA_PLT = 4,	/* rsp + 8, and 8 more if (pc & 15) >= extra */
	CFA_SIGNAL = 5, /* rsp points to the ucontext of a signal frame, which has all registers */
};

/* Why no rule is known. */
enum unwind_none {
	NONE_GAP = 0,		 /* no FDE covers this pc */
	NONE_EXPRESSION = 1,	 /* no rule can express an expression */
	NONE_REGISTER = 2,	 /* no rule can express the return address or rbp */
	NONE_OVERFLOW = 3,	 /* an offset does not fit */
	NONE_BROKEN = 4,	 /* the FDE's program cannot be read */
	NONE_TOO_MANY_RULES = 5, /* the limit of rules was reached */
	/*
	 * Code without tables that could not be followed, in a gap as large as V8's builtins in
	 * Node.js or in a file without any table. It is walked by frame pointers, as code made at
	 * run time is, and its frames are marked as guessed.
	 */
	NONE_UNKNOWN_CODE = 6,
};

/* Where the return address is. */
enum unwind_ra {
	RA_AT_CFA = 0, /* at CFA - 8 */
	RA_REG = 16,   /* RA_REG + r: in register r (of the innermost frame) */
};

/* Where the caller's rbp is. */
enum unwind_bp {
	BP_SAME = 0,	/* still in rbp */
	BP_AT_CFA = 1,	/* at CFA + bp_offset */
	BP_AT_BP = 2,	/* at rbp + bp_offset */
	BP_AT_SP = 3,	/* at rsp + bp_offset */
	BP_LOST = 4,	/* undefined */
	BP_IN_REG = 16, /* BP_IN_REG + r: in register r (of the innermost frame) */
};

/*
 * Where the caller's rbx is. It is the only other register by which outer frames are found (the
 * dynamic loader's trampolines).
 */
enum unwind_bx {
	BX_SAME = 0,
	BX_AT_CFA = 1, /* at CFA + bx_offset */
	BX_LOST = 2,
};

/* The stack that the caller's frame is on, if the CFA is a register plus an offset. */
enum unwind_stack {
	STACK_SAME = 0,
	STACK_OTHER = 1, /* it may be another stack, at any address */
	STACK_GUESS = 2, /* the same, and a frame in between may be missing: marked as guessed */
	STACK_SAME_GUESS = 3, /* the same stack; the rule is a guess: marked as guessed */
};

struct unwind_rule {
	u8 cfa;	    /* enum unwind_cfa */
	u8 cfa_reg; /* DWARF number; registers other than rbx, rbp and rsp are known in the
		       innermost frame, and some in its callers (walk_state.h). CFA_DEREF: in the
		       upper bits that of the index register, 0 = no index */
	u8 ra;	    /* enum unwind_ra */
	u8 bp;	    /* enum unwind_bp */
	s32 cfa_offset;
	s16 bp_offset, bx_offset;
	s16 extra;
	u8 bx;	  /* enum unwind_bx */
	u8 stack; /* enum unwind_stack */
};

#define CFA_INDEX_SHIFT 4

/* pc is a relative address: SVMA - base_svma. */
struct unwind_row {
	u32 pc;
	u32 rule; /* index of the rule in the object's own list, or in the system's */
};

#endif
