/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thread numbers that change hands: used again, or taken over by exec. */
#include "scenario.h"
#include <asm/unistd_64.h>
#include <setjmp.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define S 0x1 /* TASK_INTERRUPTIBLE */
#define D 0x2 /* TASK_UNINTERRUPTIBLE */

/* A thread that runs from the start of the window (born before, or known by a snapshot). */
static void running_from_start(Scenario *s, uint32_t tid)
{
	described(at(s, 0), tid, 10, "worker");
	snapshot(at(s, 0), tid, SNAPSHOT_ON_CPU, 0, -1);
}

static void test_pid_reuse(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 14, false);
	birth(at(&s, 0), 20, 20);
	wake_new(at(&s, 0), 20, 10);
	in(at(&s, 1), 20, 0);
	exiting(at(&s, 3), 20, 20, 256, EXIT_GROUP_DEAD);
	dead(at(&s, 4), 20);
	birth(at(&s, 6), 20, 20);
	wake_new(at(&s, 6), 20, 10);
	in(at(&s, 7), 20, 0);
	out(at(&s, 9), 20, S);
	scenario_finish(&s);
	expect_track_of(&s, 20, 0, "rRRR..........");
	expect_track_of(&s, 20, 1, "......rRRBBBBB");
	assert_int_equal(s.timeline->processes.count, 2);
	assert_true(s.timeline->processes.items[0].exited_in_window);
	assert_false(s.timeline->processes.items[1].exited_in_window);
	assert_int_equal(s.timeline->processes.items[0].exit_code, 256);
	scenario_free(&s);
}

static void test_pid_reuse_end_unseen(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 14, false);
	birth(at(&s, 0), 20, 20);
	in(at(&s, 1), 20, 0);
	out(lost_at(&s, 3), 20, S);
	loss(at(&s, 5), REC_SWITCH, 3, 3);
	birth(at(&s, 6), 20, 20);
	in(at(&s, 7), 20, 0);
	scenario_finish(&s);
	expect_track_of(&s, 20, 0, "rRR???........");
	expect_track_of(&s, 20, 1, "......rRRRRRRR");
	assert_int_equal(s.timeline->missed_switches, 0);
	scenario_free(&s);
}

/* The number is free, and taken, before its former owner's last switches. */
static void test_pid_reuse_while_dying(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 14, false);
	described(at(&s, 0), 20, 20, "old");
	scenario_set_seq(&s, 20, 700);
	snapshot(at(&s, 0), 20, SNAPSHOT_ON_CPU, 0, -1);
	exiting(at(&s, 2), 20, 20, 0, EXIT_GROUP_DEAD);
	birth(at(&s, 3), 20, 20);
	scenario_set_seq(&s, 20, 700);
	out_preempted(at(&s, 4), 20); /* still the old one */
	in(at(&s, 5), 20, 1);
	dead(at(&s, 7), 20);
	stats(at(&s, 7), 20, 1);
	scenario_set_seq(&s, 20, 0);
	in(at(&s, 8), 20, 0);
	out(at(&s, 10), 20, S);
	scenario_finish(&s);
	expect_track_of(&s, 20, 0, "RRRRrRR.......");
	expect_track_of(&s, 20, 1, "...rrrrrRRBBBB");
	assert_int_equal(s.timeline->missed_switches, 0);
	assert_false(scenario_thread(&s, 20, 1)->kernel.known);
	scenario_free(&s);
}

/* While it is on its way out another thread has the tid for its whole lifetime, and then a third
 * one. */
