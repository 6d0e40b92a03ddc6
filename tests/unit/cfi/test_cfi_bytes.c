/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call frame information made by hand: each instruction, each form of an entry and of a pointer,
 * what lies in gaps, and what is made to hurt. Where libdw can read it, it must agree.
 */
#include "cfi_fixture.h"
#include "unwind_oracle.h"
#include <dwarf.h>

#define PC   0x1000u /* of the function */
#define SIZE 0x1000u

/* The form of the entries. */
typedef struct Form {
	bool debug_frame, is_64;
	uint8_t version; /* 0 = 1 */
	const char *augmentation;
	uint8_t encoding;	 /* of 'R' */
	uint64_t pc, size;	 /* 0 = PC, SIZE */
	int64_t return_register; /* 0 = 16 */
} Form;

typedef struct Program {
	const uint8_t *bytes;
	size_t size;
} Program;

#define BYTES(...) ((const uint8_t[]){__VA_ARGS__})
#define PROGRAM(...)                                                                               \
	{                                                                                          \
		.bytes = BYTES(__VA_ARGS__), .size = sizeof(BYTES(__VA_ARGS__))                    \
	}

static const Form usual = {.augmentation = "zR", .encoding = DW_EH_PE_pcrel | DW_EH_PE_sdata4};

/* ---- entries ------------------------------------------------------------------------ */

/* Returns where the length is to be patched. */
static size_t begin_entry(Bytes *bytes, const Form *form)
{
	if (form->is_64)
		put_number(bytes, UINT32_MAX, 4);
	put_number(bytes, 0, form->is_64 ? 8 : 4);
	return bytes->count;
}

static void end_entry(Bytes *bytes, const Form *form, size_t content)
{
	unsigned size = form->is_64 ? 8 : 4;
	uint64_t length = bytes->count - content;

	memcpy(bytes->items + content - size, &length, size);
}

static void put_pointer(Bytes *bytes, const Form *form, uint64_t value, bool relative)
{
	uint64_t place = FRAMES_ADDRESS + bytes->count;

	if (form->debug_frame || !strchr(form->augmentation, 'R')) {
		put_number(bytes, value, 8);
		return;
	}
	if (form->encoding == DW_EH_PE_aligned && relative) {
		while ((FRAMES_ADDRESS + bytes->count) % 8)
			put_number(bytes, 0, 1);
		put_number(bytes, value, 8);
		return;
	}
	if (relative && (form->encoding & 0x70) == DW_EH_PE_pcrel)
		value -= place;
	switch (form->encoding & 0x0f) {
	case DW_EH_PE_uleb128:
		put_uleb(bytes, value);
		break;
	case DW_EH_PE_sleb128: /* the sign's bit in a byte of its own */
		put_bytes(bytes,
			  BYTES(0x80 | (value & 0x7f), 0x80 | (value >> 7 & 0x7f),
				0x80 | (value >> 14 & 0x7f), value >> 21 & 0x7f),
			  4);
		break;
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2:
		put_number(bytes, value, 2);
		break;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		put_number(bytes, value, 4);
		break;
	default:
		put_number(bytes, value, 8);
	}
}

/* CFA = rsp + 8, return address at CFA - 8. */
static void put_cie(Bytes *bytes, const Form *form)
{
	size_t content = begin_entry(bytes, form), augmentation;
	uint8_t version = form->version ? form->version : 1;
	const char *letters = form->augmentation;

	put_number(bytes, form->debug_frame ? UINT64_MAX : 0, form->is_64 ? 8 : 4);
	put_number(bytes, version, 1);
	put_bytes(bytes, letters, strlen(letters) + 1);
	if (version == 4)
		put_bytes(bytes, BYTES(8, 0), 2);
	put_bytes(bytes, BYTES(1, 0x78), 2);
	put_uleb(bytes, form->return_register ? form->return_register : DWARF_RETURN);
	if (*letters == 'z') {
		put_number(bytes, 0, 1);
		augmentation = bytes->count;
		for (; *letters; letters++) {
			if (*letters == 'R')
				put_number(bytes, form->encoding, 1);
			else if (*letters == 'L')
				put_number(bytes, DW_EH_PE_omit, 1);
			else if (*letters == 'P')
				put_bytes(bytes, BYTES(DW_EH_PE_udata4, 1, 2, 3, 4), 5);
		}
		bytes->items[augmentation - 1] = bytes->count - augmentation;
	}
	put_bytes(bytes, BYTES(DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1), 5);
	end_entry(bytes, form, content);
}

