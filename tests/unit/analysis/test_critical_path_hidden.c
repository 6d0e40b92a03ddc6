/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When there is no path, and why. */
#include "critical_path.h"
#include <asm/unistd_64.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#include "path_scenario.h"

#define S 0x1 /* TASK_INTERRUPTIBLE */

/* A server's main thread waits for requests, so its path has no meaning. */
static void test_of_a_server(void **state)
{
	static const struct {
		int from_ms;
		int call;
		bool by_irq, is_hidden;
	} cases[] = {
		{1, __NR_rt_sigsuspend, true, true},   {1, __NR_accept, true, true},
		{8, __NR_rt_sigsuspend, true, false},  {1, __NR_futex, true, false},
		{1, __NR_rt_sigsuspend, false, false}, {1, __NR_nanosleep, true, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Scenario s;

		print_message("%zu\n", i);
		begin(&s, 40);
		create(&s, 0, 21, 20, 0);
		out_call(at(&s, cases[i].from_ms), 20, S, cases[i].call);
		if (cases[i].by_irq)
			wake_by_irq(at(&s, 39), 20);
		else
			wake(at(&s, 39), 20, 21);
		in(at(&s, 39), 20, 0);
		scenario_finish(&s);
		critical_path_find(s.timeline, critical_path_thread(s.timeline, 20 + 1000));
		critical_path_hide(s.timeline);
		assert_int_equal(s.timeline->path.hidden != REASON_NONE, cases[i].is_hidden);
		assert_int_equal(timeline_track_count(s.timeline), 2 + !cases[i].is_hidden);
		expect_line(&s, cases[i].is_hidden ? "not shown: 95.0 % of it is" : "ending at");
		scenario_free(&s);
	}
}

/* `-a -- sleep 10`: the command sets the window. With less of a system, sleep is what it did. */
static void test_of_a_window(void **state)
{
	static const struct {
		int from_ms, call;
		bool of_system, is_hidden;
	} cases[] = {
		{1, __NR_nanosleep, true, true},   {1, __NR_clock_nanosleep, true, true},
		{1, __NR_nanosleep, false, false}, {8, __NR_nanosleep, true, false},
		{1, __NR_futex, true, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Scenario s;

		print_message("%zu\n", i);
		begin(&s, 40);
		out_call(at(&s, cases[i].from_ms), 20, S, cases[i].call);
		wake_by_irq(at(&s, 39), 20);
		in(at(&s, 39), 20, 0);
		scenario_finish(&s);
		s.timeline->whole_system = cases[i].of_system;
		critical_path_find(s.timeline, critical_path_thread(s.timeline, 20 + 1000));
		critical_path_hide(s.timeline);
		assert_int_equal(s.timeline->path.hidden != REASON_NONE, cases[i].is_hidden);
		expect_line(&s,
			    cases[i].is_hidden ? "in [sleep]; --critical-path=TID" : "ending at");
		scenario_free(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_a_server),
		cmocka_unit_test(test_of_a_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
