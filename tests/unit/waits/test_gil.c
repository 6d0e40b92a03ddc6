/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which thread has the GIL while others wait for it. Times are in steps of 10 ms. */
#include "event_fields.h"
#include "interpreter_locks.h"
#include "timeline_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
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
	interpreter_locks_find_holders(fixture.timeline);
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
	interpreter_locks_find_holders(fixture.timeline);
	expect(&fixture, outsider, foreign, THREAD_NONE);
	expect(&fixture, b, to_itself, THREAD_NONE);
	expect(&fixture, a, late, THREAD_NONE);
	timeline_free(fixture.timeline);
}

/* ---- turns of many parts ---------------------------------------------------------------- */

#define PARTS	    100000
#define PART_NS	    (5 * NSEC_PER_MSEC)
#define AGAIN_NS    NSEC_PER_USEC
#define CPU_SECONDS 20 /* searching the whole turn for each part takes minutes */

typedef struct Whole {
	uint64_t expected_ns;
	uint32_t parts;
} Whole;

static void check_field(void *user, const Field *field)
{
	Whole *whole = user;

	if (strcmp(field->key, "wholeWait") != 0)
		return;
	whole->parts += field->number == whole->expected_ns;
}

/* The fields of each part have the whole wait, and are written in a time in proportion to it. */
static void test_many_parts(void **state)
{
	uint64_t start_ns = NSEC_PER_MSEC, end_ns = start_ns + PARTS * (PART_NS + AGAIN_NS);
	Timeline *timeline = fixture_new(end_ns + PART_NS);
	uint32_t process = fixture_process(timeline, 1, "python", 0, end_ns + PART_NS);
	uint32_t holder = fixture_thread(timeline, process, 1, "a", 0, end_ns + PART_NS);
	uint32_t waiter = fixture_thread(timeline, process, 2, "b", 0, end_ns + PART_NS);
	Whole whole = {.expected_ns = PARTS * (PART_NS + AGAIN_NS) - AGAIN_NS};
	LockTurn turn = {};
	FieldSink sink = {
		.write = check_field, .user = &whole, .timeline = timeline, .turn = &turn};
	const Thread *thread;
	clock_t begin = clock();

	(void)state;
	fixture_interval(timeline, holder, 0, STATE_RUNNING, REASON_NONE);
	fixture_interval(timeline, waiter, 0, STATE_RUNNING, REASON_NONE);
	for (uint64_t i = 0; i < PARTS; i++) {
		uint64_t ns = start_ns + i * (PART_NS + AGAIN_NS);
		Interval *wait = fixture_interval(timeline, waiter, ns, STATE_BLOCKED, REASON_GIL);

		wait->flags = INTERVAL_WAKER_IRQ;
		wait->lock_holder = timeline->threads.items[holder].task;
		fixture_interval(timeline, waiter, ns + PART_NS, STATE_RUNNING, REASON_NONE);
	}
	fixture_finish(timeline);
	thread = &timeline->threads.items[waiter];
	for (size_t i = 0; i < thread->intervals.count; i++)
		if (interpreter_lock_is_wait(&thread->intervals.items[i]))
			event_fields_wait(&sink, thread, i);
	assert_int_equal(whole.parts, PARTS);
	assert_true(clock() - begin < CPU_SECONDS * CLOCKS_PER_SEC);
	timeline_free(timeline);
}

/* Adds a wait for a word of a lock. Returns the word's object. */
static uint32_t add_word(Fixture *fixture, uint32_t thread, int from, enum reason reason,
			 uint64_t lock, const char *word)
{
	Timeline *t = fixture->timeline;
	uint32_t object = t->objects.list.count;
	uint64_t ns = FIXTURE_START + from * STEP;

	add_wait(fixture, thread, from, from + 1, THREAD_NONE, reason);
	*vec_push(&t->objects.list) = (Object){.kind = OBJECT_FUTEX, .name = xstrdup(word)};
	*vec_push(&t->threads.items[thread].object_waits) =
		(ObjectWait){.start_ns = ns, .object = object};
	*vec_push(&t->threads.items[thread].lock_waits) =
		(LockWait){.start_ns = ns, .address = lock, .holder = THREAD_NONE};
	return object;
}

/* Both words of a condition variable are one object; those of other variables and locks are not. */
static void test_words_of_a_lock(void **state)
{
	Fixture f;
	uint32_t a, words[4];

	(void)state;
	begin(&f);
	a = add_thread(&f, 1);
	words[0] = add_word(&f, a, 10, REASON_GIL, 0x1000, "0x1020");
	words[1] = add_word(&f, a, 20, REASON_GIL, 0x1000, "0x1024");
	words[2] = add_word(&f, a, 30, REASON_GIL_HANDOVER, 0x1000, "0x1078");
	words[3] = add_word(&f, a, 40, REASON_GIL, 0x2000, "0x2020");
	fixture_finish(f.timeline);
	objects_find_alike(&f.timeline->objects);
	interpreter_locks_join_words(f.timeline);
	assert_int_equal(objects_alike(&f.timeline->objects, words[1]),
			 objects_alike(&f.timeline->objects, words[0]));
	assert_int_equal(objects_alike(&f.timeline->objects, words[2]), words[2]);
	assert_int_equal(objects_alike(&f.timeline->objects, words[3]), words[3]);
	timeline_free(f.timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_next_that_lets_go),
		cmocka_unit_test(test_unknown_holder),
		cmocka_unit_test(test_many_parts),
		cmocka_unit_test(test_words_of_a_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
