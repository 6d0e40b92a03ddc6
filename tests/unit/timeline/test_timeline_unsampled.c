/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What --budget left out is filled in from others like it, and changes no time. */
#include "scenario.h"
#include "test_tools.h"
#include "timeline_builder_private.h"

#define READ	      0
#define WRITE	      1
#define CHANCE(parts) ((parts) << CHANCE_SHIFT)
#define APP	      10 /* the thread */
#define MANY	      10000
#define UNIT_NS	      2000ULL

/* A thread that runs from 0 on. */
static void begin(Scenario *s, int length)
{
	scenario_begin(s, length, true);
	described(at(s, 0), APP, APP, "app");
	snapshot(at(s, 0), APP, SNAPSHOT_ON_CPU, 0, -1);
}

/* It waits in a call from `from` to `to`; stack 0: what it waited with was left out. */
static void wait_of(Scenario *s, uint32_t tid, int from, int to, int call, uint16_t place,
		    uint64_t stack)
{
	s->next_out.place = place;
	s->next_out.parts = CHANCE(1024) | (stack ? 0 : SWITCH_UNSAMPLED);
	s->next_out.ustack = stack;
	s->next_out.kstack = stack ? stack + 1000 : 0;
	out_call(at(s, from), tid, 1, call);
	wake(at(s, to), tid, 99);
	in(s, tid, 0);
}

static void waits(Scenario *s, int from, int to, int call, uint16_t place, uint64_t stack)
{
	wait_of(s, APP, from, to, call, place, stack);
}

static const Interval *wait_at(const Scenario *s, uint32_t tid, int ms)
{
	const Thread *thread = scenario_thread(s, tid, 0);

	for (size_t i = 0; i < thread->intervals.count; i++)
		if (thread->intervals.items[i].start_ns == scenario_ns(ms) &&
		    thread->intervals.items[i].state != STATE_RUNNING)
			return &thread->intervals.items[i];
	fail();
	return NULL;
}

static uint64_t id_of(const Scenario *s, uint32_t stack)
{
	return stack == STACK_NONE ? 0 : s->timeline->stacks.items[stack].id;
}

/* The interval has these stacks, and says whether they are its own. */
static void expect_stacks(const Scenario *s, const Interval *interval, uint64_t user,
			  uint64_t kernel, bool unsampled)
{
	assert_int_equal(id_of(s, interval->user_stack), user);
	assert_int_equal(id_of(s, interval->kernel_stack), kernel);
	assert_int_equal(interval->unsampled, unsampled);
}

static void expect_like(const Scenario *s, int ms, uint64_t stack)
{
	const Interval *wait = wait_at(s, APP, ms);

	expect_stacks(s, wait, stack, stack ? stack + 1000 : 0, true);
	expect_stacks(s, wait - 1, stack, stack ? stack + 1000 : 0, true);
}

/* The nearest in time of the same place: before or after it. */
static void test_place(void **state)
{
	(void)state;
	Scenario s;

	begin(&s, 100);
	waits(&s, 10, 12, READ, 1, 7);
	waits(&s, 15, 17, READ, 1, 0);
	waits(&s, 20, 22, READ, 2, 8);
	waits(&s, 25, 27, READ, 1, 0);
	waits(&s, 30, 32, READ, 1, 9);
	scenario_finish(&s);
	expect_like(&s, 15, 7);
	expect_like(&s, 25, 9);
	expect_stacks(&s, wait_at(&s, APP, 20), 8, 1008, false);
	assert_int_equal(s.timeline->budget.switch_outs, 5);
	assert_int_equal(s.timeline->budget.unsampled, 2);
	scenario_free(&s);
}

/* Short and long waits at one place may be different ones. */
static void test_duration(void **state)
{
	(void)state;
	Scenario s;

	begin(&s, 150);
	waits(&s, 10, 11, READ, 1, 7);
	waits(&s, 15, 47, READ, 1, 8);
	waits(&s, 50, 51, READ, 1, 0);
	waits(&s, 55, 95, READ, 1, 0);
	waits(&s, 100, 108, READ, 1, 0); /* nearer to the long one */
	scenario_finish(&s);
	expect_like(&s, 50, 7);
	expect_like(&s, 55, 8);
	expect_like(&s, 100, 8);
	scenario_free(&s);
}

