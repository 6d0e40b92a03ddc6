/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_instruction.h - the few x86-64 instructions of start-up code, and what they do to the
 * stack. Follows the Intel SDM, volume 2.
 */
#ifndef WALLPROF_UNWIND_INSTRUCTION_H
#define WALLPROF_UNWIND_INSTRUCTION_H

#include "util.h"

enum instruction_does {
	DOES_UNKNOWN = 0,
	DOES_NOTHING, /* to rsp, rbp, rbx and the flow */
	DOES_NOP,
	DOES_GROW,   /* 8 bytes of stack that nobody takes from */
	DOES_SHRINK, /* the same 8 bytes */
	DOES_PUSH_BP,
	DOES_POP_BP,
	DOES_SET_BP,	     /* to rsp */
	DOES_BRANCH,	     /* to target, or on */
	DOES_JUMP,	     /* to target */
	DOES_JUMP_SOMEWHERE, /* by a register */
	DOES_RETURN,
};

typedef struct Instruction {
	enum instruction_does does;
	uint8_t length;
	int32_t distance; /* of the target, from behind the instruction */
} Instruction;

/* The one that begins with these bytes; DOES_UNKNOWN if it is none of those, or not all there. */
Instruction unwind_instruction(const uint8_t *bytes, size_t size);

#endif
