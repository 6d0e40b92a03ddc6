/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "suspends.h"
#include "test_tools.h"

#define S	NSEC_PER_SEC
#define MS	NSEC_PER_MSEC
#define READING 200 /* ns from one clock to the next */

/* A check at a time of CLOCK_MONOTONIC, when the machine was suspended for so long since boot. */
static bool check_at(Suspends *suspends, uint64_t ns, uint64_t suspended_ns, uint64_t reading_ns)
{
	return suspends_check(suspends, &(SuspendClocks){ns, ns + reading_ns + suspended_ns,
							 ns + 2 * reading_ns});
}

static void test_found(void **state)
{
	Suspends suspends = {};
	SuspendCounts counts;

	(void)state;
	assert_false(check_at(&suspends, 100 * S, 7 * S, READING)); /* before the recording */
	assert_false(check_at(&suspends, 101 * S, 7 * S, READING));
	assert_true(check_at(&suspends, 102 * S, 12 * S, READING));
	assert_false(check_at(&suspends, 103 * S, 12 * S, READING));
	assert_true(check_at(&suspends, 104 * S, 12 * S + 500 * MS, READING));
	counts = suspends_since(&suspends, 100 * S);
	assert_int_equal(counts.count, 2);
	assert_int_equal(counts.first_ns, 101 * S + 2 * READING);
	expect_between(counts.sum_ns, 5500 * MS - 8 * READING, 5500 * MS);
	counts = suspends_since(&suspends, 102 * S);
	assert_int_equal(counts.count, 1);
	expect_between(counts.sum_ns, 500 * MS - 4 * READING, 500 * MS);
	assert_int_equal(suspends_since(&suspends, 104 * S).count, 0);
	suspends_free(&suspends);
}

/* A reading that is preempted between two clocks is no suspend, and hides none. */
static void test_preempted(void **state)
{
	Suspends suspends = {};

	(void)state;
	assert_false(check_at(&suspends, 100 * S, 0, 40 * MS));
	assert_false(check_at(&suspends, 101 * S, 0, READING));
	assert_false(check_at(&suspends, 102 * S, 0, 60 * MS));
	assert_false(check_at(&suspends, 103 * S, 0, READING));
	assert_false(check_at(&suspends, 104 * S, 30 * MS, 80 * MS)); /* not yet certain */
	assert_true(check_at(&suspends, 105 * S, 30 * MS, READING));
	expect_between(suspends_since(&suspends, 0).sum_ns, 30 * MS - 4 * READING, 30 * MS);
	suspends_free(&suspends);
}

/* The clocks of this machine, which is not suspended meanwhile. */
static void test_real_clocks(void **state)
{
	Suspends suspends = {};

	(void)state;
	for (int i = 0; i < 1000; i++) {
		SuspendClocks clocks = suspends_read_clocks();

		assert_true(clocks.before_ns <= clocks.after_ns);
		assert_false(suspends_check(&suspends, &clocks));
	}
	suspends_free(&suspends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_preempted),
		cmocka_unit_test(test_real_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
