/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "critical_path.h"
#include "report_sections.h"
#include <asm/unistd_64.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#include "path_scenario.h"

#define S     0x1 /* TASK_INTERRUPTIBLE */
#define D     0x2 /* TASK_UNINTERRUPTIBLE */
#define PREAD 17

static void test_waits_for_a_thread(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 10);
	create(&s, 1, 21, 20, 3);
	out_call(at(&s, 2), 20, S, __NR_futex);
	wake(at(&s, 6), 20, 21);
	in(at(&s, 7), 20, 0);
	scenario_finish(&s);
	expect_path(&s, 20, "AbbBBBaAAA");
	assert_int_equal(s.timeline->path.outside_ns, 0);
	assert_int_equal(s.timeline->path.track.ledger[STATE_RUNNABLE], 3 * NSEC_PER_MSEC);
	scenario_free(&s);
}

/* The sleeper's sleep does not count, but what its waker did before. */
static void test_chain_of_three(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 14);
	create(&s, 0, 21, 20, 0);
	create(&s, 0, 22, 20, 0);
	out_call(at(&s, 1), 20, S, __NR_futex);
	out_call(at(&s, 2), 21, S, __NR_futex);
	wake(at(&s, 7), 21, 22);
	in(at(&s, 7), 21, 1);
	wake(at(&s, 10), 20, 21);
	in(at(&s, 10), 20, 0);
	scenario_finish(&s);
	expect_path(&s, 20, "CCCCCCCBBBAAAA");
	scenario_free(&s);
}

/* What a timer has a thread do is not what another one waited for before it had to. */
static void test_back_to_the_sleeper(void **state)
{
	static const struct {
		int asleep_ms;	/* when thread 20 begins to wait for 21 */
		int naps[2][2]; /* of 21, from and to */
		const char *path;
	} cases[] = {
		/* 21 slept before 20 did. */
		{10, {{1, 9}}, "AAAAAAAAABBBAAAA"},
		/* Before and after. */
		{5, {{1, 9}}, "AAAAAbbbbBBBAAAA"},
		/* After: 20 waited for that. */
		{4, {{6, 9}}, "BBBBBBbbbBBBAAAA"},
		{4, {{1, 3}, {6, 9}}, "AAABBBbbbBBBAAAA"},
		{4, {{1, 2}}, "AABBBBBBBBBBAAAA"},
		/* Never. */
		{4, {}, "BBBBBBBBBBBBAAAA"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Scenario s;

		begin(&s, 16);
		create(&s, 0, 21, 20, 0);
		for (int ms = 1; ms < 12; ms++) {
			for (int nap = 0; nap < 2; nap++) {
				if (ms == cases[i].naps[nap][0])
					out_call(at(&s, ms), 21, S, __NR_nanosleep);
				if (ms != cases[i].naps[nap][1])
					continue;
				wake_by_irq(at(&s, ms), 21);
				in(at(&s, ms), 21, 1);
			}
			if (ms == cases[i].asleep_ms)
				out_call(at(&s, ms), 20, S, __NR_futex);
		}
		wake(at(&s, 12), 20, 21);
		in(at(&s, 12), 20, 0);
		scenario_finish(&s);
		print_message("%zu\n", i);
		expect_path(&s, 20, cases[i].path);
		scenario_free(&s);
	}
}

/* Through two wakers: the second one gives back to the first, which it woke. */
static void test_back_through_two(void **state)
{
	(void)state;
	for (int long_nap = 0; long_nap < 2; long_nap++) {
		Scenario s;

		begin(&s, 16);
		create(&s, 0, 21, 20, 0);
		create(&s, 0, 22, 20, 0);
		out_call(at(&s, 1), 22, S, __NR_nanosleep);
		if (!long_nap) {
			wake_by_irq(at(&s, 3), 22);
			in(at(&s, 3), 22, 2);
		}
		out_call(at(&s, 4), 20, S, __NR_futex);
		out_call(at(&s, 6), 21, S, __NR_futex);
		if (long_nap) {
			wake_by_irq(at(&s, 8), 22);
			in(at(&s, 8), 22, 2);
		}
		wake(at(&s, 10), 21, 22);
		in(at(&s, 10), 21, 1);
		wake(at(&s, 12), 20, 21);
		in(at(&s, 12), 20, 0);
		scenario_finish(&s);
		expect_path(&s, 20, long_nap ? "BBBBBBccCCBBAAAA" : "BBBCCCCCCCBBAAAA");
		scenario_free(&s);
	}
}

/* The path does not go to a thread that was not born yet, but to the one that waited for it. */
static void test_back_past_the_unborn(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 16);
	create(&s, 0, 21, 20, 0);
	out_call(at(&s, 1), 21, S, __NR_nanosleep);
	wake_by_irq(at(&s, 3), 21);
	in(at(&s, 3), 21, 1);
	create(&s, 4, 22, 20, 4);
	out_call(at(&s, 5), 22, S, __NR_futex);
	out_call(at(&s, 6), 20, S, __NR_futex);
	wake(at(&s, 10), 22, 21);
	in(at(&s, 10), 22, 2);
	wake(at(&s, 12), 20, 22);
	in(at(&s, 12), 20, 0);
	scenario_finish(&s);
	expect_path(&s, 20, "AAABBBBBBBCCAAAA");
	scenario_free(&s);
}

