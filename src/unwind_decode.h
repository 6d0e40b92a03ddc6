/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_decode.h - takes an x86-64 instruction apart: prefixes, opcode, operands. Follows the
 * Intel SDM, volume 2: chapter 2 (prefixes, ModRM, VEX and EVEX) and appendix A (opcode maps).
 */
#ifndef WALLPROF_UNWIND_DECODE_H
#define WALLPROF_UNWIND_DECODE_H

#include "util.h"

#define INSTRUCTION_MAX 15 /* bytes; the processor refuses longer ones */

/* Of a REX prefix, or what VEX and EVEX have in its place. */
#define REX_W 8
#define REX_R 4
#define REX_X 2
#define REX_B 1

#define X86_RSP	   4
#define X86_RBP	   5
#define X86_NONE   0xff
#define MOD_DIRECT 3 /* of a ModRM byte: a register, and no memory */

/* An opcode's place: the maps of the SDM. */
enum map { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A, MAPS_OTHER };

/* An instruction, while it is read and after it. */
typedef struct Decoder {
	const uint8_t *bytes;
	size_t size, at;
	bool narrow;	    /* operand size prefix */
	bool short_address; /* address size prefix */
	bool repeats;	    /* F3 */
	bool vex;	    /* or EVEX */
	uint8_t vex_reg;    /* the register that these name besides; X86_NONE: none */
	uint8_t rex;
	bool has_rex;
	enum map map;
	uint8_t op;
	bool has_modrm;
	uint8_t mod, reg, rm;
	uint8_t base;  /* of memory; X86_NONE: none, or rip */
	bool indexed;  /* memory that has an index register */
	bool relative; /* memory by rip */
	int32_t displacement;
	int32_t immediate; /* of four bytes and less */
} Decoder;

/* False: no instruction, or the bytes end within it. decoder: bytes and size are set, vex_reg and
 * base are X86_NONE, all else is 0. Its length is decoder->at then. */
bool unwind_decode(Decoder *decoder);

#endif
