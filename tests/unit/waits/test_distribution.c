/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "distribution.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

static void test_of_none(void **state)
{
	Distribution none = {};

	(void)state;
	assert_int_equal(distribution_at(&none, 0.5), 0);
	assert_int_equal(distribution_mean(&none), 0);
	distribution_free(&none);
}

/* Of 1 to 100, in no order, the nth percentile is n. */
static void test_percentiles(void **state)
{
	Distribution hundred = {}, twice = {};

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		distribution_add(&hundred, i * 37 % 100 + 1);
	assert_int_equal(hundred.total_ns, 5050);
	assert_int_equal(distribution_mean(&hundred), 50);
	assert_int_equal(distribution_at(&hundred, 0), 1);
	assert_int_equal(distribution_at(&hundred, 0.25), 25);
	assert_int_equal(distribution_at(&hundred, 0.5), 50);
	assert_int_equal(distribution_at(&hundred, 0.99), 99);
	assert_int_equal(distribution_at(&hundred, 1), 100);
	distribution_add(&hundred, 1000);
	assert_int_equal(distribution_at(&hundred, 1), 1000);
	distribution_add_all(&twice, &hundred);
	distribution_add_all(&twice, &hundred);
	assert_int_equal(twice.ns.count, 202);
	assert_int_equal(twice.total_ns, 2 * hundred.total_ns);
	distribution_free(&hundred);
	distribution_free(&twice);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_none),
		cmocka_unit_test(test_percentiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