/* An FDE of a CIE at 0. */
static void put_fde(Bytes *bytes, const Form *form, Program program)
{
	size_t content = begin_entry(bytes, form);

	put_number(bytes, form->debug_frame ? 0 : content, form->is_64 ? 8 : 4);
	put_pointer(bytes, form, form->pc ? form->pc : PC, /* relative= */ true);
	put_pointer(bytes, form, form->size ? form->size : SIZE, /* relative= */ false);
	if (form->augmentation[0] == 'z')
		put_uleb(bytes, 0);
	put_bytes(bytes, program.bytes, program.size);
	end_entry(bytes, form, content);
}

static void write_bytes(const char *path, const Bytes *bytes, bool debug_frame)
{
	size_t size;
	_cleanup_free_ struct frames_file *file =
		make_frames_file(bytes->items, bytes->count, !debug_frame, &size);
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_int_equal(fwrite(file, 1, size, out), size);
	assert_int_equal(fclose(out), 0);
}

static Built build_bytes(const char *path, const Bytes *bytes, bool debug_frame)
{
	write_bytes(path, bytes, debug_frame);
	return build_table(path, NULL);
}

static Built build_form(const char *path, const Form *form, Program program)
{
	Bytes bytes = {};
	Built built;

	put_cie(&bytes, form);
	put_fde(&bytes, form, program);
	built = build_bytes(path, &bytes, form->debug_frame);
	vec_free(&bytes);
	assert_int_equal(built.result, 0);
	return built;
}

static void assert_rule(const struct unwind_rule *rule, const struct unwind_rule *expected)
{
	if (memcmp(rule, expected, sizeof(*rule)))
		fail_msg("cfa %u reg %u %+d extra %d, ra %u, bp %u %+d, bx %u %+d", rule->cfa,
			 rule->cfa_reg, rule->cfa_offset, rule->extra, rule->ra, rule->bp,
			 rule->bp_offset, rule->bx, rule->bx_offset);
}

/* What can be evaluated must be what libdw says. */
static void assert_libdw_agrees(const char *path, const Built *built, uint64_t pc)
{
	const struct unwind_rule *rule = rule_at(&built->table, pc);
	Machine machine = random_machine(pc);
	Oracle oracle = open_oracle(path, NULL);
	Caller libdw = ask_libdw(&oracle, pc, &machine), ours;

	if (rule->cfa == CFA_END) {
		assert_int_equal(libdw.ra.kind, VALUE_UNDEFINED);
	} else if (rule->cfa != CFA_NONE) {
		ours = ask_rule(rule, &machine);
		assert_true(libdw.covered);
		assert_int_equal(libdw.cfa.number, ours.cfa.number);
		assert_int_equal(libdw.ra.number, ours.ra.number);
		if (ours.bp.kind == VALUE_KNOWN)
			assert_int_equal(libdw.bp.number, ours.bp.number);
		if (ours.bx.kind == VALUE_KNOWN)
			assert_int_equal(libdw.bx.number, ours.bx.number);
	}
	close_oracle(&oracle);
}

/* ---- instructions ---------------------------------------------------------------------- */

typedef struct Case {
	Program program;
	struct unwind_rule rule; /* all zero: as the CIE has it */
} Case;

#define NONE(why)                                                                                  \
	{                                                                                          \
		.cfa = CFA_NONE, .extra = NONE_##why                                               \
	}
#define REG(reg, off) .cfa = CFA_REG, .cfa_reg = reg, .cfa_offset = off
#define USUAL	      REG(7, 8)
#define OP_PLT(n)     0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30 + (n), 0x2a, 0x33, 0x24, 0x22

static const struct unwind_rule as_cie = {USUAL};

