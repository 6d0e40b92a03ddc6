/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk with the registers that a function need not preserve, and with an index. */
#include "cfi_program.h"
#include "walk_fixture.h"
#include <dwarf.h>

static World world;

static const struct unwind_rule end = {.cfa = CFA_END};
static const struct unwind_rule plain = {.cfa = CFA_REG, .cfa_reg = DWARF_RSP, .cfa_offset = 8};

static struct unwind_rule by_register(uint8_t reg)
{
	return (struct unwind_rule){.cfa = CFA_REG, .cfa_reg = reg, .cfa_offset = 8};
}

static struct unwind_rule by_index(uint8_t reg, uint8_t index)
{
	return (struct unwind_rule){.cfa = CFA_DEREF,
				    .cfa_reg = reg | index << CFA_INDEX_SHIFT,
				    .cfa_offset = 8,
				    .extra = 8};
}

/* Three frames: the leaf, `frames` callers that leave all registers alone, and one by its rule. */
static void begin(struct unwind_rule leaf, int frames, struct unwind_rule last)
{
	world_begin(&world);
	world_map(&world, LEAF, leaf);
	world_map(&world, CALLERS, plain);
	world_row(&world, AT_SP + frames, last);
	world_row(&world, AT_SP + frames + 1, end);
}

static bool is_scratch(int reg)
{
	static const int scratch[] = {0, 1, 2, 4, 5, 8, 9, 10, 11};

	for (size_t i = 0; i < ARRAY_LEN(scratch); i++)
		if (scratch[i] == reg)
			return true;
	return false;
}

static void test_through_callers(void **state)
{
	(void)state;
	for (int reg = 0; reg < DWARF_REGS; reg++) {
		int frames = random_below(5), word = 60 + random_below(100);

		if (reg == DWARF_RBX || reg == DWARF_RBP || reg == DWARF_RSP)
			continue;
		begin(plain, frames, by_register(reg));
		world.input.regs[reg] = word_address(word);
		world_walk(&world, MAX_FRAMES);
		assert_int_equal(world.result, is_scratch(reg) ? STACK_COMPLETE : STACK_REGISTER);
		assert_int_equal(world.count, frames + (is_scratch(reg) ? 3 : 2));
		if (is_scratch(reg))
			assert_int_equal(world.frames[frames + 2], return_to(word));
	}
}

/* Code that is walked by its frame pointer may have changed any register. */
static void test_behind_guess(void **state)
{
	struct unwind_rule guess = {.cfa = CFA_NONE, .extra = NONE_UNKNOWN_CODE};

	(void)state;
	begin(plain, 0, by_register(10));
	world.input.regs[10] = word_address(50);
	world_walk(&world, MAX_FRAMES);
	assert_int_equal(world.result, STACK_COMPLETE);
	world_begin(&world);
	world_map(&world, LEAF, guess);
	world_map(&world, CALLERS, by_register(10));
	world.input.regs[10] = word_address(50);
	world_walk(&world, MAX_FRAMES);
	assert_int_equal(world.result, STACK_REGISTER);
	assert_int_equal(world.count, 2);
}

static void test_index(void **state)
{
	int word = 60 + random_below(50), index = random_below(30);

	(void)state;
	for (int frames = 0; frames < 3; frames++) {
		begin(plain, frames, by_index(DWARF_RSP, 9));
		world.input.regs[9] = index;
		world.stack[AT_SP + 1 + frames + 1 + index] = word_address(word);
		world_walk(&world, MAX_FRAMES);
		assert_int_equal(world.result, STACK_COMPLETE);
		assert_int_equal(world.frames[frames + 2], return_to(word));
		world.input.regs[9] = index + 1;
		world_walk(&world, MAX_FRAMES);
		assert_int_not_equal(world.result, STACK_COMPLETE);
	}
	/* A function may have changed r12. */
	begin(plain, 1, by_index(DWARF_RSP, 12));
	world_walk(&world, MAX_FRAMES);
	assert_int_equal(world.result, STACK_REGISTER);
	begin(by_index(DWARF_RSP, 12), 0, end);
	world.input.regs[12] = 5;
	world.stack[AT_SP + 1 + 5] = word_address(word);
	world_walk(&world, MAX_FRAMES);
	assert_int_equal(world.frames[1], return_to(word));
}

