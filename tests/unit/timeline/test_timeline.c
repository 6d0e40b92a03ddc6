/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What threads do, drawn; see scenario.h for the letters. */
#include "scenario.h"
#include <asm/unistd_64.h>
#include <setjmp.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define S 0x1 /* TASK_INTERRUPTIBLE */
#define D 0x2 /* TASK_UNINTERRUPTIBLE */
#define T 0x4 /* TASK_STOPPED */

static const Interval *interval_at(const Thread *thread, int ms)
{
	for (size_t i = 0; i < thread->intervals.count; i++)
		if (interval_end(thread, i) > scenario_ns(ms))
			return &thread->intervals.items[i];
	return NULL;
}

/* A thread that runs from the start of the window (born before, or known by a snapshot). */
static void running_from_start(Scenario *s, uint32_t tid)
{
	described(at(s, 0), tid, 10, "worker");
	snapshot(at(s, 0), tid, SNAPSHOT_ON_CPU, 0, -1);
}

static void still_there(Scenario *s, uint32_t tid, uint8_t flags, uint16_t state)
{
	snapshot(at(s, s->length), tid, SNAPSHOT_END | flags, state, -1);
}

static void test_born_in_window(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 12, false);
	running_from_start(&s, 10);
	birth(at(&s, 3), 11, 10);
	wake_new(at(&s, 3), 11, 10);
	in(at(&s, 5), 11, 1);
	exiting(at(&s, 8), 11, 10, 0, 0);
	dead(at(&s, 9), 11);
	scenario_finish(&s);
	expect_track(&s, 11, "...rrRRRR...");
	expect_track(&s, 10, "RRRRRRRRRRRR");

	const Thread *thread = scenario_thread(&s, 11, 0);

	assert_true(thread->born_in_window && thread->exited_in_window);
	assert_int_equal(thread->switch_outs, 0);
	assert_int_equal(thread->intervals.items[1].cpu, 1);
	assert_int_equal(s.timeline->tasks.items[thread->intervals.items[0].waker].tid, 10);
	assert_int_equal(s.timeline->missed_switches, 0);
	assert_int_equal(s.timeline->processes.count, 1);
	assert_int_equal(s.timeline->processes.items[0].threads.count, 2);
	assert_int_equal(s.timeline->processes.items[0].tgid, 10);
	assert_false(s.timeline->processes.items[0].exited_in_window);
	scenario_free(&s);
}

static void test_asleep_throughout(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin_early(&s, 8, true);
	described(at(&s, -3), 11, 10, "sleeper");
	snapshot(at(&s, -3), 11, 0, S, __NR_epoll_wait);
	scenario_window_start(&s);
	still_there(&s, 11, 0, S);
	scenario_finish(&s);
	expect_track(&s, 11, "BBBBBBBB");

	const Thread *thread = scenario_thread(&s, 11, 0);

	assert_int_equal(thread->intervals.count, 1);
	assert_int_equal(thread->intervals.items[0].flags, INTERVAL_OPEN_START | INTERVAL_OPEN_END);
	assert_int_equal(thread->intervals.items[0].reason, REASON_EPOLL);
	assert_int_equal(thread->intervals.items[0].syscall, __NR_epoll_wait);
	assert_false(thread->born_in_window || thread->exited_in_window);
	assert_int_equal(thread->reason_ledger[REASON_EPOLL], 8 * NSEC_PER_MSEC);
	scenario_free(&s);
}

static void test_preempted_and_yielding(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 12, true);
	running_from_start(&s, 10);
	out_preempted(at(&s, 2), 10);
	in(at(&s, 4), 10, 0);
	out_call(at(&s, 5), 10, 0, __NR_sched_yield);
	in(at(&s, 7), 10, 0);
	s.next_out.ustack = 5;
	out_call(at(&s, 9), 10, 0, __NR_read);
	in(at(&s, 10), 10, 0);
	scenario_finish(&s);
	expect_track(&s, 10, "RRrrRrrRRrRR");

	const Thread *thread = scenario_thread(&s, 10, 0);

	assert_int_equal(interval_at(thread, 2)->reason, REASON_PREEMPTED);
	assert_int_equal(interval_at(thread, 5)->reason, REASON_YIELDED);
	assert_int_equal(interval_at(thread, 9)->reason, REASON_PREEMPTED);
	assert_int_equal(thread->switch_outs, 3);
	/* A running interval has the stacks of the switch-out that ended it. */
	assert_int_equal(s.timeline->stacks.items[interval_at(thread, 7)->user_stack].id, 5);
	assert_int_equal(interval_at(thread, 10)->user_stack, STACK_NONE);
	assert_int_equal(s.timeline->events, 6);
	scenario_free(&s);
}