static const Case cases[] = {
	{PROGRAM(DW_CFA_nop), {USUAL}},
	{PROGRAM(DW_CFA_def_cfa_offset, 16), {REG(7, 16)}},
	{PROGRAM(DW_CFA_def_cfa_offset, 0x80, 0x81, 0x80, 0), {REG(7, 128)}},
	{PROGRAM(DW_CFA_def_cfa, 6, 32), {REG(6, 32)}},
	{PROGRAM(DW_CFA_def_cfa, 10, 0), {REG(10, 0)}},
	{PROGRAM(DW_CFA_def_cfa, 40, 0), NONE(REGISTER)},
	{PROGRAM(DW_CFA_def_cfa_register, 6), {REG(6, 8)}},
	{PROGRAM(DW_CFA_def_cfa_sf, 6, 0x7e), {REG(6, 16)}},
	{PROGRAM(DW_CFA_def_cfa_offset_sf, 0x7d), {REG(7, 24)}},
	{PROGRAM(DW_CFA_offset | 6, 2), {USUAL, .bp = BP_AT_CFA, .bp_offset = -16}},
	{PROGRAM(DW_CFA_offset | 3, 2), {USUAL, .bx = BX_AT_CFA, .bx_offset = -16}},
	{PROGRAM(DW_CFA_offset | 3, 2, DW_CFA_restore | 3), {USUAL}},
	{PROGRAM(DW_CFA_offset | 3, 2, DW_CFA_same_value, 3), {USUAL}},
	{PROGRAM(DW_CFA_offset | 3, 2, DW_CFA_offset | 6, 3),
	 {USUAL, .bp = BP_AT_CFA, .bp_offset = -24, .bx = BX_AT_CFA, .bx_offset = -16}},
	{PROGRAM(DW_CFA_offset | 12, 2), {USUAL}},
	{PROGRAM(DW_CFA_undefined, 3), {USUAL, .bx = BX_LOST}},
	{PROGRAM(DW_CFA_register, 3, 3), {USUAL}},
	{PROGRAM(DW_CFA_register, 3, 9), {USUAL, .bx = BX_LOST}},
	{PROGRAM(DW_CFA_val_offset, 3, 2), {USUAL, .bx = BX_LOST}},
	{PROGRAM(DW_CFA_def_cfa, 3, 16), {REG(3, 16)}},
	{PROGRAM(DW_CFA_offset | 16, 2), NONE(REGISTER)},
	{PROGRAM(DW_CFA_offset_extended, 6, 2), {USUAL, .bp = BP_AT_CFA, .bp_offset = -16}},
	{PROGRAM(DW_CFA_offset_extended_sf, 6, 0x7e), {USUAL, .bp = BP_AT_CFA, .bp_offset = 16}},
	{PROGRAM(DW_CFA_GNU_negative_offset_extended, 6, 2),
	 {USUAL, .bp = BP_AT_CFA, .bp_offset = 16}},
	{PROGRAM(DW_CFA_offset | 6, 2, DW_CFA_restore | 6), {USUAL}},
	{PROGRAM(DW_CFA_offset | 16, 2, DW_CFA_restore | 16), {USUAL}},
	{PROGRAM(DW_CFA_offset | 6, 2, DW_CFA_restore_extended, 6), {USUAL}},
	{PROGRAM(DW_CFA_offset | 6, 2, DW_CFA_same_value, 6), {USUAL}},
	{PROGRAM(DW_CFA_undefined, 6), {USUAL, .bp = BP_LOST}},
	{PROGRAM(DW_CFA_undefined, 16), {.cfa = CFA_END}},
	{PROGRAM(DW_CFA_same_value, 16), NONE(REGISTER)},
	{PROGRAM(DW_CFA_register, 6, 9), {USUAL, .bp = BP_IN_REG + 9}},
	{PROGRAM(DW_CFA_register, 6, 6), {USUAL}},
	{PROGRAM(DW_CFA_register, 6, 40), {USUAL, .bp = BP_LOST}},
	{PROGRAM(DW_CFA_register, 16, 5), {USUAL, .ra = RA_REG + 5}},
	{PROGRAM(DW_CFA_register, 16, 17), NONE(REGISTER)},
	{PROGRAM(DW_CFA_register, 7, 8), NONE(REGISTER)},
	{PROGRAM(DW_CFA_remember_state, DW_CFA_def_cfa, 6, 64, DW_CFA_offset | 6, 2,
		 DW_CFA_restore_state),
	 {USUAL}},
	{PROGRAM(DW_CFA_GNU_args_size, 16), {USUAL}},
	{PROGRAM(DW_CFA_val_offset, 7, 0), {USUAL}},
	{PROGRAM(DW_CFA_val_offset_sf, 7, 0), {USUAL}},
	{PROGRAM(DW_CFA_val_offset, 7, 1), NONE(REGISTER)},
	{PROGRAM(DW_CFA_val_offset_sf, 6, 0x7e), {USUAL, .bp = BP_LOST}},
	{PROGRAM(DW_CFA_expression, 6, 2, DW_OP_breg6, 0x78),
	 {USUAL, .bp = BP_AT_BP, .bp_offset = -8}},
	{PROGRAM(DW_CFA_expression, 6, 2, DW_OP_breg7, 16),
	 {USUAL, .bp = BP_AT_SP, .bp_offset = 16}},
	{PROGRAM(DW_CFA_expression, 6, 2, DW_OP_breg3, 16), {USUAL, .bp = BP_LOST}},
	{PROGRAM(DW_CFA_expression, 3, 2, DW_OP_breg3, 16), {USUAL, .bx = BX_LOST}},
	{PROGRAM(DW_CFA_expression, 16, 2, DW_OP_breg7, 8), NONE(REGISTER)},
	{PROGRAM(DW_CFA_val_expression, 6, 2, DW_OP_breg6, 0), {USUAL, .bp = BP_LOST}},
	{PROGRAM(DW_CFA_val_expression, 16, 2, DW_OP_breg6, 0), NONE(REGISTER)},
	{PROGRAM(DW_CFA_val_expression, 3, 2, DW_OP_breg6, 0), {USUAL, .bx = BX_LOST}},
	{PROGRAM(DW_CFA_def_cfa_expression, 2, DW_OP_breg7, 16), {REG(7, 16)}},
	{PROGRAM(DW_CFA_def_cfa_expression, 3, DW_OP_bregx, 6, 16), {REG(6, 16)}},
	{PROGRAM(DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 16, DW_OP_plus_uconst, 8),
	 {REG(7, 24)}},
	{PROGRAM(DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref),
	 {.cfa = CFA_DEREF, .cfa_reg = 6, .cfa_offset = -8}},
	{PROGRAM(DW_CFA_def_cfa_expression, 5, DW_OP_breg7, 8, DW_OP_deref, DW_OP_plus_uconst, 8),
	 {.cfa = CFA_DEREF, .cfa_reg = 7, .cfa_offset = 8, .extra = 8}},
	{PROGRAM(DW_CFA_def_cfa_expression, 5, DW_OP_breg7, 8, DW_OP_deref, DW_OP_lit8, DW_OP_plus),
	 {.cfa = CFA_DEREF, .cfa_reg = 7, .cfa_offset = 8, .extra = 8}},
	{PROGRAM(DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 8, DW_OP_deref, DW_OP_const1u, 200,
		 DW_OP_minus),
	 {.cfa = CFA_DEREF, .cfa_reg = 7, .cfa_offset = 8, .extra = -200}},
	{PROGRAM(DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 8, DW_OP_deref, DW_OP_consts, 0x78,
		 DW_OP_plus),
	 {.cfa = CFA_DEREF, .cfa_reg = 7, .cfa_offset = 8, .extra = -8}},
	{PROGRAM(DW_CFA_def_cfa_expression, 7, DW_OP_breg7, 8, DW_OP_deref, DW_OP_const2s, 0xf8,
		 0xff, DW_OP_plus),
	 {.cfa = CFA_DEREF, .cfa_reg = 7, .cfa_offset = 8, .extra = -8}},
	{PROGRAM(OP_PLT(11)), {.cfa = CFA_PLT, .cfa_reg = 7, .extra = 11}},
	{PROGRAM(OP_PLT(10)), {.cfa = CFA_PLT, .cfa_reg = 7, .extra = 10}},
	{PROGRAM(OP_PLT(16)), NONE(EXPRESSION)},
	{PROGRAM(DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 8, DW_OP_deref, DW_OP_deref),
	 NONE(EXPRESSION)},
	{PROGRAM(DW_CFA_def_cfa_expression, 2, DW_OP_breg16, 8), NONE(EXPRESSION)},
	{PROGRAM(DW_CFA_def_cfa_expression, 3, DW_OP_lit8, DW_OP_lit8, DW_OP_plus),
	 NONE(EXPRESSION)},
	{PROGRAM(DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 8, DW_OP_lit8, DW_OP_mul),
	 NONE(EXPRESSION)},
	{PROGRAM(DW_CFA_def_cfa_expression, 0), NONE(EXPRESSION)},
	{PROGRAM(DW_CFA_def_cfa_offset, 0xff, 0xff, 0xff, 0xff, 7), {REG(7, 0x7fffffff)}},
	{PROGRAM(DW_CFA_def_cfa_offset, 0x80, 0x80, 0x80, 0x80, 8), NONE(OVERFLOW)},
	/* -32768 fits, and what does not is lost without the CFA. */
	{PROGRAM(DW_CFA_offset_extended, 6, 0x80, 0x20),
	 {USUAL, .bp = BP_AT_CFA, .bp_offset = INT16_MIN}},
	{PROGRAM(DW_CFA_offset_extended, 6, 0x81, 0x20), {USUAL, .bp = BP_LOST}},
	{PROGRAM(DW_CFA_offset_extended, 6, 0x80, 0x80, 0x80, 0x80, 8), {USUAL, .bp = BP_LOST}},
	{PROGRAM(DW_CFA_expression, 6, 4, DW_OP_breg7, 0x80, 0x80, 2), {USUAL, .bp = BP_LOST}},
	{PROGRAM(DW_CFA_offset_extended, 3, 0x80, 0x20),
	 {USUAL, .bx = BX_AT_CFA, .bx_offset = INT16_MIN}},
	{PROGRAM(DW_CFA_offset_extended, 3, 0x81, 0x20), {USUAL, .bx = BX_LOST}},
	{PROGRAM(DW_CFA_def_cfa_expression, 7, DW_OP_breg7, 8, DW_OP_deref, DW_OP_plus_uconst, 0xff,
		 0xff, 1),
	 {.cfa = CFA_DEREF, .cfa_reg = 7, .cfa_offset = 8, .extra = INT16_MAX}},
	{PROGRAM(DW_CFA_def_cfa_expression, 7, DW_OP_breg7, 8, DW_OP_deref, DW_OP_plus_uconst, 0x80,
		 0x80, 2),
	 NONE(OVERFLOW)},
	/* What cannot be read, or makes no sense. */
	{PROGRAM(0x3f), NONE(BROKEN)},
	{PROGRAM(DW_CFA_restore_state), NONE(BROKEN)},
	{PROGRAM(DW_CFA_def_cfa_offset), NONE(BROKEN)},
	{PROGRAM(DW_CFA_def_cfa_offset, 0x80), NONE(BROKEN)},
	{PROGRAM(DW_CFA_def_cfa_offset, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2),
	 NONE(BROKEN)},
	{PROGRAM(DW_CFA_def_cfa, 7), NONE(BROKEN)},
	{PROGRAM(DW_CFA_register, 6), NONE(BROKEN)},
	{PROGRAM(DW_CFA_advance_loc4, 1, 2), NONE(BROKEN)},
	{PROGRAM(DW_CFA_set_loc, 0, 0, 0, 0x80), NONE(BROKEN)},
	{PROGRAM(DW_CFA_expression, 6, 3, DW_OP_breg6, 0), NONE(BROKEN)},
	{PROGRAM(DW_CFA_def_cfa_expression, 0xff, 0xff, 0xff, 0xff, 0xf), NONE(BROKEN)},
	{PROGRAM(DW_CFA_def_cfa_expression, 2, DW_OP_breg7, 8, DW_CFA_def_cfa_offset, 8),
	 NONE(BROKEN)},
	{PROGRAM(DW_CFA_def_cfa_expression, 2, DW_OP_breg7, 0x80), NONE(EXPRESSION)},
};

