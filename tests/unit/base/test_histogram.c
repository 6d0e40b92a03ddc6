/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "histogram.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT 5000

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void assert_close(uint64_t measured, uint64_t truth)
{
	assert_true(measured >= truth);
	assert_true(measured - truth <= truth / HISTOGRAM_STEPS);
}

/* Values of every size are compared with sorted ones. */
static void test_quantiles(void **state)
{
	static uint64_t values[COUNT];
	static const unsigned permilles[] = {1, 10, 250, 500, 900, 990, 999};
	Histogram delays = {};

	(void)state;
	srandom(7);
	for (size_t i = 0; i < COUNT; i++) {
		uint64_t any = (uint64_t)random() << 33 ^ (uint64_t)random() << 13 ^ random();

		values[i] = any >> random() % 64;
		histogram_add(&delays, values[i]);
	}
	qsort(values, COUNT, sizeof(*values), compare);
	for (size_t i = 0; i < sizeof(permilles) / sizeof(*permilles); i++)
		assert_close(histogram_quantile(&delays, permilles[i]),
			     values[COUNT * permilles[i] / 1000 - 1]);
	assert_int_equal(histogram_quantile(&delays, 1000), values[COUNT - 1]);
	assert_int_equal(delays.max, values[COUNT - 1]);
	assert_int_equal(delays.count, COUNT);
}

static void test_ends(void **state)
{
	Histogram none = {}, one = {}, small = {}, large = {};

	(void)state;
	assert_int_equal(histogram_quantile(&none, 500), 0);
	histogram_add(&one, 123456789);
	assert_int_equal(histogram_quantile(&one, 1), 123456789);
	for (uint64_t ns = 0; ns < 2 * HISTOGRAM_STEPS; ns++)
		histogram_add(&small, ns); /* each has a step of its own */
	for (unsigned i = 1; i <= 2 * HISTOGRAM_STEPS; i++)
		assert_int_equal(histogram_quantile(&small, (i * 1000 + 31) / 32 - 1), i - 1);
	histogram_add(&large, UINT64_MAX);
	assert_int_equal(histogram_quantile(&large, 500), UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
