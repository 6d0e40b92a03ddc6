/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which thread has the GIL while others wait for it. Times are in steps of 10 ms. */
#include "timeline_fixture.h"
#include "wait_reasons_private.h"
#include <setjmp.h>
#include <stdarg.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define STEP	  (10 * NSEC_PER_MSEC)
#define LAST_STEP 100

typedef struct Fixture {
	Timeline *timeline;
	uint32_t process;
} Fixture;

static uint32_t add_thread(Fixture *fixture, uint32_t tid)
{
	uint32_t thread =
		fixture_thread(fixture->timeline, fixture->process, tid, "t", 0, LAST_STEP * STEP);

	fixture_interval(fixture->timeline, thread, 0, STATE_RUNNING, REASON_NONE);
	return thread;
}

/* Adds a wait from step to step; waker: a thread, or THREAD_NONE for a timer. Returns its index. */
static size_t add_wait(Fixture *fixture, uint32_t thread, int from, int to, uint32_t waker,
		       enum reason reason)
{
	Timeline *t = fixture->timeline;
	Interval *wait = fixture_interval(t, thread, from * STEP, STATE_BLOCKED, reason);

	if (waker == THREAD_NONE)
		wait->flags = INTERVAL_WAKER_IRQ;
	else
		wait->waker = t->threads.items[waker].task;
	fixture_interval(t, thread, to * STEP, STATE_RUNNING, REASON_NONE);
	return t->threads.items[thread].intervals.count - 2;
}

static void begin(Fixture *fixture)
{
	fixture->timeline = fixture_new(LAST_STEP * STEP);
	fixture->process = fixture_process(fixture->timeline, 1, "python", 0, LAST_STEP * STEP);
}

/* holder: a thread, or THREAD_NONE. */
static void expect(const Fixture *fixture, uint32_t thread, size_t wait, uint32_t holder)
{
	const Timeline *t = fixture->timeline;

	assert_int_equal(t->threads.items[thread].intervals.items[wait].lock_holder,
			 holder == THREAD_NONE ? THREAD_NONE : t->threads.items[holder].task);
}

/* b and c wait for a, then c for b: b took the lock in between, without another wait. */
static void test_next_that_lets_go(void **state)
{
	Fixture fixture;
	uint32_t a, b, c;
	size_t first, second, third, last, mutex;

	(void)state;
	begin(&fixture);
	a = add_thread(&fixture, 1);
	b = add_thread(&fixture, 2);
	c = add_thread(&fixture, 3);
	first = add_wait(&fixture, b, 1, 2, THREAD_NONE, REASON_GIL);
	second = add_wait(&fixture, b, 2, 3, a, REASON_GIL);
	third = add_wait(&fixture, c, 1, 4, THREAD_NONE, REASON_GIL);
	last = add_wait(&fixture, c, 4, 5, b, REASON_GIL);
	mutex = add_wait(&fixture, c, 6, 7, b, REASON_MUTEX);
	fixture_finish(fixture.timeline);
	wait_find_gil_holders(fixture.timeline);
	expect(&fixture, b, first, a);
	expect(&fixture, b, second, a);
	expect(&fixture, c, third, b);
	expect(&fixture, c, last, b);
	expect(&fixture, c, mutex, THREAD_NONE);
	timeline_free(fixture.timeline);
}

/*
 * No thread was seen to release it: after the last release, in another process, or by the waiter.
 */
static void test_unknown_holder(void **state)
{
	Fixture fixture, other;
	uint32_t a, b, outsider;
	size_t to_itself, late, foreign;

	(void)state;
	begin(&fixture);
	a = add_thread(&fixture, 1);
	b = add_thread(&fixture, 2);
	other = (Fixture){
		.timeline = fixture.timeline,
		.process = fixture_process(fixture.timeline, 7, "python", 0, LAST_STEP * STEP)};
	outsider = add_thread(&other, 7);
	foreign = add_wait(&other, outsider, 1, 2, a, REASON_GIL);
	to_itself = add_wait(&fixture, b, 1, 2, THREAD_NONE, REASON_GIL);
	add_wait(&fixture, a, 2, 4, b, REASON_GIL);
	late = add_wait(&fixture, a, 5, 6, THREAD_NONE, REASON_GIL);
	fixture_finish(fixture.timeline);
	wait_find_gil_holders(fixture.timeline);
	expect(&fixture, outsider, foreign, THREAD_NONE);
	expect(&fixture, b, to_itself, THREAD_NONE);
	expect(&fixture, a, late, THREAD_NONE);
	timeline_free(fixture.timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_next_that_lets_go),
		cmocka_unit_test(test_unknown_holder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