static void test_instructions(void **state)
{
	char *folder = make_folder();
	_cleanup_free_ char *path = xasprintf("%s/frames", folder);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Built built = build_form(path, &usual, cases[i].program);

		print_message("%zu: %#x\n", i, cases[i].program.bytes[0]);
		assert_rule(rule_at(&built.table, PC), &cases[i].rule);
		assert_rule(rule_at(&built.table, PC + SIZE - 1), &cases[i].rule);
		assert_libdw_agrees(path, &built, PC + 5);
		assert_int_equal(built.table.rows.count, 3);
		free_built(&built);
	}
	remove_folder(folder);
}

/* The CFA grows by 8 at each of these places. */
static void test_advances(void **state)
{
	static const uint8_t program[] = {
		DW_CFA_advance_loc | 3,
		DW_CFA_def_cfa_offset,
		16,
		DW_CFA_advance_loc1,
		0x80,
		DW_CFA_def_cfa_offset,
		24,
		DW_CFA_advance_loc2,
		0,
		1,
		DW_CFA_def_cfa_offset,
		32,
		DW_CFA_advance_loc4,
		0,
		2,
		0,
		0,
		DW_CFA_def_cfa_offset,
		40,
		0x1d /* DW_CFA_MIPS_advance_loc8 */,
		1,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		DW_CFA_def_cfa_offset,
		48,
		DW_CFA_set_loc,
		0,
		0x1f,
		0,
		0,
		0,
		0,
		0,
		0,
		DW_CFA_def_cfa_offset,
		56,
		DW_CFA_advance_loc,
		DW_CFA_def_cfa_offset,
		64,
		DW_CFA_advance_loc4,
		0xff,
		0xff,
		0xff,
		0xff,
		DW_CFA_def_cfa_offset,
		72,
	};
	static const uint32_t places[] = {0,	      PC,	  PC + 3, PC + 0x83, PC + 0x183,
					  PC + 0x383, PC + 0x384, 0x1f00, PC + SIZE};
	static const Form form = {.augmentation = "zR", .encoding = DW_EH_PE_absptr};
	char *folder = make_folder();
	_cleanup_free_ char *path = xasprintf("%s/frames", folder);
	Built built = build_form(path, &form, (Program){program, sizeof(program)});

	(void)state;
	assert_int_equal(built.table.rows.count, ARRAY_LEN(places));
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		const struct unwind_rule *rule = rule_at(&built.table, places[i]);

		assert_int_equal(built.table.rows.items[i].pc, places[i]);
		if (i > 0 && i < ARRAY_LEN(places) - 1)
			assert_int_equal(rule->cfa_offset, i == 7 ? 64 : 8 * i);
	}
	free_built(&built);
	remove_folder(folder);
}