/* Another place in the same call; never another call, or another state. */
static void test_call(void **state)
{
	(void)state;
	Scenario s;

	begin(&s, 100);
	waits(&s, 10, 12, READ, 1, 7);
	waits(&s, 20, 22, READ, 2, 0);
	waits(&s, 30, 32, WRITE, 1, 0);
	s.next_out.place = 1;
	s.next_out.parts = SWITCH_UNSAMPLED;
	out_call(at(&s, 40), APP, 2, READ); /* uninterruptible */
	wake(at(&s, 42), APP, 99);
	in(&s, APP, 0);
	scenario_finish(&s);
	expect_like(&s, 20, 7);
	expect_like(&s, 30, 0);
	expect_like(&s, 40, 0);
	scenario_free(&s);
}

/* Another thread of the same program: the kernel stack and the reason, but no user stack. */
static void test_program(void **state)
{
	(void)state;
	Scenario s;
	const Interval *wait;

	begin(&s, 100);
	described(at(&s, 0), 20, 20, "app");
	snapshot(at(&s, 0), 20, SNAPSHOT_ON_CPU, 0, -1);
	described(at(&s, 0), 30, 30, "other");
	snapshot(at(&s, 0), 30, SNAPSHOT_ON_CPU, 0, -1);
	s.next_out.fd_kind = FD_PIPE;
	wait_of(&s, 20, 10, 12, READ, 1, 7);
	waits(&s, 20, 22, READ, 1, 0);
	wait_of(&s, 30, 30, 32, READ, 1, 0);
	scenario_finish(&s);
	wait = wait_at(&s, APP, 20);
	expect_stacks(&s, wait, 0, 1007, true);
	assert_int_equal(wait->reason, REASON_PIPE_READ);
	assert_int_equal(wait_at(&s, 20, 10)->reason, REASON_PIPE_READ);
	wait = wait_at(&s, 30, 30);
	expect_stacks(&s, wait, 0, 0, true);
	assert_int_not_equal(wait->reason, REASON_PIPE_READ);
	scenario_free(&s);
}

/* The object of the donor, unless the wait has its own; and the interval after the wakeup. */
static void test_object(void **state)
{
	(void)state;
	Scenario s;
	const Thread *thread;
	const Interval *wait;

	begin(&s, 100);
	s.next_out = (struct rec_switch){.fd_kind = FD_FILE, .inode = 5, .file_device = 8};
	waits(&s, 10, 12, READ, 1, 7);
	s.next_out = (struct rec_switch){.place = 1, .parts = CHANCE(1024) | SWITCH_UNSAMPLED};
	out_call(at(&s, 20), APP, 1, READ);
	wake(at(&s, 22), APP, 99);
	in(at(&s, 25), APP, 0);
	scenario_finish(&s);
	thread = scenario_thread(&s, APP, 0);
	wait = wait_at(&s, APP, 20);
	assert_int_not_equal(thread_wait_object(thread, wait - thread->intervals.items),
			     OBJECT_NONE);
	assert_int_equal(
		thread_wait_object(thread, wait - thread->intervals.items),
		thread_wait_object(thread, wait_at(&s, APP, 10) - thread->intervals.items));
	expect_stacks(&s, wait + 1, 7, 1007, true);
	assert_int_equal(wait[1].reason, REASON_WOKEN);
	check_thread(s.timeline, thread);
	scenario_free(&s);
}

/* The recorder took the stacks while the thread slept: they are its own. */
static void test_late(void **state)
{
	(void)state;
	Scenario s;

	begin(&s, 100);
	waits(&s, 10, 12, READ, 1, 7);
	s.next_out = (struct rec_switch){.place = 1, .parts = CHANCE(128) | SWITCH_UNSAMPLED};
	out_call(at(&s, 20), APP, 1, READ);
	s.snapshot_ustack = 33;
	snapshot(at(&s, 45), APP, 0, 1, READ);
	wake(at(&s, 60), APP, 99);
	in(&s, APP, 0);
	scenario_finish(&s);
	expect_stacks(&s, wait_at(&s, APP, 20), 33, 0, false);
	expect_stacks(&s, wait_at(&s, APP, 20) - 1, 33, 0, false);
	assert_int_equal(s.timeline->budget.unsampled, 0);
	scenario_free(&s);
}

/* The waker's stacks, of another wakeup by the same waker. */
static void test_wakers(void **state)
{
	(void)state;
	Scenario s;
	const Thread *thread;

	begin(&s, 100);
	for (int i = 0; i < 3; i++) {
		s.next_out = (struct rec_switch){.place = 1, .ustack = 7};
		out_call(at(&s, 10 + 10 * i), APP, 1, READ);
		s.waker_ustack = i == 0 ? 40 : 0;
		s.waker_unsampled = i > 0;
		wake(at(&s, 12 + 10 * i), APP, i < 2 ? 98 : 97);
		in(&s, APP, 0);
	}
	scenario_finish(&s);
	thread = scenario_thread(&s, APP, 0);
	assert_int_equal(thread->waker_stacks.count, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(id_of(&s, thread->waker_stacks.items[i].user_stack),
				 i < 2 ? 40 : 0);
		assert_int_equal(thread->waker_stacks.items[i].unsampled, i > 0);
	}
	scenario_free(&s);
}