/* Nor to one that was asleep for something else. */
static void test_not_back_into_another_sleep(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 16);
	create(&s, 0, 21, 20, 0);
	out_call(at(&s, 1), 20, S, __NR_nanosleep);
	out_call(at(&s, 2), 21, S, __NR_nanosleep);
	wake_by_irq(at(&s, 3), 21);
	in(at(&s, 3), 21, 1);
	wake_by_irq(at(&s, 4), 20);
	in(at(&s, 4), 20, 0);
	out_call(at(&s, 5), 20, S, __NR_futex);
	wake(at(&s, 12), 20, 21);
	in(at(&s, 12), 20, 0);
	scenario_finish(&s);
	expect_path(&s, 20, "BBbBBBBBBBBBAAAA");
	scenario_free(&s);
}

/* Not out of a sleep for a disk, in a call or in a page fault. */
static void test_stays_on_the_disk(void **state)
{
	static const struct {
		uint8_t flags;
		int syscall;
		const char *path;
	} cases[] = {
		{0, __NR_nanosleep, "AAAAAAAAABBBAAAA"},
		{SWITCH_IOWAIT, PREAD, "BbbbbbbbbBBBAAAA"},
		{SWITCH_IOWAIT, -1, "BbbbbbbbbBBBAAAA"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Scenario s;

		begin(&s, 16);
		create(&s, 0, 21, 20, 0);
		s.next_out.h.flags = cases[i].flags;
		out_call(at(&s, 1), 21, D, cases[i].syscall);
		wake_by_irq(at(&s, 9), 21);
		in(at(&s, 9), 21, 1);
		out_call(at(&s, 10), 20, S, __NR_futex);
		wake(at(&s, 12), 20, 21);
		in(at(&s, 12), 20, 0);
		scenario_finish(&s);
		expect_path(&s, 20, cases[i].path);
		scenario_free(&s);
	}
}

/* Back to where it was still awake, if it was asleep for something else. */
static void test_back_to_before_its_sleep(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 16);
	create(&s, 0, 21, 20, 0);
	out_call(at(&s, 2), 21, S, __NR_nanosleep);
	out_call(at(&s, 5), 20, S, __NR_nanosleep);
	wake_by_irq(at(&s, 8), 21);
	in(at(&s, 8), 21, 1);
	wake_by_irq(at(&s, 9), 20);
	in(at(&s, 9), 20, 0);
	out_call(at(&s, 10), 20, S, __NR_futex);
	wake(at(&s, 12), 20, 21);
	in(at(&s, 12), 20, 0);
	scenario_finish(&s);
	expect_path(&s, 20, "AAAAAbbbBBBBAAAA");
	scenario_free(&s);
}

/*
 * Two that wait for each other by turns, whether or not the second one slept before: where the path
 * has come to is no sleeper any more.
 */
static void test_back_by_turns(void **state)
{
	(void)state;
	for (int naps = 0; naps < 2; naps++) {
		Scenario s;

		begin(&s, 16);
		create(&s, 0, 21, 20, 0);
		if (naps)
			out_call(at(&s, 1), 21, S, __NR_nanosleep);
		out_call(at(&s, 2), 20, S, __NR_nanosleep);
		if (naps) {
			wake_by_irq(at(&s, 3), 21);
			in(at(&s, 3), 21, 1);
		}
		out_call(at(&s, 4), 21, S, __NR_futex);
		wake_by_irq(at(&s, 7), 20);
		in(at(&s, 7), 20, 0);
		wake(at(&s, 8), 21, 20);
		in(at(&s, 8), 21, 1);
		out_call(at(&s, 10), 20, S, __NR_futex);
		wake(at(&s, 12), 20, 21);
		in(at(&s, 12), 20, 0);
		scenario_finish(&s);
		expect_path(&s, 20, naps ? "BbbBaaaABBBBAAAA" : "BBBBaaaABBBBAAAA");
		scenario_free(&s);
	}
}