/* What was good before an instruction that cannot be read stays. */
static void test_broken_later(void **state)
{
	static const struct unwind_rule broken = NONE(BROKEN);
	char *folder = make_folder();
	_cleanup_free_ char *path = xasprintf("%s/frames", folder);
	Built built =
		build_form(path, &usual,
			   (Program)PROGRAM(DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 16,
					    DW_CFA_advance_loc | 4, 0x3f, DW_CFA_advance_loc | 4));

	(void)state;
	assert_rule(rule_at(&built.table, PC + 3), &as_cie);
	assert_int_equal(rule_at(&built.table, PC + 7)->cfa_offset, 16);
	assert_rule(rule_at(&built.table, PC + 8), &broken);
	assert_rule(rule_at(&built.table, PC + SIZE - 1), &broken);
	assert_int_equal(built.coverage.none_bytes[NONE_BROKEN], SIZE - 8);
	free_built(&built);
	remove_folder(folder);
}

/* ---- forms ------------------------------------------------------------------------------ */

static void test_forms(void **state)
{
	static const Form forms[] = {
		{.augmentation = ""},
		{.augmentation = "", .version = 3},
		{.augmentation = "zR", .version = 4, .encoding = DW_EH_PE_udata4},
		{.augmentation = "zPLR", .encoding = DW_EH_PE_pcrel | DW_EH_PE_sdata4},
		{.augmentation = "zRB", .encoding = DW_EH_PE_sdata4},
		{.augmentation = "zR", .is_64 = true, .encoding = DW_EH_PE_sdata4},
		{.augmentation = "", .debug_frame = true, .version = 3},
		{.augmentation = "", .debug_frame = true, .version = 4},
		{.augmentation = "", .debug_frame = true, .version = 4, .is_64 = true},
		{.augmentation = "zR", .encoding = DW_EH_PE_absptr},
		{.augmentation = "zR", .encoding = DW_EH_PE_udata2},
		{.augmentation = "zR", .encoding = DW_EH_PE_sdata2},
		{.augmentation = "zR", .encoding = DW_EH_PE_udata8},
		{.augmentation = "zR", .encoding = DW_EH_PE_sdata8},
		{.augmentation = "zR", .encoding = DW_EH_PE_uleb128},
		{.augmentation = "zR", .encoding = DW_EH_PE_sleb128},
		{.augmentation = "zR", .encoding = DW_EH_PE_pcrel | DW_EH_PE_sdata2},
		{.augmentation = "zR", .encoding = DW_EH_PE_pcrel | DW_EH_PE_sdata8},
		{.augmentation = "zR", .encoding = DW_EH_PE_pcrel},
	};
	char *folder = make_folder();
	_cleanup_free_ char *path = xasprintf("%s/frames", folder);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		Built built = build_form(path, &forms[i], (Program)PROGRAM(DW_CFA_nop));

		print_message("%zu: \"%s\", encoding %#x\n", i, forms[i].augmentation,
			      forms[i].encoding);
		assert_int_equal(built.table.rows.count, 3);
		assert_int_equal(built.table.rows.items[1].pc, PC);
		assert_int_equal(built.table.rows.items[2].pc, PC + SIZE);
		assert_rule(rule_at(&built.table, PC), &as_cie);
		assert_libdw_agrees(path, &built, PC + 5);
		free_built(&built);
	}
	remove_folder(folder);
}