static void test_pid_reuse_twice_while_dying(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 14, false);
	described(at(&s, 0), 20, 20, "old");
	scenario_set_seq(&s, 20, 700);
	snapshot(at(&s, 0), 20, SNAPSHOT_ON_CPU, 0, -1);
	stats(at(&s, 0), 20, 5);
	exiting(at(&s, 1), 20, 20, 0, EXIT_GROUP_DEAD);
	birth(at(&s, 2), 20, 20);
	scenario_set_seq(&s, 20, 0);
	in(at(&s, 3), 20, 1);
	exiting(at(&s, 4), 20, 20, 0, EXIT_GROUP_DEAD);
	dead(at(&s, 5), 20);
	stats(at(&s, 5), 20, 1);
	birth(at(&s, 7), 20, 20);
	scenario_set_seq(&s, 20, 700);
	dead(at(&s, 9), 20); /* the first one */
	stats(at(&s, 9), 20, 7);
	scenario_set_seq(&s, 20, 0);
	in(at(&s, 10), 20, 0);
	out(at(&s, 12), 20, S);
	scenario_finish(&s);
	expect_track_of(&s, 20, 0, "RRRRRRRRR.....");
	expect_track_of(&s, 20, 1, "..rRR.........");
	expect_track_of(&s, 20, 2, ".......rrrRRBB");
	assert_int_equal(s.timeline->missed_switches, 0);
	assert_int_equal(scenario_thread(&s, 20, 0)->kernel.sum_exec_runtime, 2);
	assert_int_equal(scenario_thread(&s, 20, 1)->kernel.sum_exec_runtime, 1);
	assert_false(scenario_thread(&s, 20, 2)->kernel.known);
	scenario_free(&s);
}

/* The same as BPF reports it: exit and final switch at once, when others have long been born. */
static void test_pid_reuse_before_exit(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 14, false);
	birth(at(&s, 0), 20, 20);
	in(at(&s, 1), 20, 0);
	birth(at(&s, 2), 20, 20);
	in(at(&s, 3), 20, 1);
	scenario_set_seq(&s, 20, 0);
	ends(at(&s, 5), 20, 20, 2, 1);
	birth(at(&s, 7), 20, 20);
	scenario_set_seq(&s, 20, 0);
	ends(at(&s, 9), 20, 20, 0, 2); /* the first one */
	scenario_set_seq(&s, 20, 0);
	in(at(&s, 10), 20, 0);
	out(at(&s, 12), 20, S);
	scenario_finish(&s);
	expect_track_of(&s, 20, 0, "rRRRRRRRR.....");
	expect_track_of(&s, 20, 1, "..rRR.........");
	expect_track_of(&s, 20, 2, ".......rrrRRBB");
	assert_int_equal(s.timeline->missed_switches, 0);
	assert_int_equal(s.timeline->processes.count, 3);
	assert_false(s.timeline->processes.items[2].exited_in_window);
	assert_int_equal(scenario_thread(&s, 20, 0)->kernel.sum_exec_runtime, 2);
	assert_int_equal(scenario_thread(&s, 20, 1)->kernel.sum_exec_runtime, 1);
	assert_false(scenario_thread(&s, 20, 2)->kernel.known);
	scenario_free(&s);
}

static void exec_scenario(Scenario *s, bool switches_before_record)
{
	scenario_begin(s, 14, false);
	described(at(s, 0), 10, 10, "old");
	snapshot(at(s, 0), 10, 0, S, __NR_futex);
	described(at(s, 0), 11, 10, "thread");
	snapshot(at(s, 0), 11, SNAPSHOT_ON_CPU, 0, -1);
	scenario_set_seq(s, 10, 0);
	wake(at(s, 2), 10, 11);
	in(at(s, 3), 10, 1);
	exiting(at(s, 4), 10, 10, 0, 0);
	dead(at(s, 5), 10);
	out_preempted(at(s, 6), 11);
	in(at(s, 7), 11, 0);
	if (switches_before_record) {
		/* It already goes by its new number. */
		scenario_set_seq(s, 10, 1);
		out(at(s, 8), 10, D);
		wake(at(s, 9), 10, 12);
		in(at(s, 10), 10, 0);
		scenario_set_seq(s, 11, 2);
	}
	renamed(at(s, 11), 10, 10, "new"); /* exec renames first */
	exec_as(at(s, 11), 11, 10, 10);
	out(at(s, 12), 10, S);
	scenario_finish(s);
}

