/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_instruction.h"

#define REX_W 0x48

/* Of a ModRM byte. */
#define MOD(byte)    ((byte) >> 6)
#define REG(byte)    ((byte) >> 3 & 7)
#define RM(byte)     ((byte)&7)
#define MOD_REGISTER 3
#define RM_IP	     5 /* with mod 0: a number + rip */
#define KEPT_FROM    3 /* rbx, rsp, rbp */
#define KEPT_TO	     5

/* Whole instructions: all of their bytes, or the first ones, with numbers behind. */
typedef struct Pattern {
	uint8_t length, fixed;
	uint8_t bytes[10];
	uint8_t does;
} Pattern;

static const Pattern patterns[] = {
	{4, 4, {0xf3, 0x0f, 0x1e, 0xfa}, DOES_NOTHING}, /* endbr64 */
	{4, 4, {REX_W, 0x83, 0xec, 8}, DOES_GROW},	/* sub $8,%rsp */
	{4, 4, {REX_W, 0x83, 0xc4, 8}, DOES_SHRINK},	/* add $8,%rsp */
	{1, 1, {0x50}, DOES_GROW},			/* push %rax */
	{1, 1, {0x58}, DOES_SHRINK},			/* pop %rax */
	{1, 1, {0x55}, DOES_PUSH_BP},
	{1, 1, {0x5d}, DOES_POP_BP},
	{3, 3, {REX_W, 0x89, 0xe5}, DOES_SET_BP}, /* mov %rsp,%rbp */
	{1, 1, {0xc3}, DOES_RETURN},
	{2, 2, {0xf3, 0xc3}, DOES_RETURN},
	{5, 1, {0xe8}, DOES_NOTHING}, /* call */
	{6, 2, {0x67, 0xe8}, DOES_NOTHING},
	{2, 2, {0xff, 0xd0}, DOES_NOTHING},	   /* call *%rax */
	{6, 2, {0xff, 0x15}, DOES_NOTHING},	   /* call *number(%rip) */
	{2, 2, {0xff, 0xe0}, DOES_JUMP_SOMEWHERE}, /* jmp *%rax */
	{7, 2, {0x80, 0x3d}, DOES_NOTHING},	   /* cmpb $number,number(%rip) */
	{8, 3, {REX_W, 0x83, 0x3d}, DOES_NOTHING}, /* cmpq $number,number(%rip) */
	{7, 2, {0xc6, 0x05}, DOES_NOTHING},	   /* movb $number,number(%rip) */
	{6, 2, {REX_W, 0x3d}, DOES_NOTHING},	   /* cmp $number,%rax */
	{7, 3, {REX_W, 0x81, 0xee}, DOES_NOTHING}, /* sub $number,%rsi */
	{1, 1, {0x90}, DOES_NOP},
	{1, 1, {0xcc}, DOES_NOP}, /* between functions; nobody goes on behind it */
	{2, 2, {0x66, 0x90}, DOES_NOP},
	{3, 3, {0x0f, 0x1f, 0x00}, DOES_NOP},
	{4, 3, {0x0f, 0x1f, 0x40}, DOES_NOP},
	{5, 4, {0x0f, 0x1f, 0x44, 0x00}, DOES_NOP},
	{7, 3, {0x0f, 0x1f, 0x80}, DOES_NOP},
	{8, 4, {0x0f, 0x1f, 0x84, 0x00}, DOES_NOP},
};

static bool is_kept(uint8_t reg)
{
	return reg >= KEPT_FROM && reg <= KEPT_TO;
}

/* Those with REX.W that change a register only, or none, by a register or memory beside rip. */
static uint8_t length_of_wide(const uint8_t *bytes, size_t size)
{
	uint8_t op = bytes[0], modrm = size > 1 ? bytes[1] : 0;
	bool by_register = MOD(modrm) == MOD_REGISTER && !is_kept(RM(modrm));

	switch (op) {
	case 0x01: /* add */
	case 0x29: /* sub */
	case 0x31: /* xor */
	case 0x39: /* cmp */
	case 0x85: /* test */
	case 0x89: /* mov */
	case 0xd1: /* shifts by one */
		return by_register ? 2 : 0;
	case 0xc1: /* shifts */
		return by_register ? 3 : 0;
	case 0xc7: /* mov $number */
		return by_register && REG(modrm) == 0 ? 6 : 0;
	case 0x8b: /* mov */
	case 0x8d: /* lea */
		return MOD(modrm) == 0 && RM(modrm) == RM_IP && !is_kept(REG(modrm)) ? 6 : 0;
	}
	return 0;
}

static Instruction jump(const uint8_t *bytes, enum instruction_does does, uint8_t length)
{
	Instruction instruction = {.does = does, .length = length};

	if (length == 2)
		instruction.distance = (int8_t)bytes[1];
	else
		memcpy(&instruction.distance, bytes + 1, sizeof(instruction.distance));
	return instruction;
}

static Instruction by_pattern(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		if (size >= patterns[i].fixed &&
		    !memcmp(bytes, patterns[i].bytes, patterns[i].fixed))
			return (Instruction){.does = patterns[i].does,
					     .length = patterns[i].length};
	return (Instruction){};
}

/* Assemblers lengthen a nop by prefixes. */
static Instruction long_nop(const uint8_t *bytes, size_t size)
{
	Instruction nop;
	uint8_t prefixes = 0;

	while (prefixes < size && prefixes < 7 && bytes[prefixes] == 0x66)
		prefixes++;
	if (prefixes < size && bytes[prefixes] == 0x2e)
		prefixes++;
	nop = by_pattern(bytes + prefixes, size - prefixes);
	nop.length += prefixes;
	return nop.does == DOES_NOP && bytes[prefixes] == 0x0f ? nop : (Instruction){};
}

static Instruction decode(const uint8_t *bytes, size_t size)
{
	Instruction found = by_pattern(bytes, size);
	uint8_t wide;

	if (found.does || size < 2)
		return found;
	switch (bytes[0]) {
	case 0x74: /* je */
	case 0x75: /* jne */
		return jump(bytes, DOES_BRANCH, 2);
	case 0xeb:
		return jump(bytes, DOES_JUMP, 2);
	case 0xe9:
		return size >= 5 ? jump(bytes, DOES_JUMP, 5) : (Instruction){};
	case 0x31: /* xor */
		return MOD(bytes[1]) == MOD_REGISTER && !is_kept(RM(bytes[1]))
			       ? (Instruction){DOES_NOTHING, 2, 0}
			       : (Instruction){};
	case 0xb8 ... 0xbf: /* mov $number */
		return !is_kept(RM(bytes[0])) ? (Instruction){DOES_NOTHING, 5, 0} : (Instruction){};
	case 0x66:
	case 0x2e:
		return long_nop(bytes, size);
	case REX_W:
		wide = length_of_wide(bytes + 1, size - 1);
		return wide ? (Instruction){DOES_NOTHING, 1 + wide, 0} : (Instruction){};
	}
	return (Instruction){};
}

Instruction unwind_instruction(const uint8_t *bytes, size_t size)
{
	Instruction instruction = size > 0 ? decode(bytes, size) : (Instruction){};

	return instruction.length <= size ? instruction : (Instruction){};
}