static const char *task_named(const Scenario *s, uint32_t task)
{
	assert_true(task < s->timeline->tasks.count);
	return s->timeline->tasks.items[task].comm;
}

/* The threads that took the CPU, and that had it before. */
static void test_rivals(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 12, true);
	running_from_start(&s, 10);
	non_target(at(&s, 0), 98, "builder");
	non_target(at(&s, 0), 99, "feeder");
	s.next_out.next_tid = 98;
	out_preempted(at(&s, 2), 10);
	in(at(&s, 4), 10, 0);
	out_call(at(&s, 5), 10, S, __NR_read);
	wake_by_irq(at(&s, 7), 10);
	s.ran_before = 99;
	in(at(&s, 9), 10, 3);
	s.next_out.h.flags = SWITCH_THROTTLED;
	out(at(&s, 10), 10, 0);
	scenario_finish(&s);
	expect_track(&s, 10, "RRrrRBBrrRrr");

	const Thread *thread = scenario_thread(&s, 10, 0);

	assert_string_equal(task_named(&s, interval_at(thread, 2)->cpu_user), "builder");
	assert_string_equal(task_named(&s, interval_at(thread, 7)->cpu_user), "feeder");
	assert_int_equal(interval_at(thread, 7)->cpu, 3);
	assert_int_equal(interval_at(thread, 5)->cpu_user, THREAD_NONE);
	assert_int_equal(interval_at(thread, 10)->reason, REASON_THROTTLED);
	scenario_free(&s);
}

/* The lock word has its holder: a thread of the process, and not the one that waits. */
static void test_lock_holder(void **state)
{
	static const struct {
		uint32_t owner;
		const char *name; /* NULL: none */
	} locks[] = {{2011, "holder"}, {2010, NULL}, {2012, NULL}, {11, NULL}, {0, NULL}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(locks); i++) {
		const Interval *wait;
		Scenario s;

		scenario_begin(&s, 12, true);
		running_from_start(&s, 10);
		described(at(&s, 0), 11, 10, "holder");
		snapshot(at(&s, 0), 11, SNAPSHOT_ON_CPU, 0, -1);
		described(at(&s, 0), 12, 99, "of another process");
		s.next_out.owner = locks[i].owner;
		out_call(at(&s, 2), 10, S, __NR_futex);
		wake(at(&s, 6), 10, 11);
		in(at(&s, 6), 10, 0);
		scenario_finish(&s);
		wait = interval_at(scenario_thread(&s, 10, 0), 2);
		if (locks[i].name)
			assert_string_equal(task_named(&s, wait->cpu_user), locks[i].name);
		else
			assert_int_equal(wait->cpu_user, THREAD_NONE);
		scenario_free(&s);
	}
}

/* From where a wait was ended, and none of those that woke a thread that was awake. */
static void test_waker_stacks(void **state)
{
	(void)state;
	const WakerStack *stack;
	Scenario s;

	scenario_begin(&s, 12, true);
	running_from_start(&s, 10);
	out(at(&s, 2), 10, S);
	s.waker_kstack = 7;
	s.waker_ustack = 8;
	wake(at(&s, 5), 10, 99);
	s.waker_kstack = 9;
	wake(at(&s, 5), 10, 99);
	in(at(&s, 6), 10, 0);
	out(at(&s, 7), 10, S);
	wake(at(&s, 8), 10, 99);
	in(at(&s, 8), 10, 0);
	scenario_finish(&s);

	const Thread *thread = scenario_thread(&s, 10, 0);

	assert_int_equal(thread->waker_stacks.count, 1);
	stack = thread_waker_stack(thread, interval_at(thread, 2) - thread->intervals.items);
	assert_non_null(stack);
	assert_int_equal(s.timeline->stacks.items[stack->kernel_stack].id, 7);
	assert_int_equal(s.timeline->stacks.items[stack->user_stack].id, 8);
	assert_null(thread_waker_stack(thread, interval_at(thread, 7) - thread->intervals.items));
	scenario_free(&s);
}

