/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which thread an interpreter's lock was held by, and which frames an event has, by REC_SCRIPT. */
#include "scenario.h"
#include "syscalls_x86_64.h"
#include <setjmp.h>
#include <stdarg.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define S	0x1 /* TASK_INTERRUPTIBLE */
#define LOCK	0x10000
#define WORD	(LOCK + 16)
#define SHARED	0x5000 /* memory in which A's and B's descriptions are by turns */
#define WAITING 0x6000 /* that of C */
#define A	20
#define B	21
#define C	22

static void script(const Scenario *s, uint32_t tid, uint64_t thread, uint64_t holder)
{
	struct rec_script record = {
		.h = {.len = sizeof(record), .kind = REC_SCRIPT, .ns = scenario_ns(s->ms) - 1},
		.tid = tid,
		.language = SCRIPT_PYTHON,
		.flags = SCRIPT_LOCK_HELD,
		.thread = thread,
		.lock = LOCK,
		.holder = holder,
	};

	timeline_builder_add(s->builder, &record.h);
}

/* A and B belong to processes of these ids, C to 20. All run from 0 on, each on its CPU. */
static void begin_threads(Scenario *s, uint32_t process_of_b)
{
	scenario_begin(s, 40, false);
	birth(at(s, 0), A, 20);
	birth(at(s, 0), B, process_of_b);
	birth(at(s, 0), C, 20);
	for (uint32_t i = 0; i < 3; i++) {
		wake_new(at(s, 0), A + i, 10);
		in(at(s, 0), A + i, i);
	}
}

/* The thread has the lock, and sleeps from ms to ms + 1. */
static void sleeps_with_lock(Scenario *s, int ms, uint32_t tid)
{
	script(at(s, ms), tid, SHARED, SHARED);
	out(s, tid, S);
	wake_by_irq(at(s, ms + 1), tid);
	in(s, tid, tid - A);
}

/* The thread has the lock, and runs. */
static void ticks_with_lock(Scenario *s, int ms, uint32_t tid)
{
	script(at(s, ms), tid, SHARED, SHARED);
	tick(s, tid, tid - A);
}

/* C waits for the lock from ms to ms + 1. */
static void waits(Scenario *s, int ms)
{
	script(at(s, ms), C, WAITING, SHARED);
	s->next_out.args[0] = WORD;
	out_call(s, C, S, SYSCALL_FUTEX);
	wake_by_irq(at(s, ms + 1), C);
	in(s, C, C - A);
}

/* Checks which thread had the lock in C's n-th wait. */
static void expect_holder(const Scenario *s, size_t n, uint32_t tid)
{
	const Thread *waiter = scenario_thread(s, C, 0);

	assert_true(n < waiter->lock_waits.count);
	if (tid == 0)
		assert_int_equal(waiter->lock_waits.items[n].holder, THREAD_NONE);
	else
		assert_int_equal(waiter->lock_waits.items[n].holder,
				 scenario_thread(s, tid, 0)->task);
}

/* A, B and again A have descriptions in the same memory. */
static void test_memory_that_is_used_again(void **state)
{
	Scenario s;

	(void)state;
	begin_threads(&s, 20);
	sleeps_with_lock(&s, 2, A);
	waits(&s, 4);
	sleeps_with_lock(&s, 6, B);
	waits(&s, 8);
	sleeps_with_lock(&s, 10, A);
	waits(&s, 12);
	scenario_finish(&s);
	expect_holder(&s, 0, A);
	expect_holder(&s, 1, B);
	expect_holder(&s, 2, A);
	scenario_free(&s);
}

/* A holder that only computes is known by its ticks, also if the first one comes later. */
static void test_holder_that_runs(void **state)
{
	Scenario s;

	(void)state;
	begin_threads(&s, 20);
	waits(&s, 2);
	ticks_with_lock(&s, 5, A);
	waits(&s, 8);
	scenario_finish(&s);
	expect_holder(&s, 0, A);
	expect_holder(&s, 1, A);
	scenario_free(&s);
}

/* B's description is at that address in another process. */
static void test_other_process(void **state)
{
	Scenario s;

	(void)state;
	begin_threads(&s, B);
	ticks_with_lock(&s, 2, B);
	waits(&s, 4);
	scenario_finish(&s);
	expect_holder(&s, 0, 0);
	scenario_free(&s);
}

