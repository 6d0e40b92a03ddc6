/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walks of stacks that have more frames than a record, and where their frames are stored. */
#include "walk_fixture.h"

static World world;
static const struct unwind_rule end_rule = {.cfa = CFA_END};
static const struct unwind_rule word_rule = {.cfa = CFA_REG, .cfa_reg = DWARF_RSP, .cfa_offset = 8};

/* The n-th frame of a stack whose frames have one word each. */
static uint64_t frame_number(size_t n)
{
	return n == 0 ? world.input.regs[DWARF_RETURN] : return_to(AT_SP + n - 1);
}

static void check_deep(uint32_t depth, int result)
{
	struct stack_gap gap = {.leaf = LEAF_FRAMES};
	size_t count, root;

	world_begin(&world);
	world_map(&world, LEAF, word_rule);
	world_map(&world, CALLERS, word_rule);
	if (result == STACK_COMPLETE)
		world_row(&world, AT_SP + depth - 2, end_rule);
	assert_int_equal(walk_user(&world.input, world.frames, &count, &gap.left_out), result);
	assert_int_equal(count, MIN(depth, MAX_FRAMES));
	assert_int_equal(gap.left_out, depth - count);
	for (size_t i = 0; i < MIN(count, LEAF_FRAMES); i++)
		assert_int_equal(world.frames[i], frame_number(i));
	if (count < MAX_FRAMES)
		return;
	root = stack_gap_root(&gap, count);
	for (size_t i = 0; i < ROOT_FRAMES; i++) {
		assert_int_equal(world.frames[root], frame_number(depth - ROOT_FRAMES + i));
		root = root + 1 < count ? root + 1 : LEAF_FRAMES;
	}
}

static void test_deep_stacks(void **state)
{
	(void)state;
	check_deep(100, STACK_COMPLETE);
	for (uint32_t depth = MAX_FRAMES - 1; depth < MAX_FRAMES + 2 * ROOT_FRAMES + 2; depth++)
		check_deep(depth, STACK_COMPLETE);
	check_deep(20000, STACK_COMPLETE);
	check_deep(WALK_FRAMES_MAX, STACK_COMPLETE);
	check_deep(WALK_FRAMES_MAX, STACK_TRUNCATED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deep_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
