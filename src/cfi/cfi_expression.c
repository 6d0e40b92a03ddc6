/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cfi_program.h"
#include <dwarf.h>

/*
 * The CFA is rsp + 8, and 8 more after the push: a PLT entry has 16 bytes and pushes at byte 6 or
 * 5, so that from byte 11 or 10 on there is one word more. That limit is the ninth byte.
 */
static const uint8_t plt_head[] = {DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and};
static const uint8_t plt_tail[] = {DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};
#define PLT_SIZE (sizeof(plt_head) + 1 + sizeof(plt_tail))

static const CfiCfa unknown = {.kind = CFA_NONE, .none = NONE_EXPRESSION};

static bool is_plt(const CfiBytes *bytes, CfiCfa *ret_cfa)
{
	uint8_t limit;

	if (cfi_left(bytes) != PLT_SIZE || memcmp(bytes->at, plt_head, sizeof(plt_head)) ||
	    memcmp(bytes->at + sizeof(plt_head) + 1, plt_tail, sizeof(plt_tail)))
		return false;
	limit = bytes->at[sizeof(plt_head)];
	if (limit < DW_OP_lit0 || limit > DW_OP_lit15)
		return false;
	*ret_cfa = (CfiCfa){.kind = CFA_PLT, .reg = DWARF_RSP, .extra = limit - DW_OP_lit0};
	return true;
}

static bool read_register(CfiBytes *bytes, uint8_t op, CfiCfa *cfa)
{
	uint64_t reg;

	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		reg = op - DW_OP_breg0;
	else if (op == DW_OP_bregx)
		reg = cfi_uleb(bytes);
	else
		return false;
	cfa->reg = MIN(reg, (uint64_t)UINT8_MAX);
	cfa->offset = cfi_sleb(bytes);
	return reg < DWARF_REGS;
}

/* Reads an operation that pushes a number. */
static bool read_constant(CfiBytes *bytes, uint8_t op, int64_t *ret_value)
{
	static const uint8_t sizes[] = {1, 2, 4, 8};

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		*ret_value = op - DW_OP_lit0;
	else if (op >= DW_OP_const1u && op <= DW_OP_const8s && (op - DW_OP_const1u) % 2 == 0)
		*ret_value = cfi_fixed(bytes, sizes[(op - DW_OP_const1u) / 2]);
	else if (op >= DW_OP_const1u && op <= DW_OP_const8s)
		*ret_value = cfi_fixed_signed(bytes, sizes[(op - DW_OP_const1u) / 2]);
	else if (op == DW_OP_constu)
		*ret_value = cfi_uleb(bytes);
	else if (op == DW_OP_consts)
		*ret_value = cfi_sleb(bytes);
	else
		return false;
	return true;
}

/* Reads what the next operation adds: plus_uconst, or a number followed by plus or minus. */
static bool read_addition(CfiBytes *bytes, uint8_t op, int64_t *sum)
{
	int64_t value;

	if (op == DW_OP_plus_uconst)
		return !__builtin_add_overflow(*sum, (int64_t)cfi_uleb(bytes), sum);
	if (!read_constant(bytes, op, &value))
		return false;
	switch (cfi_u8(bytes)) {
	case DW_OP_plus:
		return !__builtin_add_overflow(*sum, value, sum);
	case DW_OP_minus:
		return !__builtin_sub_overflow(*sum, value, sum);
	}
	return false;
}

/*
 * Reads the addition of an index register that counts words, which is multiplied by their size.
 * OpenSSL's multiplications keep the caller's stack pointer behind a number of variable length.
 */
static bool read_index(CfiBytes *bytes, uint8_t op, CfiCfa *cfa)
{
	uint8_t factor, by;
	CfiCfa index;

	if (cfa->kind != CFA_REG || cfa->index || !read_register(bytes, op, &index) ||
	    index.offset != 0 || index.reg == 0 || index.reg == DWARF_RBX ||
	    index.reg == DWARF_RBP || index.reg == DWARF_RSP)
		return false;
	factor = cfi_u8(bytes);
	by = cfi_u8(bytes);
	cfa->index = index.reg;
	return ((factor == DW_OP_lit8 && by == DW_OP_mul) ||
		(factor == DW_OP_lit3 && by == DW_OP_shl)) &&
	       cfi_u8(bytes) == DW_OP_plus;
}

CfiCfa cfi_expression(CfiBytes expression)
{
	CfiBytes bytes = expression;
	CfiCfa cfa = {.kind = CFA_REG};

	if (is_plt(&bytes, &cfa))
		return cfa;
	if (!read_register(&bytes, cfi_u8(&bytes), &cfa))
		return unknown;
	while (cfi_left(&bytes) > 0) {
		uint8_t op = cfi_u8(&bytes);

		if (op == DW_OP_deref && cfa.kind == CFA_REG)
			cfa.kind = CFA_DEREF;
		else if ((op >= DW_OP_breg0 && op <= DW_OP_breg31)
				 ? !read_index(&bytes, op, &cfa)
				 : !read_addition(&bytes, op,
						  cfa.kind == CFA_REG ? &cfa.offset : &cfa.extra))
			return unknown;
	}
	return bytes.bad || (cfa.kind == CFA_REG && cfa.index) ? unknown : cfa;
}
