/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_instruction.h - the length of an x86-64 instruction, and its effect on the stack, on rsp,
 * rbp and rbx, and on the flow of control. Follows the Intel SDM, volume 2: chapter 2 (prefixes,
 * ModRM, VEX and EVEX), appendix A (opcode maps). It handles user-space code only.
 */
#ifndef WALLPROF_UNWIND_INSTRUCTION_H
#define WALLPROF_UNWIND_INSTRUCTION_H

#include "unwind_decode.h"

/* These are the processor's numbers of registers, not DWARF's. */
#define X86_RBX 3

enum instruction_does {
	DOES_UNKNOWN = 0, /* the bytes are not a valid instruction, or end within it */
	DOES_NOTHING,	  /* it has no effect except on the registers in `writes` */
	DOES_NOP,
	DOES_PUSH,    /* pushes reg; X86_NONE: 8 bytes of something else */
	DOES_POP,     /* pops reg; X86_NONE: 8 bytes to something else */
	DOES_SET,     /* reg = base + number; reg or base: rsp or rbp */
	DOES_ALIGN,   /* rsp is rounded down to a multiple */
	DOES_STORE,   /* stores reg at base + number; base: rsp or rbp */
	DOES_LOAD,    /* loads reg from base + number; base: rsp or rbp */
	DOES_ZERO,    /* reg = 0 */
	DOES_LEAVE,   /* rsp = rbp, then pop rbp */
	DOES_ADDRESS, /* reg = end of the instruction + number */
	DOES_SYSTEM_CALL,
	DOES_CALL,	     /* the target is the end of the instruction + number */
	DOES_CALL_SOMEWHERE, /* indirect, through a register or memory */
	DOES_BRANCH,	     /* conditional; target as for DOES_CALL */
	DOES_JUMP,	     /* unconditional; target as for DOES_CALL */
	DOES_JUMP_SOMEWHERE, /* indirect, through a register or memory */
	DOES_RETURN,
	DOES_STOP, /* hlt, ud2, int3: execution does not continue after it */
};

typedef struct Instruction {
	uint8_t does; /* enum instruction_does */
	uint8_t length;
	uint8_t reg, base;
	uint16_t writes; /* other general registers that it changes, one bit each */
	int32_t number;
} Instruction;

/* Returns the instruction that begins at bytes. */
Instruction unwind_instruction(const uint8_t *bytes, size_t size);

#endif