/* Dropped as a whole, and counted by the reason. */
static void test_refused(void **state)
{
	static const struct {
		Form form;
		enum unwind_drop drop;
	} refused[] = {
		{{.augmentation = "zR", .encoding = DW_EH_PE_textrel}, UNWIND_DROP_ENCODING},
		{{.augmentation = "zR", .encoding = DW_EH_PE_datarel}, UNWIND_DROP_ENCODING},
		{{.augmentation = "zR", .encoding = DW_EH_PE_funcrel}, UNWIND_DROP_ENCODING},
		{{.augmentation = "zR", .encoding = DW_EH_PE_indirect}, UNWIND_DROP_ENCODING},
		{{.augmentation = "zR", .encoding = 0x07}, UNWIND_DROP_ENCODING},
		{{.augmentation = "zR", .version = 2}, UNWIND_DROP_NO_CIE},
		{{.augmentation = "zR", .version = 200}, UNWIND_DROP_NO_CIE},
		{{.augmentation = "zQ"}, UNWIND_DROP_NO_CIE},
		{{.augmentation = "", .pc = FRAMES_EXECUTABLE}, UNWIND_DROP_OUTSIDE},
		{{.augmentation = "", .size = FRAMES_EXECUTABLE}, UNWIND_DROP_OUTSIDE},
		{{.augmentation = "", .size = UINT64_MAX}, UNWIND_DROP_OUTSIDE},
		{{.augmentation = "", .pc = UINT64_MAX}, UNWIND_DROP_FAR},
		{{.augmentation = "", .pc = 1ULL << 32}, UNWIND_DROP_FAR},
	};
	char *folder = make_folder();
	_cleanup_free_ char *path = xasprintf("%s/frames", folder);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		Built built = build_form(path, &refused[i].form, (Program)PROGRAM(DW_CFA_nop));

		print_message("%zu: %s\n", i, refused[i].form.augmentation);
		assert_int_equal(built.table.counts.fdes, 1);
		assert_int_equal(built.table.counts.drops[refused[i].drop], 1);
		assert_int_equal(built.table.rows.count, 1);
		assert_int_equal(built.coverage.none_bytes[NONE_GAP], FRAMES_EXECUTABLE);
		free_built(&built);
	}
	remove_folder(folder);
}