static void test_exec_by_other_thread(void **state)
{
	(void)state;
	Scenario s;

	for (int early = 0; early < 2; early++) {
		exec_scenario(&s, early);
		expect_track_of(&s, 10, 0, "BBrRR.........");
		expect_track_of(&s, 10, 1, early ? "RRRRRRrRBrRRBB" : "RRRRRRrRRRRRBB");
		assert_null(scenario_thread(&s, 11, 0));
		assert_int_equal(s.timeline->missed_switches, 0);
		assert_int_equal(s.timeline->processes.count, 1);

		const Process *process = &s.timeline->processes.items[0];

		assert_string_equal(process->name, "new");
		assert_string_equal(process->path, "/bin/new");
		assert_string_equal(scenario_thread(&s, 10, 0)->name, "old");
		assert_string_equal(scenario_thread(&s, 10, 1)->name, "new");
		assert_int_equal(process->threads.count, 2);
		assert_true(&s.timeline->threads.items[process->threads.items[0]] ==
			    scenario_thread(&s, 10, 1));
		assert_false(process->exited_in_window);
		scenario_free(&s);
	}
}

/* The leader is still on its way out when its number is taken. */
static void test_exec_before_leader_is_gone(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 12, false);
	running_from_start(&s, 10);
	running_from_start(&s, 11);
	exiting(at(&s, 3), 10, 10, 0, 0);
	exec_as(at(&s, 5), 11, 10, 10);
	scenario_set_seq(&s, 11, 0);
	dead(at(&s, 6), 11); /* the leader's last switch, by the other's number */
	out(at(&s, 8), 10, S);
	in(at(&s, 10), 11, 0); /* a new thread with a lost birth */
	scenario_finish(&s);
	expect_track_of(&s, 10, 0, "RRRRR.......");
	expect_track_of(&s, 10, 1, "RRRRRRRRBBBB");
	expect_track(&s, 11, "..........RR");
	assert_int_equal(s.timeline->missed_switches, 0);
	scenario_free(&s);
}

/* Its last switch is its own even if one before it was lost. */
static void test_pid_reuse_with_loss(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 12, false);
	described(at(&s, 0), 20, 20, "old");
	scenario_set_seq(&s, 20, 700);
	snapshot(at(&s, 0), 20, SNAPSHOT_ON_CPU, 0, -1);
	exiting(at(&s, 2), 20, 20, 0, EXIT_GROUP_DEAD);
	birth(at(&s, 3), 20, 20);
	scenario_set_seq(&s, 20, 700);
	out_preempted(lost_at(&s, 4), 20);
	in(lost_at(&s, 5), 20, 1);
	loss(at(&s, 6), REC_SWITCH, 4, 5);
	dead(at(&s, 7), 20);
	scenario_set_seq(&s, 20, 0);
	in(at(&s, 8), 20, 0);
	scenario_finish(&s);
	expect_track_of(&s, 20, 0, "RRRR???.....");
	expect_track_of(&s, 20, 1, "...rrrrrRRRR");
	assert_int_equal(s.timeline->missed_switches, 0);
	scenario_free(&s);
}

/* exec ends the other threads, whether their ends were seen or not. */
static void test_exec_ends_threads(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 10, false);
	running_from_start(&s, 10);
	running_from_start(&s, 11);
	out(lost_at(&s, 2), 11, S);
	loss(at(&s, 3), REC_SWITCH, 2, 2);
	exec_as(at(&s, 5), 10, 10, 10);
	snapshot(at(&s, 10), 10, SNAPSHOT_END | SNAPSHOT_ON_CPU, 0, -1);
	scenario_finish(&s);
	expect_track(&s, 10, "RRRRRRRRRR");
	expect_track(&s, 11, "RR???.....");
	scenario_free(&s);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_pid_reuse),
	cmocka_unit_test(test_pid_reuse_end_unseen),
	cmocka_unit_test(test_pid_reuse_while_dying),
	cmocka_unit_test(test_pid_reuse_twice_while_dying),
	cmocka_unit_test(test_pid_reuse_before_exit),
	cmocka_unit_test(test_exec_by_other_thread),
	cmocka_unit_test(test_exec_before_leader_is_gone),
	cmocka_unit_test(test_pid_reuse_with_loss),
	cmocka_unit_test(test_exec_ends_threads),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
