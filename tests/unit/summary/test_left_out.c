/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "left_out.h"
#include "print_report.h"
#include "test_tools.h"
#include "timeline_fixture.h"

#define MS NSEC_PER_MSEC

/* Half a second of running, and three waits, of which two were left out. */
static Timeline *make_timeline(void)
{
	Timeline *t = fixture_new(1000 * MS);
	uint32_t process = fixture_process(t, 7, "app", 0, 1000 * MS);
	uint32_t thread = fixture_thread(t, process, 7, "app", 0, 1000 * MS);

	t->cost_known = true;
	fixture_interval(t, thread, 0, STATE_RUNNING, REASON_NONE);
	fixture_interval(t, thread, 500 * MS, STATE_BLOCKED, REASON_PIPE_READ)->syscall = 0;
	fixture_interval(t, thread, 600 * MS, STATE_BLOCKED, REASON_PIPE_READ)->syscall = 0;
	fixture_interval(t, thread, 750 * MS, STATE_RUNNABLE, REASON_PREEMPTED);
	fixture_finish(t);
	return t;
}

static void leave_out(Timeline *t)
{
	Thread *thread = &t->threads.items[0];

	fixture_meta(t, "budget", "0.02");
	t->budget = (struct budget_counts){.switch_outs = 3, .unsampled = 2};
	thread->intervals.items[2].unsampled = true;
	thread->intervals.items[2].user_stack = fixture_stack(t, 0x1000, true);
	thread->intervals.items[3].unsampled = true;
}

static void test_sums(void **state)
{
	(void)state;
	Timeline *t = make_timeline();
	_cleanup_free_ char *text = NULL, *where = NULL;
	LeftOut left_out;

	assert_false(left_out_find(t, &left_out));
	leave_out(t);
	assert_true(left_out_find(t, &left_out));
	text = left_out_text(&left_out);
	assert_string_equal(text,
			    "--budget 2%: 2 of 3 switch-outs not sampled (waits of 400.000 ms "
			    "of 500.000 ms); shown like others at their place, except 1 "
			    "(250.000 ms)");
	assert_int_equal(left_out.list.count, 2);
	where = left_out_place_text(&left_out.list.items[0]);
	assert_string_equal(where, "preempted");
	assert_int_equal(left_out.list.items[0].ns, 250 * MS);
	free(where);
	where = left_out_place_text(&left_out.list.items[1]);
	assert_string_equal(where, "in read");
	assert_int_equal(left_out.list.items[1].switch_outs, 2);
	assert_int_equal(left_out.list.items[1].unsampled, 1);
	left_out_free(&left_out);
	timeline_free(t);
}

static char *warning_at(Timeline *t, uint64_t cost_ns)
{
	t->threads.items[0].recording = (RecordingCost){.switches_ns = cost_ns};
	return left_out_cost_warning(t);
}

/* A damaged capture has a budget that cannot be: it counts as none. */
static void test_impossible_budget(void **state)
{
	static const char *const texts[] = {"inf", "1e999", "nan", "-1", "0", "2", "", "x"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		Timeline *t = make_timeline();
		LeftOut left_out;

		fixture_meta(t, "budget", texts[i]);
		assert_false(left_out_find(t, &left_out));
		left_out_free(&left_out);
		timeline_free(t);
	}
}

/* Above 5 % of the running time the option is named; with a budget, above that. */
static void test_warning(void **state)
{
	(void)state;
	Timeline *t = make_timeline();
	_cleanup_free_ char *large = NULL, *exceeds = NULL, *interrupts = NULL;

	assert_null(warning_at(t, 24 * MS));
	large = warning_at(t, 26 * MS);
	assert_non_null(strstr(large, "5.2 % of running time"));
	assert_non_null(strstr(large, "--budget 2% limits it"));
	check_contains(print_summary, t, "--budget 2% limits it");
	check_contains(print_full, t, "--budget 2% limits it");
	leave_out(t);
	assert_null(warning_at(t, 10 * MS));
	check_lacks(print_summary, t, "limits it");
	check_contains(print_summary, t, "--budget 2%: 2 of 3 switch-outs not sampled");
	exceeds = warning_at(t, 12 * MS);
	assert_non_null(strstr(exceeds, "exceeds --budget 2%"));
	t->cost_known = false;
	assert_null(warning_at(t, 100 * MS));
	t->cost_known = true;
	for (uint64_t i = 0; i < 100; i++)
		fixture_tick(t, 0, i * MS, true);
	fixture_meta(t, "frequency", "999");
	fixture_meta(t, "tick_interrupt_ns", "20000");
	interrupts = warning_at(t, 10 * MS);
	assert_non_null(strstr(interrupts, "with the interrupts of ticks it exceeds --budget 2%"));
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_impossible_budget),
		cmocka_unit_test(test_warning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
