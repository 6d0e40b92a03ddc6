/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which gaps are the event's: simulated slices. */
#include "interrupt_cost.h"
#include "test_tools.h"

#define PERIOD_NS 100000
#define TICKS	  9 /* of the event in a slice */
#define SLICES	  20

/* A slice with ticks of tick_ns (0: none) and other gaps of other_ns. */
static void add_slice(InterruptCost *cost, uint32_t tick_ns, size_t others, uint32_t other_ns)
{
	InterruptGap gaps[100];
	uint32_t phase = random_below(PERIOD_NS);
	size_t count = 0;

	for (size_t i = 0; i < TICKS && tick_ns; i++)
		gaps[count++] = (InterruptGap){i * PERIOD_NS + phase + random_below(3000),
					       tick_ns + random_below(tick_ns / 10)};
	for (size_t i = 0; i < others; i++)
		gaps[count++] = (InterruptGap){random_below(10 * PERIOD_NS), other_ns};
	interrupt_cost_add(cost, gaps, count);
}

static void expect_cost(InterruptCost *cost, uint64_t least_ns, uint64_t most_ns)
{
	expect_between(interrupt_cost_ns(cost), least_ns, most_ns);
	interrupt_cost_free(cost);
}

static void test_quiet(void **state)
{
	InterruptCost cost = {};

	(void)state;
	for (int i = 0; i < SLICES; i++)
		add_slice(&cost, 20000, 0, 0);
	expect_cost(&cost, 20000, 22000);
}

/* As many short gaps, or as many long ones, are of other causes. */
static void test_busy(void **state)
{
	InterruptCost cost = {};

	(void)state;
	for (int i = 0; i < SLICES; i++)
		add_slice(&cost, 20000, TICKS, 500);
	expect_cost(&cost, 20000, 22000);
	for (int i = 0; i < SLICES; i++)
		add_slice(&cost, 20000, TICKS, 80000);
	expect_cost(&cost, 20000, 22500);
}

/* Gaps at any time are not the event's. */
static void test_not_seen(void **state)
{
	InterruptCost cost = {};

	(void)state;
	for (int i = 0; i < SLICES; i++)
		add_slice(&cost, 0, TICKS, 20000);
	assert_int_equal(interrupt_cost_ns(&cost), 0);
	interrupt_cost_free(&cost);
	cost = (InterruptCost){};
	for (int i = 0; i < SLICES; i++)
		add_slice(&cost, 0, 0, 0);
	assert_int_equal(interrupt_cost_ns(&cost), 0);
	interrupt_cost_free(&cost);
}

/* A few ticks are no measurement. */
static void test_too_few(void **state)
{
	InterruptCost cost = {};

	(void)state;
	add_slice(&cost, 20000, 0, 0);
	add_slice(&cost, 20000, 0, 0);
	assert_int_equal(interrupt_cost_ns(&cost), 0);
	interrupt_cost_free(&cost);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quiet),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_not_seen),
		cmocka_unit_test(test_too_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
