/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_instruction.h"

#define RAX 0
#define RCX 1
#define RDX 2
#define RSI 6
#define RDI 7
#define R11 11

#define BIT(n) (1u << (n))

static bool is_direct(const Decoder *decoder)
{
	return decoder->mod == MOD_DIRECT;
}

static uint16_t rm_register(const Decoder *decoder)
{
	return is_direct(decoder) ? BIT(decoder->rm) : 0;
}

static uint16_t reg_register(const Decoder *decoder)
{
	return BIT(decoder->reg);
}

/* Returns the register in the opcode's lower three bits. */
static uint8_t opcode_register(const Decoder *decoder)
{
	return (decoder->op & 7) | (decoder->rex & REX_B ? 8 : 0);
}

static uint16_t writes_of_one_byte(const Decoder *decoder)
{
	uint8_t op = decoder->op, group = decoder->reg & 7;

	if (op < 0x40)
		switch (op & 7) {
		case 0:
		case 1:
			return op >= 0x38 ? 0 : rm_register(decoder);
		case 2:
		case 3:
			return op >= 0x38 ? 0 : reg_register(decoder);
		default:
			return BIT(RAX);
		}
	switch (op) {
	case 0x63:
	case 0x69:
	case 0x6b:
	case 0x8a:
	case 0x8b:
	case 0x8d:
		return reg_register(decoder);
	case 0x80:
	case 0x81:
	case 0x83:
		return group == 7 ? 0 : rm_register(decoder);
	case 0x86:
	case 0x87:
		return reg_register(decoder) | rm_register(decoder);
	case 0x88:
	case 0x89:
	case 0x8c:
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xc7:
	case 0xd0 ... 0xd3:
		return rm_register(decoder);
	case 0x91 ... 0x97:
		return BIT(RAX) | BIT(opcode_register(decoder));
	case 0x98: /* cdqe, cqo, loads of rax, fnstsw */
	case 0x99:
	case 0xa0:
	case 0xa1:
	case 0xd7:
	case 0xdf:
		return BIT(RAX) | BIT(RDX);
	case 0x6c ... 0x6f: /* string instructions */
	case 0xa4 ... 0xa7:
	case 0xaa ... 0xaf:
		return BIT(RAX) | BIT(RCX) | BIT(RSI) | BIT(RDI);
	case 0xb0 ... 0xbf:
		return BIT(opcode_register(decoder));
	case 0xf6:
	case 0xf7:
		return (group == 2 || group == 3 ? rm_register(decoder) : 0) | BIT(RAX) | BIT(RDX);
	case 0xfe:
	case 0xff:
		return group < 2 ? rm_register(decoder) : 0;
	case 0xc8: /* enter */
		return BIT(X86_RSP) | BIT(X86_RBP);
	}
	return 0;
}

static uint16_t writes_of_0f(const Decoder *decoder)
{
	switch (decoder->op) {
	case 0xa2: /* cpuid */
		return BIT(RAX) | BIT(RCX) | BIT(RDX) | BIT(X86_RBX);
	case 0x02: /* lar, lsl */
	case 0x03:
	case 0x2c: /* conversions to an integer */
	case 0x2d:
	case 0x50: /* masks of vectors */
	case 0xd7:
	case 0xc5:
	case 0xaf: /* imul */
	case 0xb6 ... 0xb8:
	case 0xbc ... 0xbf:
		return reg_register(decoder);
	case 0x40 ... 0x4f: /* cmov; with VEX between opmask registers */
		return decoder->vex ? 0 : reg_register(decoder);
	case 0x00: /* sldt, str */
		return rm_register(decoder);
	case 0x01: /* smsw, xgetbv, rdtscp and others */
		return rm_register(decoder) | BIT(RAX) | BIT(RCX) | BIT(RDX);
	case 0x1e: /* rdssp; else it does nothing */
		return decoder->repeats ? rm_register(decoder) : 0;
	case 0x31: /* rdtsc */
		return BIT(RAX) | BIT(RDX);
	case 0x78: /* conversions to unsigned numbers, of EVEX */
	case 0x79:
		return decoder->vex ? reg_register(decoder) : 0;
	case 0xae: /* rdfsbase and rdgsbase */
		return decoder->repeats ? rm_register(decoder) : 0;
	case 0x93: /* kmov with VEX; setcc without */
		return decoder->vex ? reg_register(decoder) : rm_register(decoder);
	case 0x90 ... 0x92:
	case 0x94 ... 0x9f:
		return decoder->vex ? 0 : rm_register(decoder);
	case 0x7e: /* movd; F3: between vectors */
		return decoder->repeats ? 0 : rm_register(decoder);
	case 0xa4: /* shld, shrd, bts, btr, btc */
	case 0xa5:
	case 0xab:
	case 0xac:
	case 0xad:
	case 0xb3:
	case 0xba:
	case 0xbb:
		return rm_register(decoder);
	case 0xb0: /* cmpxchg */
	case 0xb1:
		return rm_register(decoder) | BIT(RAX);
	case 0xc0:
	case 0xc1:
		return rm_register(decoder) | reg_register(decoder);
	case 0xc7: /* rdrand, rdseed, rdpid; cmpxchg16b */
		return rm_register(decoder) | BIT(RAX) | BIT(RDX);
	case 0xc8 ... 0xcf:
		return BIT(opcode_register(decoder));
	}
	return 0;
}