static void test_wait_with_waker(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 12, true);
	running_from_start(&s, 10);
	s.next_out.args[0] = 7;
	s.next_out.fd_kind = FD_PIPE;
	out_call(at(&s, 2), 10, S, __NR_read);
	non_target(at(&s, 5), 99, "feeder");
	wake(at(&s, 5), 10, 99);
	in(at(&s, 6), 10, 0);
	out(at(&s, 7), 10, D);
	wake_by_irq(at(&s, 9), 10);
	in(at(&s, 9), 10, 3);
	out(at(&s, 10), 10, D);
	wake(at(&s, 11), 10, 0); /* on an idle CPU, by what an interrupt has left to it */
	in(at(&s, 11), 10, 0);
	scenario_finish(&s);
	expect_track(&s, 10, "RRBBBrRBBRBR");

	const Thread *thread = scenario_thread(&s, 10, 0);
	const Interval *wait = interval_at(thread, 2);

	assert_int_equal(wait->reason, REASON_PIPE_READ);
	assert_int_equal(wait->rule, RULE_DESCRIPTOR);
	assert_string_equal(s.timeline->tasks.items[wait->waker].comm, "feeder");
	assert_int_equal(s.timeline->tasks.items[wait->waker].thread, THREAD_NONE);
	assert_int_equal(wait[1].waker, wait->waker);
	assert_int_equal(wait[1].reason, REASON_WOKEN);
	wait = interval_at(thread, 7);
	assert_int_equal(wait->reason, REASON_UNINTERRUPTIBLE);
	assert_int_equal(wait->waker, THREAD_NONE);
	assert_true(wait->flags & INTERVAL_WAKER_IRQ);
	assert_int_equal(interval_at(thread, 9)->cpu, 3);
	wait = interval_at(thread, 10);
	assert_int_equal(wait->waker, THREAD_NONE);
	assert_true(wait->flags & INTERVAL_WAKER_IRQ);
	scenario_free(&s);
}

static void test_woken_before_it_slept(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 14, true);
	running_from_start(&s, 10);
	wake(at(&s, 2), 10, 12); /* the one that counts */
	out_call(at(&s, 3), 10, S, __NR_futex);
	in(at(&s, 6), 10, 0);
	wake(at(&s, 7), 10, 13); /* spurious: the wait has its own */
	out_call(at(&s, 8), 10, S, __NR_futex);
	wake(at(&s, 10), 10, 12);
	in(at(&s, 11), 10, 0);
	wake(at(&s, 12), 10, 13); /* spurious: it does not sleep */
	out_preempted(at(&s, 12), 10);
	in(at(&s, 13), 10, 0);
	scenario_finish(&s);
	expect_track(&s, 10, "RRRrrrRRBBrRrR");

	const Thread *thread = scenario_thread(&s, 10, 0);

	assert_int_equal(interval_at(thread, 3)->reason, REASON_WOKEN);
	assert_int_equal(s.timeline->tasks.items[interval_at(thread, 3)->waker].tid, 12);
	scenario_free(&s);
}

static void test_two_wakings(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 8, true);
	running_from_start(&s, 10);
	out(at(&s, 2), 10, S);
	wake(at(&s, 4), 10, 12);
	wake(at(&s, 5), 10, 13);
	in(at(&s, 6), 10, 0);
	scenario_finish(&s);
	expect_track(&s, 10, "RRBBrrRR");

	const Thread *thread = scenario_thread(&s, 10, 0);

	assert_int_equal(s.timeline->tasks.items[interval_at(thread, 2)->waker].tid, 12);
	scenario_free(&s);
}

static void test_lost_switch_in(void **state)
{
	(void)state;
	Scenario s;

	for (int reported = 0; reported < 2; reported++) {
		scenario_begin(&s, 12, true);
		running_from_start(&s, 10);
		out(at(&s, 2), 10, S);
		wake(at(&s, 4), 10, 12);
		in(lost_at(&s, 5), 10, 0);
		out(at(&s, 8), 10, S);
		if (reported)
			loss(at(&s, 9), REC_SWITCH, 5, 6);
		wake(at(&s, 10), 10, 12);
		in(at(&s, 11), 10, 0);
		scenario_finish(&s);
		/* Known up to the loss, or up to the waking if none is reported. */
		expect_track(&s, 10, reported ? "RRBBr???BBrR" : "RRBB????BBrR");
		assert_int_equal(s.timeline->missed_switches, !reported);
		scenario_free(&s);
	}
}

