/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test_tools.h"
#include "tick_rate.h"

#define US 1000.0

/* On real hardware an interrupt and its program take some 4 us: the rate stays. */
static void test_cheap(void **state)
{
	(void)state;
	assert_int_equal(tick_rate_choose(TICK_RATE_SHARE, 0), TICK_RATE_FIRST);
	assert_int_equal(tick_rate_choose(TICK_RATE_SHARE, 4 * US), TICK_RATE_FIRST);
	assert_int_equal(tick_rate_choose(TICK_RATE_SHARE, 10 * US), TICK_RATE_FIRST);
}

/* In a virtual machine they take 20 us and more: the rate falls. */
static void test_costly(void **state)
{
	(void)state;
	assert_int_equal(tick_rate_choose(TICK_RATE_SHARE, 10.1 * US), 499);
	assert_int_equal(tick_rate_choose(TICK_RATE_SHARE, 20 * US), 499);
	assert_int_equal(tick_rate_choose(TICK_RATE_SHARE, 20.1 * US), 249);
	assert_int_equal(tick_rate_choose(TICK_RATE_SHARE, 40 * US), 249);
	assert_int_equal(tick_rate_choose(TICK_RATE_SHARE, 100 * US), 99);
}

/* No rate costs more than the share, and no higher one would have been within it. */
static void test_share(void **state)
{
	unsigned int last = TICK_RATE_FIRST;

	(void)state;
	for (double tick_ns = 100; tick_ns < 101 * US; tick_ns += 100) {
		unsigned int rate = tick_rate_choose(TICK_RATE_SHARE, tick_ns);

		assert_true(rate <= last);
		assert_true(rate * tick_ns <= TICK_RATE_SHARE * 1e9);
		last = rate;
	}
}

/* The lowest rate is the least that is useful, whatever it costs. */
static void test_lowest(void **state)
{
	(void)state;
	assert_int_equal(tick_rate_choose(0.0005, 30 * US), 99);
	assert_int_equal(tick_rate_choose(TICK_RATE_SHARE, 1e9), 99);
	assert_int_equal(tick_rate_choose(0.1, 30 * US), TICK_RATE_FIRST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cheap),
		cmocka_unit_test(test_costly),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_lowest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