/* Returns the general registers that BMI, ADX, movbe and crc32 write. */
static uint16_t writes_of_0f38(const Decoder *decoder)
{
	if (!decoder->vex)
		return decoder->op == 0xf0 || decoder->op == 0xf1 || decoder->op == 0xf6
			       ? reg_register(decoder)
			       : 0;
	switch (decoder->op) {
	case 0xf2:
	case 0xf5:
	case 0xf7:
		return reg_register(decoder);
	case 0xf3: /* blsr and others */
		return decoder->vex_reg < 16 ? BIT(decoder->vex_reg) : 0;
	case 0xf6: /* mulx */
		return reg_register(decoder) | (decoder->vex_reg < 16 ? BIT(decoder->vex_reg) : 0);
	}
	return 0;
}

static uint16_t writes_of_0f3a(const Decoder *decoder)
{
	switch (decoder->op) {
	case 0x14 ... 0x17: /* pextr */
		return rm_register(decoder);
	case 0xf0: /* rorx */
		return decoder->vex ? reg_register(decoder) : 0;
	case 0x60 ... 0x63: /* pcmpstr */
		return BIT(RCX);
	}
	return 0;
}

/*
 * In one-byte instructions without a REX prefix, ah, ch, dh and bh have the numbers of rsp and the
 * next ones.
 */
static bool is_of_one_byte(const Decoder *decoder)
{
	uint8_t op = decoder->op;

	if (decoder->map == MAP_0F)
		return !decoder->vex && ((op >= 0x90 && op <= 0x9f) || op == 0xb0 || op == 0xc0);
	return op < 0xb0 ? !(op & 1) && (op < 0x40 || (op >= 0x80 && op < 0x8c))
			 : op < 0xb8 || op == 0xc0 || op == 0xc6 || op == 0xd0 || op == 0xd2 ||
				   op == 0xf6 || op == 0xfe;
}

static uint16_t byte_registers(uint16_t writes)
{
	return (writes & ~0xf0) | (writes >> 4 & 0x0f);
}

static uint16_t writes_of(const Decoder *decoder)
{
	bool high = !decoder->has_rex && is_of_one_byte(decoder);
	uint16_t writes;

	switch (decoder->map) {
	case MAP_ONE:
		writes = writes_of_one_byte(decoder);
		return high ? byte_registers(writes) : writes;
	case MAP_0F:
		writes = writes_of_0f(decoder);
		return high ? byte_registers(writes) : writes;
	case MAP_0F38:
		return writes_of_0f38(decoder);
	case MAP_0F3A:
		return writes_of_0f3a(decoder);
	case MAPS_OTHER:
		break;
	}
	return 0;
}

/* Returns whether the operand is memory at a constant distance from rsp or rbp. */
static bool is_on_stack(const Decoder *decoder)
{
	return !is_direct(decoder) && !decoder->indexed && !decoder->short_address &&
	       (decoder->base == X86_RSP || decoder->base == X86_RBP);
}