/* The switch numbers prove that it ran from the tick on. */
static void test_lost_switch_in_with_tick(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 12, true);
	running_from_start(&s, 10);
	out(at(&s, 2), 10, S);
	wake(at(&s, 4), 10, 12);
	in(lost_at(&s, 5), 10, 0);
	tick(at(&s, 6), 10, 0);
	tick(at(&s, 7), 10, 0);
	out(at(&s, 8), 10, S);
	wake(at(&s, 10), 10, 12);
	in(at(&s, 11), 10, 0);
	scenario_finish(&s);
	expect_track(&s, 10, "RRBB??RRBBrR");
	assert_int_equal(scenario_thread(&s, 10, 0)->ticks.count, 2);
	scenario_free(&s);
}

static void test_lost_switch_out(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 12, true);
	running_from_start(&s, 10);
	out(lost_at(&s, 3), 10, S);
	wake(at(&s, 5), 10, 12); /* looks early */
	in(at(&s, 7), 10, 0);
	loss(at(&s, 8), REC_SWITCH, 3, 3);
	out(at(&s, 9), 10, S);
	wake(at(&s, 11), 10, 12);
	scenario_finish(&s);
	expect_track(&s, 10, "RRR????RRBBr");
	assert_int_equal(s.timeline->missed_switches, 0);
	scenario_free(&s);
}

static void test_lost_pair(void **state)
{
	(void)state;
	Scenario s;

	/* A switch-out and a switch-in are lost: only seq shows it. */
	scenario_begin(&s, 12, true);
	running_from_start(&s, 10);
	out(lost_at(&s, 3), 10, S);
	in(lost_at(&s, 5), 10, 0);
	out(at(&s, 9), 10, S);
	loss(at(&s, 10), REC_SWITCH, 3, 5);
	scenario_finish(&s);
	expect_track(&s, 10, "RRR??????BBB");
	assert_int_equal(s.timeline->missed_switches, 0);
	scenario_free(&s);
}

static void test_lost_waking(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 12, true);
	running_from_start(&s, 10);
	out(at(&s, 2), 10, S);
	wake(lost_at(&s, 4), 10, 12);
	in(at(&s, 6), 10, 0);
	out(at(&s, 8), 10, S);
	in(at(&s, 9), 10, 0); /* no waking, but none lost either */
	loss(at(&s, 10), REC_WAKING, 4, 4);
	scenario_finish(&s);
	expect_track(&s, 10, "RRBB??RRBRRR");
	assert_int_equal(s.timeline->missed_switches, 0);
	scenario_free(&s);
}

static void test_lost_waking_while_running(void **state)
{
	(void)state;
	Scenario s;

	/* The lost one may have been the early waking of the wait. */
	scenario_begin(&s, 10, true);
	running_from_start(&s, 10);
	wake(lost_at(&s, 2), 10, 12);
	out(at(&s, 3), 10, S);
	in(at(&s, 6), 10, 0);
	loss(at(&s, 7), REC_WAKING, 2, 2);
	scenario_finish(&s);
	expect_track(&s, 10, "RRR???RRRR");
	scenario_free(&s);

	/* An early waking was seen, but a later one may have been the one that counts. */
	scenario_begin(&s, 10, true);
	running_from_start(&s, 10);
	wake(at(&s, 2), 10, 12);
	out(at(&s, 3), 10, S);
	wake(lost_at(&s, 5), 10, 12);
	in(at(&s, 6), 10, 0);
	loss(at(&s, 7), REC_WAKING, 5, 5);
	scenario_finish(&s);
	expect_track(&s, 10, "RRR???RRRR");
	scenario_free(&s);
}

static void test_loss_without_effect(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 12, true);
	running_from_start(&s, 10);
	out(at(&s, 2), 10, S);
	wake(at(&s, 5), 10, 12);
	in(at(&s, 6), 10, 0);
	out(at(&s, 9), 10, S);
	loss(at(&s, 10), REC_SWITCH, 1, 9); /* another thread's records */
	loss(at(&s, 10), REC_WAKING, 1, 8);
	still_there(&s, 10, 0, S);
	scenario_finish(&s);
	expect_track(&s, 10, "RRBBBrRRRBBB");
	scenario_free(&s);
}