/* A return address in another column than x86-64's is no rule, and no FDE is lost. */
static void test_return_column(void **state)
{
	static const struct unwind_rule expected = NONE(REGISTER);
	static const Form form = {.augmentation = "", .return_register = 5};
	char *folder = make_folder();
	_cleanup_free_ char *path = xasprintf("%s/frames", folder);
	Built built = build_form(path, &form, (Program)PROGRAM(DW_CFA_nop));

	(void)state;
	assert_rule(rule_at(&built.table, PC), &expected);
	free_built(&built);
	remove_folder(folder);
}

/* ---- several FDEs ------------------------------------------------------------------------- */

typedef struct Extent {
	uint32_t pc, size, offset; /* of its CFA */
} Extent;

static Bytes make_extents(const Form *form, const Extent *extents, size_t count)
{
	Bytes bytes = {};

	put_cie(&bytes, form);
	for (size_t i = 0; i < count; i++) {
		Form fde = *form;

		fde.pc = extents[i].pc;
		fde.size = extents[i].size;
		put_fde(&bytes, &fde, (Program)PROGRAM(DW_CFA_def_cfa_offset, extents[i].offset));
		if (i % 2)
			put_number(&bytes, 0, 4); /* of a file that was linked in */
	}
	return bytes;
}

typedef struct Expected {
	uint32_t pc, offset; /* of the CFA; 0 = a gap */
} Expected;

static void assert_rows(const UnwindTable *table, const Expected *rows, size_t count)
{
	assert_int_equal(table->rows.count, count);
	for (size_t i = 0; i < count; i++) {
		const struct unwind_rule *rule = rule_at(table, rows[i].pc);

		assert_int_equal(table->rows.items[i].pc, rows[i].pc);
		assert_int_equal(rule->cfa, rows[i].offset ? CFA_REG : CFA_NONE);
		assert_int_equal(rule->cfa_offset, rows[i].offset);
	}
}