/* ---- random waits --------------------------------------------------------------- */

/* Of random waits: the time of each stack, as it was and as it is shown. */
typedef struct Sums {
	double truth[4], shown[4];
	uint64_t all_ns, weighted_ns;
} Sums;

/*
 * One place has two stacks, whose shares change in the run and whose waits last differently; the
 * other one has two that only their shares tell apart.
 */
static int draw_stack(int i, int *ret_units)
{
	if (random_below(2)) {
		int stack = random_below(MANY) < (uint64_t)i;

		*ret_units = stack ? 8 + random_below(8) : 1 + random_below(3);
		return stack;
	}
	*ret_units = 2 + random_below(3);
	return 2 + (random_below(10) < 3);
}

/* One wait, and the switch-in after it, in units of UNIT_NS, because a scenario has milliseconds.
 */
static void add_wait(Scenario *s, uint16_t seq, uint64_t ns, int units, int stack, bool sampled)
{
	struct rec_switch leaves = {
		.h = {sizeof(leaves), REC_SWITCH, SWITCH_PREV, 0, ns},
		.prev_tid = APP,
		.prev_seq = seq,
		.prev_state = 1,
		.syscall = READ,
		.parts = SWITCH_HAS_OUT | CHANCE(CHANCE_CERTAIN / 8) |
			 (sampled ? 0 : SWITCH_UNSAMPLED),
		.place = 1 + stack / 2,
		.ustack = sampled ? 10 + stack : 0,
	};
	struct rec_waking woken = {
		.h = {WAKING_SHORT_LEN, REC_WAKING, 0, 0, ns + units * UNIT_NS},
		.tid = APP,
		.waker_tid = 99,
	};
	struct rec_switch enters = {
		.h = {SWITCH_SHORT_LEN, REC_SWITCH, SWITCH_NEXT, 0, ns + units * UNIT_NS},
		.next_tid = APP,
		.next_seq = seq,
		.syscall = -1,
	};

	timeline_builder_add(s->builder, &leaves.h);
	timeline_builder_add(s->builder, &woken.h);
	timeline_builder_add(s->builder, &enters.h);
}

static Sums random_waits(void)
{
	Sums sums = {};
	int units;
	const Thread *thread;
	Scenario s;
	uint64_t ns;

	begin(&s, SCENARIO_LENGTH);
	ns = scenario_ns(1);
	for (int i = 0; i < MANY; i++) {
		int stack = draw_stack(i, &units);

		add_wait(&s, i + 1, ns, units, stack, random_below(8) == 0);
		sums.truth[stack] += units * UNIT_NS;
		ns += (units + 1) * UNIT_NS;
	}
	scenario_set_seq(&s, APP, MANY);
	scenario_finish(&s);
	thread = scenario_thread(&s, APP, 0);
	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *wait = &thread->intervals.items[i];

		if (wait->state == STATE_BLOCKED)
			sums.shown[id_of(&s, wait->user_stack) - 10] +=
				interval_end(thread, i) - wait->start_ns;
	}
	sums.all_ns = thread->ledger[STATE_BLOCKED];
	sums.weighted_ns = s.timeline->budget.weighted_ns;
	check_thread(s.timeline, thread);
	scenario_free(&s);
	return sums;
}

/* With an eighth of the stacks, sums are right to 3 % of all; the time in all is exact. */
static void test_random(void **state)
{
	(void)state;
	Sums sums = random_waits();
	double all = 0, worst = 0;

	for (int i = 0; i < 4; i++) {
		double error = sums.shown[i] - sums.truth[i];

		all += sums.truth[i];
		worst = MAX(worst, MAX(error, -error));
	}
	assert_int_equal(sums.all_ns, (uint64_t)all);
	/* The weights give it, too, but are not as good. */
	assert_uint_in_range(sums.weighted_ns, 0.8 * all, 1.2 * all);
	assert_true(worst < 0.03 * all);
	/* Sums of another run differ by more. */
	assert_true(sums.truth[3] - sums.truth[2] > 0.03 * all ||
		    sums.truth[2] - sums.truth[3] > 0.03 * all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_place),  cmocka_unit_test(test_duration),
		cmocka_unit_test(test_call),   cmocka_unit_test(test_program),
		cmocka_unit_test(test_object), cmocka_unit_test(test_late),
		cmocka_unit_test(test_wakers), cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