static void test_silent_after_loss(void **state)
{
	(void)state;
	Scenario s;
	static const struct {
		uint8_t flags;
		uint16_t state, more_switches;
		bool seen;
		uint32_t kind;
		const char *drawn;
		unsigned missed_switches;
	} cases[] = {
		{0, S, 0, false, REC_SWITCH, "RRBB????", 0},
		{0, S, 0, true, REC_SWITCH, "RRBBBBBB", 0},
		{0, S, 2, true, REC_SWITCH, "RRBB????", 0},
		{SNAPSHOT_ON_CPU, 0, 0, true, REC_SWITCH, "RRBB????", 0},
		{SNAPSHOT_ON_CPU, 0, 0, true, REC_SAMPLE, "RR??????", 1},
		{0, S, 2, true, REC_SAMPLE, "RR??????", 1},
		{0, S, 0, false, REC_WAKING, "RRBB????", 0},
		{0, S, 0, true, REC_WAKING, "RRBBBBBB", 0},
		{SNAPSHOT_QUEUED, 0, 0, true, REC_WAKING, "RRBB????", 0},
		{0, S, 0, false, REC_SAMPLE, "RRBBBBBB", 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		scenario_begin(&s, 8, true);
		running_from_start(&s, 10);
		out(at(&s, 2), 10, S);
		loss(at(&s, 7), cases[i].kind, 4, 5);
		scenario_set_seq(&s, 10, 1 + cases[i].more_switches);
		if (cases[i].seen)
			still_there(&s, 10, cases[i].flags, cases[i].state);
		scenario_finish(&s);
		expect_track(&s, 10, cases[i].drawn);
		assert_int_equal(s.timeline->missed_switches, cases[i].missed_switches);
		scenario_free(&s);
	}
}

static void test_exit_while_blocked(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 10, false);
	running_from_start(&s, 10);
	out_call(at(&s, 2), 10, S, __NR_read);
	wake(at(&s, 5), 10, 12); /* SIGKILL */
	in(at(&s, 6), 10, 0);
	exiting(at(&s, 7), 10, 10, 9, EXIT_GROUP_DEAD);
	dead(at(&s, 8), 10);
	stats(at(&s, 8), 10, 100);
	scenario_finish(&s);
	expect_track(&s, 10, "RRBBBrRR..");

	const Process *process = &s.timeline->processes.items[0];

	assert_true(process->exited_in_window);
	assert_int_equal(process->exit_code, 9);
	assert_int_equal(process->end_ns, scenario_ns(8));
	assert_int_equal(scenario_thread(&s, 10, 0)->switch_outs, 1);
	scenario_free(&s);
}

static void test_final_switch_lost(void **state)
{
	(void)state;
	Scenario s;

	/* It can't outlive its process. */
	scenario_begin(&s, 12, false);
	running_from_start(&s, 10);
	running_from_start(&s, 11);
	exiting(at(&s, 3), 11, 10, 0, 0);
	dead(lost_at(&s, 4), 11);
	exiting(at(&s, 6), 10, 10, 0, EXIT_GROUP_DEAD);
	dead(at(&s, 8), 10);
	loss(at(&s, 9), REC_SWITCH, 4, 4);
	scenario_finish(&s);
	expect_track(&s, 11, "RRRR????....");
	expect_track(&s, 10, "RRRRRRRR....");
	assert_true(scenario_thread(&s, 11, 0)->exited_in_window);
	assert_int_equal(s.timeline->missed_switches, 0);
	scenario_free(&s);
}

/* If the process goes on, its end is unknown, too. */
static void test_final_switch_lost_alone(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 8, false);
	running_from_start(&s, 10);
	running_from_start(&s, 11);
	exiting(at(&s, 3), 11, 10, 0, 0);
	dead(lost_at(&s, 4), 11);
	loss(at(&s, 6), REC_SWITCH, 4, 4);
	still_there(&s, 10, SNAPSHOT_ON_CPU, 0);
	scenario_finish(&s);
	expect_track(&s, 11, "RRRR????");
	expect_track(&s, 10, "RRRRRRRR");
	assert_true(scenario_thread(&s, 11, 0)->exited_in_window);
	assert_false(scenario_thread(&s, 10, 0)->exited_in_window);
	scenario_free(&s);
}