/* Not to one that slept at its end, but waited for that thread by way of another alone. */
static void test_not_back_to_one_behind(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 16);
	create(&s, 0, 21, 20, 0);
	create(&s, 0, 22, 20, 0);
	out_call(at(&s, 1), 21, S, __NR_futex);
	out_call(at(&s, 2), 22, S, __NR_nanosleep);
	out_call(at(&s, 5), 20, S, __NR_nanosleep);
	wake_by_irq(at(&s, 9), 22);
	in(at(&s, 9), 22, 2);
	wake_by_irq(at(&s, 10), 20);
	in(at(&s, 10), 20, 0);
	out_call(at(&s, 10), 20, S, __NR_futex);
	wake(at(&s, 11), 21, 22);
	in(at(&s, 11), 21, 1);
	wake(at(&s, 12), 20, 21);
	in(at(&s, 12), 20, 0);
	scenario_finish(&s);
	expect_path(&s, 20, "CCcccccccCCBAAAA");
	scenario_free(&s);
}

/*
 * The path goes back to a thread that then sleeps on its own: it does not wait for the later one
 * yet.
 */
static void test_back_for_good(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 16);
	create(&s, 0, 21, 20, 0);
	create(&s, 0, 22, 20, 0);
	out_call(at(&s, 1), 20, S, __NR_nanosleep);
	out_call(at(&s, 4), 21, S, __NR_nanosleep);
	wake_by_irq(at(&s, 5), 20);
	in(at(&s, 5), 20, 0);
	out_call(at(&s, 6), 22, S, __NR_nanosleep);
	wake_by_irq(at(&s, 9), 22);
	in(at(&s, 9), 22, 2);
	wake_by_irq(at(&s, 10), 21);
	in(at(&s, 10), 21, 1);
	out_call(at(&s, 11), 21, S, __NR_futex);
	out_call(at(&s, 11), 20, S, __NR_futex);
	wake(at(&s, 12), 21, 22);
	in(at(&s, 12), 21, 1);
	wake(at(&s, 13), 20, 21);
	in(at(&s, 13), 20, 0);
	scenario_finish(&s);
	expect_path(&s, 20, "AaaaaAAAACCCBAAA");
	scenario_free(&s);
}

/* If a thread waits during a whole sleep, the sleep is on the path. */
static void test_waited_for_throughout(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 16);
	create(&s, 0, 21, 20, 0);
	create(&s, 0, 22, 20, 0);
	out_call(at(&s, 4), 21, S, __NR_futex);
	out_call(at(&s, 6), 22, S, __NR_nanosleep);
	wake_by_irq(at(&s, 9), 22);
	in(at(&s, 9), 22, 2);
	/* Thread 20 is awake when the sleep ends, but 21, for which it waits later, is not. */
	out_call(at(&s, 10), 20, S, __NR_futex);
	wake(at(&s, 11), 21, 22);
	in(at(&s, 11), 21, 1);
	wake(at(&s, 12), 20, 21);
	in(at(&s, 12), 20, 0);
	scenario_finish(&s);
	expect_path(&s, 20, "CCCCCCcccCCBAAAA");
	scenario_free(&s);
}

/* More threads than are remembered: the one whose end is explained is not forgotten. */
static void test_back_through_many(void **state)
{
	enum { LAST = FIRST + 70, WAKES = 30 };
	char wanted[SCENARIO_LENGTH + 1] = {};
	Scenario s;

	(void)state;
	begin(&s, 110);
	for (uint32_t tid = FIRST + 1; tid <= LAST; tid++)
		create(&s, 0, tid, FIRST, 0);
	/* Until the last one is awake again they sleep on their own. */
	for (uint32_t tid = FIRST + 1; tid < LAST; tid++)
		out_call(at(&s, 1), tid, S, __NR_nanosleep);
	out_call(at(&s, 2), LAST, S, __NR_nanosleep);
	wake_by_irq(at(&s, 20), LAST);
	in(at(&s, 20), LAST, 1);
	for (uint32_t tid = FIRST + 1; tid < LAST; tid++)
		wake_by_irq(at(&s, 21), tid);
	for (uint32_t tid = FIRST + 1; tid < LAST; tid++)
		in(at(&s, 22), tid, 1);
	for (uint32_t tid = FIRST + 1; tid < LAST; tid++)
		out_call(at(&s, 23), tid, S, __NR_futex);
	out_call(at(&s, 25), FIRST, S, __NR_futex);
	memset(wanted, 'A', 110);
	memset(wanted + 20, 'A' + LAST - FIRST, WAKES - 20);
	for (int ms = WAKES; ms < WAKES + LAST - FIRST; ms++) {
		uint32_t waker = LAST - (ms - WAKES);

		wake(at(&s, ms), waker - 1, waker);
		in(at(&s, ms), waker - 1, 1);
		wanted[ms] = 'A' + waker - 1 - FIRST;
	}
	scenario_finish(&s);
	expect_path(&s, FIRST, wanted);
	scenario_free(&s);
}