static bool is_stack_register(uint8_t reg)
{
	return reg == X86_RSP || reg == X86_RBP;
}

static void does(Instruction *instruction, enum instruction_does what, uint8_t reg, uint8_t base,
		 int32_t number)
{
	*instruction = (Instruction){.does = what, .reg = reg, .base = base, .number = number};
}

/* Handles mov between registers of 64 bits, or with memory. */
static void does_move(const Decoder *decoder, bool to_reg, Instruction *instruction)
{
	uint8_t to = to_reg ? decoder->reg : decoder->rm,
		from = to_reg ? decoder->rm : decoder->reg;

	if (!(decoder->rex & REX_W))
		return;
	if (is_direct(decoder)) {
		if (is_stack_register(from) || is_stack_register(to))
			does(instruction, DOES_SET, to, from, 0);
	} else if (is_on_stack(decoder)) {
		does(instruction, to_reg ? DOES_LOAD : DOES_STORE, decoder->reg, decoder->base,
		     decoder->displacement);
	}
}

static void does_lea(const Decoder *decoder, Instruction *instruction)
{
	bool by_register = !is_direct(decoder) && !decoder->indexed && !decoder->short_address &&
			   decoder->base != X86_NONE;

	if (decoder->rex & REX_W && by_register &&
	    (is_stack_register(decoder->base) || is_stack_register(decoder->reg)))
		does(instruction, DOES_SET, decoder->reg, decoder->base, decoder->displacement);
	else if (decoder->rex & REX_W && decoder->relative)
		does(instruction, DOES_ADDRESS, decoder->reg, X86_NONE, decoder->displacement);
}

/* Handles add and sub of a number to rsp, and its alignment. */
static void does_arithmetic(const Decoder *decoder, Instruction *instruction)
{
	uint8_t group = decoder->reg & 7;

	if (!is_direct(decoder) || decoder->rm != X86_RSP || !(decoder->rex & REX_W) ||
	    decoder->immediate == INT32_MIN)
		return;
	if (group == 0)
		does(instruction, DOES_SET, X86_RSP, X86_RSP, decoder->immediate);
	else if (group == 5)
		does(instruction, DOES_SET, X86_RSP, X86_RSP, -decoder->immediate);
	else if (group == 4 && decoder->immediate < 0)
		does(instruction, DOES_ALIGN, X86_RSP, X86_RSP, decoder->immediate);
}

static void does_push_or_pop(const Decoder *decoder, enum instruction_does what, uint8_t reg,
			     Instruction *instruction)
{
	if (decoder->narrow && !(decoder->rex & REX_W))
		instruction->writes |= BIT(X86_RSP); /* compilers do not emit the two-byte form */
	else
		does(instruction, what, reg, X86_NONE, 0);
}

static void does_group_ff(const Decoder *decoder, Instruction *instruction)
{
	switch (decoder->reg & 7) {
	case 2:
		instruction->does = DOES_CALL_SOMEWHERE;
		break;
	case 4:
		instruction->does = DOES_JUMP_SOMEWHERE;
		break;
	case 6:
		does_push_or_pop(decoder, DOES_PUSH, is_direct(decoder) ? decoder->rm : X86_NONE,
				 instruction);
		break;
	case 3: /* far calls and jumps do not occur in user space */
	case 5:
	case 7:
		instruction->does = DOES_UNKNOWN;
		break;
	}
}