/* A has ended when B holds the lock, and B is seen only later. */
static void test_holder_that_ended(void **state)
{
	Scenario s;

	(void)state;
	begin_threads(&s, 20);
	ticks_with_lock(&s, 2, A);
	exiting(at(&s, 3), A, 20, 0, 0);
	dead(at(&s, 4), A);
	waits(&s, 6);
	sleeps_with_lock(&s, 8, B);
	scenario_finish(&s);
	expect_holder(&s, 0, B);
	scenario_free(&s);
}

/* ---- the frames of a waker, of a submitter, and at a fault --------------------------------- */

#define STACK 7

/* A has the frames of that id at an event of that time. */
static void frames_of(const Scenario *s, uint64_t id, uint8_t flags, int ms)
{
	struct rec_script record = {
		.h = {.len = sizeof(record),
		      .kind = REC_SCRIPT,
		      .flags = flags,
		      .ns = scenario_ns(ms) - 1},
		.tid = A,
		.language = SCRIPT_PYTHON,
		.stack = id,
	};
	struct rec_script_stack stack = {
		.h = {.len = sizeof(stack), .kind = REC_SCRIPT_STACK, .ns = scenario_ns(ms) - 1},
		.id = id,
	};

	timeline_builder_add(s->builder, &record.h);
	timeline_builder_add(s->builder, &stack.h);
}

/* A wakes B, which sleeps. */
static void wakes(const Scenario *s, int ms)
{
	struct rec_waking record = {
		.h = {.len = sizeof(record), .kind = REC_WAKING, .ns = scenario_ns(ms)},
		.tid = B,
		.waker_tid = A,
		.parts = WAKING_HAS_STACKS,
		.ustack = STACK,
	};

	timeline_builder_add(s->builder, &record.h);
}

static void faults(const Scenario *s, int ms)
{
	struct rec_fault record = {
		.h = {.len = sizeof(record), .kind = REC_FAULT, .ns = scenario_ns(ms)},
		.tid = A,
		.start_ns = scenario_ns(ms) - 1000,
		.ustack = STACK,
	};

	timeline_builder_add(s->builder, &record.h);
}

/* A's request, which was submitted then, is complete. */
static void completes(const Scenario *s, int submit_ms, int ms)
{
	struct rec_request record = {
		.h = {.len = sizeof(record),
		      .kind = REC_REQUEST,
		      .flags = REQUEST_SUBMITTED | REQUEST_TARGET,
		      .ns = scenario_ns(ms)},
		.tid = A,
		.submit_ns = scenario_ns(submit_ms),
		.start_ns = scenario_ns(submit_ms),
		.issue_ns = scenario_ns(submit_ms),
		.ustack = STACK,
	};

	timeline_builder_add(s->builder, &record.h);
}

/* Checks which of the script stacks, in the order of the records, a stack has; -1: none. */
static void expect_frames(const Scenario *s, uint32_t stack, int script)
{
	assert_true(stack < s->timeline->stacks.count);
	assert_int_equal(s->timeline->stacks.items[stack].script, script + 1);
}

static void test_frames_of_events(void **state)
{
	const Thread *a, *b;
	Scenario s;

	(void)state;
	begin_threads(&s, 20);
	out(at(&s, 2), B, S);
	frames_of(&s, 100, 0, 4);
	wakes(&s, 4);
	in(at(&s, 5), B, 1);
	frames_of(&s, 101, SCRIPT_REQUEST, 6);
	frames_of(&s, 102, 0, 8);
	faults(&s, 8);
	out(at(&s, 9), B, S);
	wakes(&s, 10); /* its frames are those of no other event */
	in(at(&s, 11), B, 1);
	frames_of(&s, 103, 0, 12);
	completes(&s, 6, 14);
	completes(&s, 7, 15);
	scenario_finish(&s);
	a = scenario_thread(&s, A, 0);
	b = scenario_thread(&s, B, 0);
	assert_int_equal(b->waker_stacks.count, 2);
	expect_frames(&s, b->waker_stacks.items[0].user_stack, 0);
	expect_frames(&s, b->waker_stacks.items[1].user_stack, -1);
	assert_int_equal(a->faults.count, 1);
	expect_frames(&s, a->faults.items[0].user_stack, 2);
	assert_int_equal(s.timeline->requests.list.count, 2);
	expect_frames(&s, s.timeline->requests.list.items[0].user_stack, 1);
	expect_frames(&s, s.timeline->requests.list.items[1].user_stack, -1);
	scenario_free(&s);
}