/* A creator's sleep is that of a waker. */
static void test_back_from_a_creator(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 16);
	create(&s, 0, 21, 20, 0);
	out_call(at(&s, 1), 21, S, __NR_nanosleep);
	out_call(at(&s, 4), 20, S, __NR_futex);
	wake_by_irq(at(&s, 7), 21);
	in(at(&s, 7), 21, 1);
	create(&s, 8, 22, 21, 8);
	wake(at(&s, 12), 20, 22);
	in(at(&s, 12), 20, 0);
	scenario_finish(&s);
	expect_path(&s, 20, "AAAAbbbBCCCCAAAA");
	scenario_free(&s);
}

static void test_ended_from_outside(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 12);
	non_target(at(&s, 0), 99, "other");
	out_call(at(&s, 2), 20, S, __NR_nanosleep);
	wake_by_irq(at(&s, 4), 20);
	in(at(&s, 4), 20, 0);
	out_call(at(&s, 6), 20, S, __NR_read);
	wake(at(&s, 9), 20, 99);
	in(at(&s, 9), 20, 0);
	scenario_finish(&s);
	expect_path(&s, 20, "AAaaAAaaaAAA");
	/* A timer is no loss: the sleep is what it took. */
	assert_int_equal(s.timeline->path.outside_ns, 3 * NSEC_PER_MSEC);
	assert_int_equal(s.timeline->path.unknown_waker_ns, 0);
	scenario_free(&s);
}

/* No thread has ended a sleep that lasts to the end. */
static void test_asleep_at_the_end(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 10);
	out_call(at(&s, 4), 20, S, __NR_epoll_wait);
	scenario_finish(&s);
	expect_path(&s, 20, "AAAAaaaaaa");
	assert_int_equal(s.timeline->path.open_ns, 6 * NSEC_PER_MSEC);
	assert_int_equal(s.timeline->path.unseen_ns, 0);
	scenario_free(&s);
}

static void test_over_processes(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 10);
	birth(at(&s, 2), 21, 21);
	wake_new(at(&s, 2), 21, 20);
	in(at(&s, 3), 21, 1);
	out_call(at(&s, 4), 20, S, __NR_wait4);
	wake(at(&s, 8), 20, 21);
	ends(at(&s, 8), 21, 21, 2, 5 * NSEC_PER_MSEC);
	in(at(&s, 8), 20, 0);
	scenario_finish(&s);
	expect_path(&s, 20, "AAbBBBBBAA");
	scenario_free(&s);
}

static void test_another_thread(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 10);
	create(&s, 1, 21, 20, 1);
	out_call(at(&s, 4), 21, S, __NR_futex);
	wake(at(&s, 6), 21, 20);
	in(at(&s, 6), 21, 1);
	exiting(at(&s, 8), 21, FIRST, 0, 0);
	dead(at(&s, 8), 21);
	scenario_finish(&s);
	expect_path(&s, 21, "AAAAAABB..");
	assert_int_equal(critical_path_thread(s.timeline, 4711), THREAD_NONE);
	/* An attached process has a path if it ended; a whole system without a command has none.
	 */
	s.timeline->command_thread = THREAD_NONE;
	assert_int_equal(critical_path_thread(s.timeline, 0), THREAD_NONE);
	s.timeline->processes.items[0].exited_in_window = true;
	assert_int_equal(critical_path_thread(s.timeline, 0), THREAD_NONE);
	s.timeline->processes.items[0].born_in_window = false;
	assert_int_not_equal(critical_path_thread(s.timeline, 0), THREAD_NONE);
	/* The end of a child of a server that goes on has no path. */
	s.timeline->processes.items[0].parent = 0;
	assert_int_equal(critical_path_thread(s.timeline, 0), THREAD_NONE);
	s.timeline->processes.items[0].parent = THREAD_NONE;
	s.timeline->whole_system = true;
	assert_int_equal(critical_path_thread(s.timeline, 0), THREAD_NONE);
	assert_int_not_equal(critical_path_thread(s.timeline, 21 + 1000), THREAD_NONE);
	scenario_free(&s);
}

