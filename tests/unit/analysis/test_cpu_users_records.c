/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A wait for a CPU, divided among what had that CPU by the records of switches. */
#include "cpu_users_fixture.h"
#include "scenario.h"
#include "test_tools.h"
#include <asm/unistd_64.h>
#include <setjmp.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define MS NSEC_PER_MSEC
#define S  0x1 /* TASK_INTERRUPTIBLE */

static void running_from_start(Scenario *s, uint32_t tid, const char *comm)
{
	described(at(s, 0), tid, 10, comm);
	snapshot(at(s, 0), tid, SNAPSHOT_ON_CPU, 0, -1);
}

/* The thread's wait at that time. */
static void expect_users(const Scenario *s, uint32_t tid, int ms, const char *expected)
{
	const Thread *thread = scenario_thread(s, tid, 0);
	size_t i = 0;
	char *text;

	while (interval_end(thread, i) <= scenario_ns(ms))
		i++;
	text = cpu_users_of(s->timeline, thread, i);
	assert_string_equal(text, expected);
	free(text);
}

/*
 * Switches between non-targets are recorded only while a recorded thread waits for the CPU. What
 * had the CPU before the first of them is known since all switches have records, not since the last
 * record.
 */
static void test_others(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 12, true);
	running_from_start(&s, 11, "victim");
	non_target(at(&s, 0), 500, "first");
	non_target(at(&s, 0), 501, "second");
	non_target(at(&s, 0), 503, "last");
	out(at(&s, 1), 11, S);
	wake_by_irq(at(&s, 4), 11);
	others_switch(at(&s, 6), 500, 501, 0, 2);
	others_switch(at(&s, 7), 501, 500, 0, 3);
	/* A switch is missing: the task that has the CPU now has not had it since 7 ms. */
	others_switch(at(&s, 9), 502, 503, 0, 5);
	s.ran_before = 503;
	in(at(&s, 10), 11, 0);
	out(at(&s, 11), 11, S);
	scenario_finish(&s);
	expect_users(
		&s, 11, 5,
		"not seen 3.000 ms, first 2.000 ms, second 1.000 ms, last for an unknown time");
	scenario_free(&s);
}

/* A woken thread waited for the CPU that it got. */
static void test_woken(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 12, true);
	running_from_start(&s, 10, "hog");
	described(at(&s, 0), 11, 10, "victim");
	snapshot(at(&s, 0), 11, 0, S, __NR_read);
	wake(at(&s, 2), 11, 10);
	out(at(&s, 6), 10, S);
	s.ran_before = 0;
	in(at(&s, 7), 11, 0);
	scenario_finish(&s);
	expect_users(&s, 11, 3, "hog 4.000 ms, not seen 1.000 ms, CPU idle for an unknown time");
	scenario_free(&s);
}

static void test_moved_while_preempted(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 12, true);
	running_from_start(&s, 10, "victim");
	non_target(at(&s, 0), 98, "builder");
	s.next_out.next_tid = 98;
	out_preempted(at(&s, 2), 10);
	in(at(&s, 4), 10, 3);
	s.next_out.next_tid = 98;
	out_preempted(at(&s, 6), 10); /* on CPU 0, as all switch-outs of the scenario */
	in(at(&s, 7), 10, 0);
	scenario_finish(&s);
	expect_users(&s, 10, 3, "migrated 2.000 ms, builder for an unknown time");
	expect_users(&s, 10, 6, "not seen 1.000 ms, builder for an unknown time");
	scenario_free(&s);
}

/* If a wait did not end, the last snapshot has the thread's queue. */
static void still_queued(Scenario *s, uint16_t cpu, bool with_cpu)
{
	scenario_begin(s, 12, true);
	if (with_cpu)
		meta(s, "cpus_online=0-3");
	running_from_start(s, 10, "hog");
	s->snapshot_cpu = cpu;
	running_from_start(s, 11, "other hog");
	s->snapshot_cpu = 0;
	described(at(s, 0), 12, 10, "victim");
	snapshot(at(s, 0), 12, 0, S, __NR_read);
	described(at(s, 0), 13, 10, "preempted");
	snapshot(at(s, 0), 13, SNAPSHOT_QUEUED, 0, -1);
	wake(at(s, 2), 12, 10);
	s->snapshot_cpu = cpu;
	snapshot(at(s, 12), 12, SNAPSHOT_END | SNAPSHOT_QUEUED, 0, -1);
	snapshot(at(s, 12), 13, SNAPSHOT_END | SNAPSHOT_QUEUED, 0, -1);
	scenario_finish(s);
}

static void test_still_waiting(void **state)
{
	(void)state;
	Scenario s;

	still_queued(&s, 2, true);
	expect_users(&s, 12, 3, "other hog 10.000 ms");
	expect_users(&s, 13, 3, "migrated 12.000 ms");
	scenario_free(&s);
	still_queued(&s, 2, false);
	expect_users(&s, 12, 3, "not seen 10.000 ms");
	expect_users(&s, 13, 3, "not seen 12.000 ms");
	scenario_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_woken),
		cmocka_unit_test(test_moved_while_preempted),
		cmocka_unit_test(test_still_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