/* The window closes while the last thread is on its way out: nothing is missing. */
static void test_exiting_at_the_end(void **state)
{
	(void)state;
	Scenario s;

	for (int seen = 0; seen < 2; seen++) {
		scenario_begin(&s, 8, false);
		running_from_start(&s, 10);
		exiting(at(&s, 6), 10, 10, 0, EXIT_GROUP_DEAD);
		if (seen)
			still_there(&s, 10, SNAPSHOT_ON_CPU, 0);
		scenario_finish(&s);
		expect_track(&s, 10, "RRRRRRRR");
		assert_int_equal(s.timeline->missed_switches, 0);
		assert_false(s.timeline->processes.items[0].exited_in_window);
		scenario_free(&s);
	}
}

/* What comes after the snapshot at the end is the better witness. */
static void test_switch_after_end_snapshot(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 8, true);
	running_from_start(&s, 10);
	out(at(&s, 2), 10, S);
	snapshot(at(&s, 5), 10, SNAPSHOT_END, S, -1);
	wake(at(&s, 6), 10, 12);
	in(at(&s, 7), 10, 0);
	scenario_finish(&s);
	expect_track(&s, 10, "RRBBBBrR");
	assert_int_equal(s.timeline->missed_switches, 0);
	scenario_free(&s);
}

static void test_migration(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 8, true);
	running_from_start(&s, 10);
	out_preempted(at(&s, 2), 10);
	in(at(&s, 3), 10, 5);
	out_preempted(at(&s, 5), 10);
	in(at(&s, 6), 10, 1);
	scenario_finish(&s);
	expect_track(&s, 10, "RRrRRrRR");
	assert_int_equal(interval_at(scenario_thread(&s, 10, 0), 3)->cpu, 5);
	assert_int_equal(interval_at(scenario_thread(&s, 10, 0), 6)->cpu, 1);
	scenario_free(&s);
}

static void test_restarted_call(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 12, true);
	running_from_start(&s, 10);
	out_call(at(&s, 1), 10, S, __NR_nanosleep);
	wake(at(&s, 3), 10, 12);
	in(at(&s, 3), 10, 0);
	out_call(at(&s, 4), 10, T, __NR_nanosleep);
	wake(at(&s, 6), 10, 12);
	in(at(&s, 6), 10, 0);
	out_call(at(&s, 7), 10, S, __NR_restart_syscall);
	scenario_finish(&s);
	expect_track(&s, 10, "RBBRBBRBBBBB");

	const Thread *thread = scenario_thread(&s, 10, 0);

	assert_int_equal(interval_at(thread, 1)->reason, REASON_SLEEP);
	assert_int_equal(interval_at(thread, 4)->reason, REASON_STOPPED);
	assert_int_equal(interval_at(thread, 7)->reason, REASON_SLEEP);
	assert_int_equal(interval_at(thread, 7)->syscall, __NR_nanosleep);
	scenario_free(&s);
}

static void test_seq_wraps(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 8, true);
	scenario_set_seq(&s, 10, 65534);
	running_from_start(&s, 10);
	for (int i = 0; i < 3; i++) {
		out_preempted(at(&s, 1 + 2 * i), 10);
		in(at(&s, 2 + 2 * i), 10, 0);
	}
	scenario_finish(&s);
	expect_track(&s, 10, "RrRrRrRR");
	assert_int_equal(s.timeline->missed_switches, 0);
	scenario_free(&s);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_born_in_window),
	cmocka_unit_test(test_asleep_throughout),
	cmocka_unit_test(test_preempted_and_yielding),
	cmocka_unit_test(test_wait_with_waker),
	cmocka_unit_test(test_rivals),
	cmocka_unit_test(test_waker_stacks),
	cmocka_unit_test(test_lock_holder),
	cmocka_unit_test(test_woken_before_it_slept),
	cmocka_unit_test(test_two_wakings),
	cmocka_unit_test(test_lost_switch_in),
	cmocka_unit_test(test_lost_switch_in_with_tick),
	cmocka_unit_test(test_lost_switch_out),
	cmocka_unit_test(test_lost_pair),
	cmocka_unit_test(test_lost_waking),
	cmocka_unit_test(test_lost_waking_while_running),
	cmocka_unit_test(test_loss_without_effect),
	cmocka_unit_test(test_silent_after_loss),
	cmocka_unit_test(test_exit_while_blocked),
	cmocka_unit_test(test_final_switch_lost),
	cmocka_unit_test(test_final_switch_lost_alone),
	cmocka_unit_test(test_exiting_at_the_end),
	cmocka_unit_test(test_switch_after_end_snapshot),
	cmocka_unit_test(test_migration),
	cmocka_unit_test(test_restarted_call),
	cmocka_unit_test(test_seq_wraps),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