/* Among FDEs at one address the first one counts, else the lower one; padding is no gap. */
static void test_order(void **state)
{
	static const Extent extents[] = {
		{0x3000, 0x100, 24}, {0x1000, 0x100, 16}, {0x10f0, 0x20, 32},  {0x1040, 0x10, 40},
		{0x111f, 0x10, 48},  {0x113f, 0x10, 56},  {0x3000, 0x100, 64},
	};
	static const Expected rows[] = {
		{0, 0},	      {0x1000, 16}, {0x1100, 32}, {0x111f, 48}, {0x112f, 0},
		{0x113f, 56}, {0x114f, 0},  {0x3000, 24}, {0x3100, 0},
	};
	char *folder = make_folder();
	_cleanup_free_ char *path = xasprintf("%s/frames", folder);
	Bytes bytes = make_extents(&usual, extents, ARRAY_LEN(extents));
	Built built = build_bytes(path, &bytes, /* debug_frame= */ false);

	(void)state;
	assert_int_equal(built.result, 0);
	assert_rows(&built.table, rows, ARRAY_LEN(rows));
	assert_int_equal(built.table.counts.fdes, ARRAY_LEN(extents));
	assert_int_equal(built.table.counts.drops[UNWIND_DROP_OVERLAP], 2);
	assert_int_equal(built.table.counts.overlaps, 1);
	free_built(&built);
	vec_free(&bytes);
	remove_folder(folder);
}

/* .debug_frame only fills what .eh_frame leaves, and each of its functions one gap. */
static void test_two_sections(void **state)
{
	static const Form debug_form = {.augmentation = "", .version = 4, .debug_frame = true};
	static const Extent eh[] = {{0x1000, 0x100, 16}, {0x1200, 0x100, 24}};
	static const Extent debug[] = {
		{0x0f00, 0x180, 32}, {0x1080, 0x20, 40}, {0x10f0, 0x400, 48}, {0x1380, 0x40, 56}};
	static const Expected rows[] = {{0, 0},	      {0xf00, 32}, {0x1000, 16}, {0x1100, 48},
					{0x1200, 24}, {0x1300, 0}, {0x1380, 56}, {0x13c0, 0}};
	char *folder = make_folder();
	_cleanup_free_ char *path = xasprintf("%s/frames", folder);
	_cleanup_free_ char *debug_path = xasprintf("%s/debug", folder);
	Bytes eh_bytes = make_extents(&usual, eh, ARRAY_LEN(eh));
	Bytes debug_bytes = make_extents(&debug_form, debug, ARRAY_LEN(debug));
	Built built;

	(void)state;
	write_bytes(path, &eh_bytes, /* debug_frame= */ false);
	write_bytes(debug_path, &debug_bytes, /* debug_frame= */ true);
	built = build_table(path, debug_path);
	assert_int_equal(built.result, 0);
	assert_rows(&built.table, rows, ARRAY_LEN(rows));
	assert_int_equal(built.table.counts.fdes, 6);
	assert_int_equal(built.table.counts.drops[UNWIND_DROP_KNOWN], 1);
	assert_int_equal(built.table.counts.overlaps, 2);
	free_built(&built);
	vec_free(&eh_bytes);
	vec_free(&debug_bytes);
	remove_folder(folder);
}

/* ---- hostile ------------------------------------------------------------------------------ */

/* Any bytes of a good section changed, or cut off: a valid table, or none. */
static void test_hostile(void **state)
{
	char *folder = make_folder();
	_cleanup_free_ char *path = xasprintf("%s/frames", folder);
	Bytes good = {};

	(void)state;
	put_cie(&good, &usual);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Form form = usual;

		form.pc = PC + 0x100 * i;
		form.size = 0xf8;
		put_fde(&good, &form, cases[i].program);
	}
	for (int round = 0; round < 2000; round++) {
		Bytes bad = {};
		Built built;

		put_bytes(&bad, good.items, round % 4 ? good.count : random_below(good.count) + 1);
		for (int i = 0; i < round % 6; i++)
			bad.items[random_below(i % 2 ? bad.count : MIN(bad.count, (size_t)80))] =
				random_below(2) ? 0xff : random_below(256);
		built = build_bytes(path, &bad, round % 3 == 0);
		assert_int_equal(built.result, 0);
		free_built(&built);
		vec_free(&bad);
	}
	vec_free(&good);
	remove_folder(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_instructions), cmocka_unit_test(test_advances),
		cmocka_unit_test(test_broken_later), cmocka_unit_test(test_forms),
		cmocka_unit_test(test_refused),	     cmocka_unit_test(test_return_column),
		cmocka_unit_test(test_order),	     cmocka_unit_test(test_two_sections),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
