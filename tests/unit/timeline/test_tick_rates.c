/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a capture says of the rate of its ticks. */
#include "tick_rates.h"
#include "timeline_fixture.h"
#include <setjmp.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define MS NSEC_PER_MSEC

/* Captures that do not say it, and those of older versions. */
static void test_old(void **state)
{
	Timeline *t = fixture_new(1000 * MS);
	TickRates rates = tick_rates_of(t);

	(void)state;
	assert_int_equal(rates.count, 0);
	assert_int_equal(tick_rates_highest(&rates, t), 0);
	fixture_meta(t, "frequency", "499");
	rates = tick_rates_of(t);
	assert_int_equal(rates.count, 1);
	assert_int_equal(tick_rates_highest(&rates, t), 499);
	assert_int_equal(rates.interrupt_ns, 0);
	assert_int_equal(rates.ticks, 0);
	assert_true(rates.share == 0);
	assert_int_equal(tick_rates_interrupts_ns(&rates, t), 0);
	timeline_free(t);
}

static void test_changes(void **state)
{
	Timeline *t = fixture_new(1000 * MS);
	uint64_t change_ns = t->start_ns + 400 * MS;
	_cleanup_free_ char *changes =
		xasprintf("%ju:249,%ju:99", (uintmax_t)change_ns, (uintmax_t)t->end_ns);
	TickRates rates;

	(void)state;
	fixture_meta(t, "frequency", "999");
	fixture_meta(t, "frequency_share", "0.01");
	fixture_meta(t, "frequency_changes", changes);
	fixture_meta(t, "tick_interrupt_ns", "20000");
	fixture_meta(t, "ticks", "1234");
	rates = tick_rates_of(t);
	assert_int_equal(rates.count, 3);
	assert_int_equal(rates.list[0].hz, 999);
	assert_int_equal(rates.list[1].from_ns, change_ns);
	assert_int_equal(rates.list[1].hz, 249);
	assert_int_equal(rates.list[2].hz, 99);
	assert_true(rates.share == 0.01);
	assert_int_equal(rates.interrupt_ns, 20000);
	assert_int_equal(rates.ticks, 1234);
	assert_int_equal(tick_rates_highest(&rates, t), 999);
	/* A part of the recording after the change. */
	t->start_ns = change_ns;
	assert_int_equal(tick_rates_highest(&rates, t), 249);
	timeline_free(t);
}

/* A capture may hold anything. */
static void test_malformed(void **state)
{
	static const char *const changes[] = {
		"", "x", "5", "5:", "5:0", "5:99999999999", "9:1,5:2", ":::", "5:7 9:8", "5:7,"};
	static const size_t counts[] = {1, 1, 1, 1, 1, 1, 2, 1, 2, 2};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		Timeline *t = fixture_new(1000 * MS);

		fixture_meta(t, "frequency", "999");
		fixture_meta(t, "frequency_changes", changes[i]);
		fixture_meta(t, "frequency_share", "-3");
		fixture_meta(t, "tick_interrupt_ns", "9999999999999");
		TickRates rates = tick_rates_of(t);
		assert_int_equal(rates.count, counts[i]);
		assert_true(rates.share == 0);
		assert_int_equal(rates.interrupt_ns, 0);
		timeline_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_old),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
