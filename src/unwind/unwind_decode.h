/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_decode.h - takes an x86-64 instruction apart: prefixes, opcode, operands. Follows the
 * Intel SDM, volume 2: chapter 2 (prefixes, ModRM, VEX and EVEX) and appendix A (opcode maps).
 */
#ifndef WALLPROF_UNWIND_DECODE_H
#define WALLPROF_UNWIND_DECODE_H

#include "util.h"

#define INSTRUCTION_MAX 15 /* bytes; the processor refuses longer ones */

/* The bits of a REX prefix; VEX and EVEX have the same, inverted. */
#define REX_W 8
#define REX_R 4
#define REX_X 2
#define REX_B 1

#define X86_RSP	   4
#define X86_RBP	   5
#define X86_NONE   0xff
#define MOD_DIRECT 3 /* ModRM.mod: the operand is a register */

/* Opcode maps of the SDM. */
enum map { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A, MAPS_OTHER };

/* A cursor in code, and the instruction that was decoded there. */
typedef struct Decoder {
	const uint8_t *bytes;
	size_t size, at;
	bool narrow;	    /* operand size prefix */
	bool short_address; /* address size prefix */
	bool repeats;	    /* F3 */
	bool vex;	    /* or EVEX */
	uint8_t vex_reg;    /* the operand vvvv, if it is a general register; else X86_NONE */
	uint8_t rex;
	bool has_rex;
	enum map map;
	uint8_t op;
	uint8_t mod, reg, rm;
	uint8_t base;  /* of a memory operand; X86_NONE: it has none, or rip */
	bool indexed;  /* the memory operand has an index register */
	bool relative; /* its address is relative to rip */
	int32_t displacement;
	int32_t immediate; /* sign-extended; of eight bytes, the lower four */
} Decoder;

/*
 * Decodes the instruction at decoder->bytes. The caller sets bytes and size, sets vex_reg and base
 * to X86_NONE, and all else to 0. Returns false if the bytes are not a valid instruction or end
 * within it. Afterwards decoder->at is its length.
 */
bool unwind_decode(Decoder *decoder);

#endif
