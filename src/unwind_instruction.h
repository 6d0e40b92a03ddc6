/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_instruction.h - the length of an x86-64 instruction, and what it does to the stack, to
 * rsp, rbp and rbx, and to the flow of control. Follows the Intel SDM, volume 2: chapter 2
 * (prefixes, ModRM, VEX and EVEX), appendix A (opcode maps). It reads code of user space only.
 */
#ifndef WALLPROF_UNWIND_INSTRUCTION_H
#define WALLPROF_UNWIND_INSTRUCTION_H

#include "unwind_decode.h"

/* Numbers of registers as the processor has them, not DWARF's. */
#define X86_RBX 3

enum instruction_does {
	DOES_UNKNOWN = 0, /* no instruction, or the bytes end within it */
	DOES_NOTHING,	  /* but for what `writes` says */
	DOES_NOP,
	DOES_PUSH,    /* reg, or X86_NONE: something else of 8 bytes */
	DOES_POP,     /* likewise */
	DOES_SET,     /* reg = base + number; base: rsp or rbp */
	DOES_STORE,   /* reg to base + number; base: rsp or rbp */
	DOES_LOAD,    /* the contrary, of rbx and rbp */
	DOES_ZERO,    /* reg = 0 */
	DOES_LEAVE,   /* rsp = rbp, then pop rbp */
	DOES_ADDRESS, /* reg = the address at number behind the instruction */
	DOES_SYSTEM_CALL,
	DOES_CALL,	     /* of the place at number behind it */
	DOES_CALL_SOMEWHERE, /* by a register or memory */
	DOES_BRANCH,	     /* to the place at number behind the instruction, or on */
	DOES_JUMP,	     /* to the place at number behind the instruction */
	DOES_JUMP_SOMEWHERE, /* by a register or memory */
	DOES_RETURN,
	DOES_STOP, /* hlt, ud2, int3: control does not go on behind it */
};

typedef struct Instruction {
	uint8_t does; /* enum instruction_does */
	uint8_t length;
	uint8_t reg, base;
	uint16_t writes; /* general registers that it changes besides, one bit each */
	int32_t number;
} Instruction;

/* The one that begins with these bytes. */
Instruction unwind_instruction(const uint8_t *bytes, size_t size);

#endif
