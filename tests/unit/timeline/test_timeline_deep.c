/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of which frames are left out. */
#include "scenario.h"
#include <setjmp.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

/* The outermost frames of a deep stack are in a ring. */
static void test_deep_stacks(void **state)
{
	static const uint64_t recorded[] = {1, 2, 3, 22, 23, 21}, frames[] = {1, 2, 3, 21, 22, 23};
	Scenario s;

	(void)state;
	scenario_begin(&s, 6, true);
	for (uint32_t i = 0; i < 3; i++) {
		char buffer[sizeof(struct rec_stack) + 7 * 8] = {};
		struct rec_stack *record = (struct rec_stack *)buffer;
		struct stack_gap gap = {.left_out = 17, .leaf = i == 2 ? 6 : 3};

		record->h.kind = REC_STACK;
		record->h.flags = STACK_USER | STACK_DEEP;
		record->h.len = sizeof(*record) + (i == 1 ? 6 : 7) * 8;
		record->id = 5 + i;
		record->count = 6;
		memcpy(record->frames, recorded, sizeof(recorded));
		memcpy(record->frames + 6, &gap, sizeof(gap));
		timeline_builder_add(s.builder, &record->h);
	}
	scenario_finish(&s);
	assert_int_equal(s.timeline->stacks.count, 3);
	assert_int_equal(s.timeline->stacks.items[0].leaf, 3);
	assert_int_equal(s.timeline->stacks.items[0].left_out, 17);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(s.timeline->frames.items[s.timeline->stacks.items[0].first + i],
				 frames[i]);
	/* One has no gap in it, and one an impossible one. */
	assert_false(s.timeline->stacks.items[1].defined);
	assert_int_equal(s.timeline->stacks.items[2].leaf, 0);
	scenario_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deep_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