/* Lost time stays on the path, and is reported. */
static void test_lost_on_the_way(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 12);
	out_call(at(&s, 3), 20, S, __NR_futex);
	loss(at(&s, 8), REC_WAKING, 5, 7);
	in(at(&s, 8), 20, 0);
	scenario_finish(&s);
	expect_path(&s, 20, "AAAaaaaaAAAA");
	assert_int_equal(s.timeline->path.lost_ns, 3 * NSEC_PER_MSEC);
	assert_int_equal(s.timeline->path.unknown_waker_ns, 2 * NSEC_PER_MSEC);
	scenario_free(&s);
}

/* The thread's first switch-in is lost, but its creator is known. */
static void test_hidden_beginning(void **state)
{
	(void)state;
	for (int by_record = 0; by_record < 2; by_record++) {
		Scenario s;

		begin(&s, 12);
		s.next_creator = by_record ? 20 : 0;
		birth(at(&s, 2), 21, FIRST);
		wake_new(by_record ? lost_at(&s, 2) : at(&s, 2), 21, 20);
		in(lost_at(&s, 3), 21, 1);
		out_call(at(&s, 3), 20, S, __NR_futex);
		out_preempted(at(&s, 5), 21);
		in(at(&s, 5), 21, 1);
		wake(at(&s, 8), 20, 21);
		in(at(&s, 8), 20, 0);
		scenario_finish(&s);
		expect_path(&s, 20, "AAbbbBBBAAAA");
		assert_int_equal(s.timeline->path.lost_ns, 3 * NSEC_PER_MSEC);
		assert_int_equal(s.timeline->path.unseen_ns, 0);
		expect_line(&s, "critical path: 12.000 ms, ending at");
		scenario_free(&s);
	}
}

/* The shares of a path that does not reach back to the window's start are not those of the window.
 */
static void test_part_of_the_window(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 10);
	birth(at(&s, 2), 21, FIRST);
	wake_new(lost_at(&s, 2), 21, 20);
	in(at(&s, 3), 21, 1);
	scenario_finish(&s);
	expect_path(&s, 21, "..bBBBBBBB");
	expect_line(&s, "critical path: 8.000 ms (2.000 ms, 20.0 % of the window, not on it), "
			"ending at");
	scenario_free(&s);
}

static void test_ticks_come_along(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 10);
	create(&s, 0, 21, 20, 0);
	out_call(at(&s, 1), 20, S, __NR_futex);
	tick(at(&s, 3), 21, 1);
	tick(at(&s, 5), 21, 1);
	wake(at(&s, 6), 20, 21);
	in(at(&s, 6), 20, 0);
	tick(at(&s, 7), 21, 1);
	tick(at(&s, 8), 20, 0);
	scenario_finish(&s);
	expect_path(&s, 20, "BBBBBBAAAA");
	assert_int_equal(s.timeline->path.track.ticks.count, 3);
	assert_int_equal(s.timeline->threads.items[s.timeline->path.track.ticks.items[0].owner].tid,
			 21);
	assert_int_equal(s.timeline->threads.items[s.timeline->path.track.ticks.items[2].owner].tid,
			 20);
	scenario_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_for_a_thread),
		cmocka_unit_test(test_chain_of_three),
		cmocka_unit_test(test_back_to_the_sleeper),
		cmocka_unit_test(test_back_through_two),
		cmocka_unit_test(test_back_past_the_unborn),
		cmocka_unit_test(test_not_back_into_another_sleep),
		cmocka_unit_test(test_back_by_turns),
		cmocka_unit_test(test_stays_on_the_disk),
		cmocka_unit_test(test_back_to_before_its_sleep),
		cmocka_unit_test(test_not_back_to_one_behind),
		cmocka_unit_test(test_back_for_good),
		cmocka_unit_test(test_waited_for_throughout),
		cmocka_unit_test(test_back_through_many),
		cmocka_unit_test(test_back_from_a_creator),
		cmocka_unit_test(test_ended_from_outside),
		cmocka_unit_test(test_over_processes),
		cmocka_unit_test(test_asleep_at_the_end),
		cmocka_unit_test(test_another_thread),
		cmocka_unit_test(test_lost_on_the_way),
		cmocka_unit_test(test_hidden_beginning),
		cmocka_unit_test(test_part_of_the_window),
		cmocka_unit_test(test_ticks_come_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