/* ---- expressions -------------------------------------------------------------------- */

static void check_expression(const uint8_t *bytes, size_t size, bool good)
{
	CfiCfa cfa = cfi_expression((CfiBytes){.at = bytes, .end = bytes + size});

	assert_int_equal(cfa.kind, good ? CFA_DEREF : CFA_NONE);
	if (!good)
		return;
	assert_int_equal(cfa.reg, DWARF_RSP);
	assert_int_equal(cfa.index, 9);
	assert_int_equal(cfa.offset, 16);
	assert_int_equal(cfa.extra, 24);
}
#define expect(good, ...)                                                                          \
	check_expression((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}),   \
			 good)
#define BEHIND DW_OP_deref, DW_OP_plus_uconst, 24

static void test_expressions(void **state)
{
	(void)state;
	expect(true, DW_OP_breg7, 16, DW_OP_breg9, 0, DW_OP_lit8, DW_OP_mul, DW_OP_plus, BEHIND);
	expect(true, DW_OP_breg7, 16, DW_OP_breg9, 0, DW_OP_lit3, DW_OP_shl, DW_OP_plus, BEHIND);
	expect(true, DW_OP_breg7, 8, DW_OP_breg9, 0, DW_OP_lit8, DW_OP_mul, DW_OP_plus,
	       DW_OP_plus_uconst, 8, BEHIND);
	/* Another factor, an offset, a second index, rbx, one behind the memory, none of memory. */
	expect(false, DW_OP_breg7, 16, DW_OP_breg9, 0, DW_OP_lit4, DW_OP_mul, DW_OP_plus, BEHIND);
	expect(false, DW_OP_breg7, 16, DW_OP_breg9, 8, DW_OP_lit8, DW_OP_mul, DW_OP_plus, BEHIND);
	expect(false, DW_OP_breg7, 16, DW_OP_breg9, 0, DW_OP_lit8, DW_OP_mul, DW_OP_plus,
	       DW_OP_breg10, 0, DW_OP_lit8, DW_OP_mul, DW_OP_plus, BEHIND);
	expect(false, DW_OP_breg7, 16, DW_OP_breg3, 0, DW_OP_lit8, DW_OP_mul, DW_OP_plus, BEHIND);
	expect(false, DW_OP_breg7, 16, BEHIND, DW_OP_breg9, 0, DW_OP_lit8, DW_OP_mul, DW_OP_plus);
	expect(false, DW_OP_breg7, 16, DW_OP_breg9, 0, DW_OP_lit8, DW_OP_mul, DW_OP_plus);
	expect(false, DW_OP_breg7, 16, DW_OP_breg9, 0, DW_OP_lit8, DW_OP_mul);
	expect(false, DW_OP_breg7, 16, DW_OP_breg9, 0, DW_OP_lit8);
	expect(false, DW_OP_breg7, 16, DW_OP_breg16, 0, DW_OP_lit8, DW_OP_mul, DW_OP_plus, BEHIND);
}

static void test_valid(void **state)
{
	struct unwind_rule rule = by_index(DWARF_RSP, 9);
	UnwindRules rules = {.items = &rule, .count = 1};

	(void)state;
	assert_true(unwind_rules_valid(&rules));
	rule.cfa = CFA_REG;
	assert_false(unwind_rules_valid(&rules));
	rule = by_index(DWARF_RSP, DWARF_RBX);
	assert_false(unwind_rules_valid(&rules));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_through_callers), cmocka_unit_test(test_behind_guess),
		cmocka_unit_test(test_index),		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