/* ---- threads that sleep when the recording begins ------------------------------------------ */

/* The recorder has read the frames of the thread with that user stack, up to ms. */
static void frames_of_sleeper(const Scenario *s, uint64_t stack_id, int ms)
{
	struct rec_script_stack stack = {
		.h = {.len = sizeof(stack),
		      .kind = REC_SCRIPT_STACK,
		      .flags = SCRIPT_SLEEPER,
		      .ns = scenario_ns(ms)},
		.id = stack_id,
	};

	timeline_builder_add(s->builder, &stack.h);
}

/* Frames belong to a thread that has slept until they were read, and to no other. */
static void test_sleepers(void **state)
{
	enum { ALWAYS = 30, LATER, AWAKE, GONE, UNREAD, END };
	Scenario s;

	(void)state;
	scenario_begin_early(&s, 8, true);
	for (uint32_t tid = ALWAYS; tid < END; tid++) {
		described(at(&s, -1), tid, ALWAYS, "a");
		s.snapshot_ustack = 1000 + tid;
		snapshot(at(&s, -1), tid, 0, S, -1);
	}
	frames_of_sleeper(&s, 1000 + AWAKE, 3); /* the first script stack */
	frames_of_sleeper(&s, 1000 + ALWAYS, 3);
	frames_of_sleeper(&s, 1000 + LATER, 3);
	frames_of_sleeper(&s, 1000 + GONE, 3);
	scenario_window_start(&s);
	in(at(&s, 2), AWAKE, 0);
	in(at(&s, 2), GONE, 1);
	exiting(at(&s, 2), GONE, ALWAYS, 0, 0);
	dead(at(&s, 2), GONE);
	in(at(&s, 5), LATER, 0);
	scenario_finish(&s);
	for (uint32_t tid = ALWAYS; tid < END; tid++) {
		const Thread *thread = scenario_thread(&s, tid, 0);
		uint32_t stack = thread->intervals.items[0].user_stack;
		int script = tid == ALWAYS ? 1 : tid == LATER ? 2 : -1;

		assert_int_equal(s.timeline->stacks.items[stack].id, 1000 + tid);
		expect_frames(&s, stack, script);
		if (script >= 0)
			expect_frames(&s, s.timeline->stacks.items[stack].plain, -1);
	}
	/* They are the recorder's own, not the BPF programs'. */
	assert_int_equal(s.timeline->totals[REC_SCRIPT_STACK].received, 0);
	scenario_free(&s);
}

/*
 * Nothing is known of a thread while switches are lost, or after the recording: frames that were
 * read then may be those of a later wait.
 */
static void test_sleepers_in_the_dark(void **state)
{
	enum { AFTER = 40, AGAIN, AGAIN_FOR_GOOD, END };
	Scenario s;

	(void)state;
	scenario_begin_early(&s, 8, true);
	for (uint32_t tid = AFTER; tid < END; tid++) {
		described(at(&s, -1), tid, AFTER, "a");
		s.snapshot_ustack = 1000 + tid;
		snapshot(at(&s, -1), tid, 0, S, -1);
	}
	frames_of_sleeper(&s, 1000 + AFTER, 20);
	frames_of_sleeper(&s, 1000 + AGAIN, 5);
	frames_of_sleeper(&s, 1000 + AGAIN_FOR_GOOD, 5);
	scenario_window_start(&s);
	for (uint32_t tid = AGAIN; tid < END; tid++) {
		in(lost_at(&s, 2), tid, 0);
		out(lost_at(&s, 3), tid, S);
	}
	loss(at(&s, 4), REC_SWITCH, 1, 4);
	loss(at(&s, 4), REC_WAKING, 1, 4);
	in(at(&s, 6), AGAIN, 0);
	scenario_finish(&s);
	for (uint32_t tid = AFTER; tid < END; tid++) {
		const Interval *first = scenario_thread(&s, tid, 0)->intervals.items;

		if (first->user_stack != STACK_NONE)
			expect_frames(&s, first->user_stack, -1);
	}
	scenario_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_that_is_used_again),
		cmocka_unit_test(test_holder_that_runs),
		cmocka_unit_test(test_other_process),
		cmocka_unit_test(test_holder_that_ended),
		cmocka_unit_test(test_frames_of_events),
		cmocka_unit_test(test_sleepers),
		cmocka_unit_test(test_sleepers_in_the_dark),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