static void does_one_byte(const Decoder *decoder, Instruction *instruction)
{
	uint8_t reg = opcode_register(decoder);
	bool same = is_direct(decoder) && decoder->reg == decoder->rm;

	switch (decoder->op) {
	case 0x29: /* sub, xor of a register with itself */
	case 0x2b:
	case 0x31:
	case 0x33:
		if (same && !decoder->narrow)
			does(instruction, DOES_ZERO, decoder->reg, X86_NONE, 0);
		break;
	case 0x50 ... 0x57:
		does_push_or_pop(decoder, DOES_PUSH, reg, instruction);
		break;
	case 0x58 ... 0x5f:
		does_push_or_pop(decoder, DOES_POP, reg, instruction);
		break;
	case 0x68:
	case 0x6a:
	case 0x9c:
		does_push_or_pop(decoder, DOES_PUSH, X86_NONE, instruction);
		break;
	case 0x8f: /* with other numbers it is AMD's XOP */
		if ((decoder->reg & 7) != 0)
			instruction->does = DOES_UNKNOWN;
		else
			does_push_or_pop(decoder, DOES_POP,
					 is_direct(decoder) ? decoder->rm : X86_NONE, instruction);
		break;
	case 0x9d:
		does_push_or_pop(decoder, DOES_POP, X86_NONE, instruction);
		break;
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3:
		does(instruction, DOES_BRANCH, X86_NONE, X86_NONE, decoder->immediate);
		break;
	case 0x81:
	case 0x83:
		does_arithmetic(decoder, instruction);
		break;
	case 0x89:
		does_move(decoder, /* to_reg= */ false, instruction);
		break;
	case 0x8b:
		does_move(decoder, /* to_reg= */ true, instruction);
		break;
	case 0x8d:
		does_lea(decoder, instruction);
		break;
	case 0x90:
		/* With REX.B it is xchg %r8,%rax; F3: pause. */
		if (!(decoder->rex & REX_B) && !decoder->repeats)
			instruction->does = DOES_NOP;
		break;
	case 0xc2:
	case 0xc3:
		instruction->does = DOES_RETURN;
		break;
	case 0xc9:
		does(instruction, DOES_LEAVE, X86_RBP, X86_RBP, 0);
		break;
	case 0xca: /* far returns, and instructions that only the kernel uses */
	case 0xcb:
	case 0xcf:
		instruction->does = DOES_UNKNOWN;
		break;
	case 0xcc:
	case 0xf4:
		instruction->does = DOES_STOP;
		break;
	case 0xe8:
		/* A call of the next instruction only pushes an address. */
		does(instruction, decoder->immediate ? DOES_CALL : DOES_PUSH, X86_NONE, X86_NONE,
		     decoder->immediate);
		break;
	case 0xe9:
	case 0xeb:
		does(instruction, DOES_JUMP, X86_NONE, X86_NONE, decoder->immediate);
		break;
	case 0xff:
		does_group_ff(decoder, instruction);
		break;
	}
}

static void does_0f(const Decoder *decoder, Instruction *instruction)
{
	switch (decoder->op) {
	case 0x05: /* rax is its result; rcx and r11 are the kernel's */
		does(instruction, DOES_SYSTEM_CALL, X86_NONE, X86_NONE, 0);
		instruction->writes = BIT(RAX) | BIT(RCX) | BIT(R11);
		break;
	case 0x0b:
	case 0xb9:
	case 0xff:
		if (!decoder->vex)
			instruction->does = DOES_STOP;
		break;
	case 0x1f:
		instruction->does = DOES_NOP;
		break;
	case 0xa0: /* push and pop of fs and gs */
	case 0xa8:
		does_push_or_pop(decoder, DOES_PUSH, X86_NONE, instruction);
		break;
	case 0xa1:
	case 0xa9:
		does_push_or_pop(decoder, DOES_POP, X86_NONE, instruction);
		break;
	case 0x80 ... 0x8f:
		if (!decoder->vex)
			does(instruction, DOES_BRANCH, X86_NONE, X86_NONE, decoder->immediate);
		break;
	}
}

Instruction unwind_instruction(const uint8_t *bytes, size_t size)
{
	Decoder decoder = {.bytes = bytes,
			   .size = MIN(size, (size_t)INSTRUCTION_MAX),
			   .vex_reg = X86_NONE,
			   .base = X86_NONE};
	Instruction instruction = {.does = DOES_NOTHING, .reg = X86_NONE, .base = X86_NONE};

	if (!unwind_decode(&decoder))
		return (Instruction){};
	instruction.writes = writes_of(&decoder);
	if (decoder.map == MAP_ONE)
		does_one_byte(&decoder, &instruction);
	else if (decoder.map == MAP_0F)
		does_0f(&decoder, &instruction);
	instruction.length = decoder.at;
	return instruction;
}
