/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that wait for locks of each other are found, and nothing that only looks like it. */
#include "deadlock.h"
#include "test_tools.h"
#include "timeline_fixture.h"
#include "util.h"
#include <string.h>

#define MS	NSEC_PER_MSEC
#define THREADS 4

static const char *const names[THREADS] = {"bank", "b", "c", "d"};

/* Thread i runs until i + 1 ms, then waits for lock i, and thread holders[i] has it (-1: none). */
static Timeline *make_waits(const int *holders)
{
	Timeline *t = fixture_new(100 * MS);
	uint32_t process = fixture_process(t, 7, "bank", 0, 100 * MS);
	uint32_t stack = fixture_stack(t, 0x1000, true);

	t->stacks.items[stack].basis = strings_intern(&t->basis, "___pthread_mutex_lock") + 1;

	for (uint32_t i = 0; i < THREADS; i++) {
		uint32_t thread = fixture_thread(t, process, 7 + i, names[i], 0, 100 * MS);
		uint32_t lock = objects_reference(&t->objects, OBJECT_FUTEX, 7, 100 + i, 1);
		Interval *wait;

		free(t->objects.list.items[lock].name);
		t->objects.list.items[lock].name =
			i == 3 ? xstrdup("0x3 (heap)") : xasprintf("0x%u (bank: lock%u)", i, i);
		fixture_interval(t, thread, 0, STATE_RUNNING, REASON_NONE);
		wait = fixture_interval(t, thread, (i + 1) * MS, STATE_BLOCKED, REASON_MUTEX);
		wait->flags = INTERVAL_OPEN_END;
		wait->user_stack = stack;
		wait->lock_holder = holders[i] < 0 ? THREAD_NONE
						   : t->threads.items[thread].task + holders[i] - i;
		*vec_push(&t->threads.items[thread].object_waits) =
			(ObjectWait){wait->start_ns, lock};
	}
	fixture_finish(t);
	objects_find_alike(&t->objects);
	return t;
}

static Interval *wait_of(Timeline *t, int thread)
{
	return &t->threads.items[thread].intervals.items[1];
}

static void expect(Timeline *t, const char *expected)
{
	_cleanup_free_ char *text = deadlock_text(t);

	if (expected)
		assert_string_equal(text ? text : "none", expected);
	else
		assert_null(text);
}

#define CIRCLE                                                                                     \
	"deadlock: bank (7) waits for lock0, held by b (8), which waits for lock1, held by bank "  \
	"(7)"

static void test_circles(void **state)
{
	static const int two[] = {1, 0, -1, -1}, behind[] = {1, 2, 1, 0}, all[] = {1, 2, 3, 0},
			 none[] = {1, 2, 3, -1};
	Timeline *t;

	(void)state;
	t = make_waits(two);
	expect(t, CIRCLE);
	timeline_free(t);
	/* Two threads that wait behind a circle are not of it. */
	t = make_waits(behind);
	expect(t, "deadlock: b (8) waits for lock1, held by c (9), which waits for lock2, held "
		  "by b (8)");
	timeline_free(t);
	t = make_waits(all);
	expect(t, "deadlock: bank (7) waits for lock0, held by b (8), which waits for lock1, held "
		  "by c (9), "
		  "which waits for lock2, held by d (10), which waits for a lock at 0x3 (heap), "
		  "held by bank (7)");
	timeline_free(t);
	t = make_waits(none);
	expect(t, NULL);
	timeline_free(t);
}

static void test_no_circle(void **state)
{
	static const int two[] = {1, 0, -1, -1};
	Timeline *t = make_waits(two);

	(void)state;
	/* One of them goes on. */
	wait_of(t, 0)->flags = 0;
	expect(t, NULL);
	wait_of(t, 0)->flags = INTERVAL_OPEN_END;
	/* What it waits for is no lock. */
	wait_of(t, 1)->reason = REASON_FUTEX;
	expect(t, NULL);
	wait_of(t, 1)->reason = REASON_MUTEX;
	/* Another thread's wait for the same lock ends later: it may have the lock now. */
	t->threads.items[3].object_waits.items[0].object =
		t->threads.items[0].object_waits.items[0].object;
	expect(t, CIRCLE);
	wait_of(t, 3)->flags = 0;
	t->threads.items[3].end_ns = t->start_ns + 50 * MS;
	expect(t, NULL);
	timeline_free(t);
}

/* The functions in which threads wait are of a mutex with an owner, and without a time limit. */
static void test_functions(void **state)
{
	static const struct {
		const char *function;
		bool counts;
	} cases[] = {
		{"__lll_lock_wait", true},
		{"pthread_mutex_lock@GLIBC_2.2.5", true},
		{"__GI___lll_lock_wait_private", false},
		{"pthread_mutex_timedlock", false},
		{"<std::sys::sync::mutex::futex::Mutex>::lock_contended", false},
		{"pthread_rwlock_wrlock", false},
	};
	static const int two[] = {1, 0, -1, -1};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Timeline *t = make_waits(two);

		t->stacks.items[wait_of(t, 0)->user_stack].basis =
			strings_intern(&t->basis, cases[i].function) + 1;
		expect(t, cases[i].counts ? CIRCLE : NULL);
		timeline_free(t);
	}
}

/* What is not known may be that another thread has got a lock. */
static void test_unknown(void **state)
{
	static const int two[] = {1, 0, -1, -1};
	Timeline *t = make_waits(two);

	(void)state;
	t->partial = true;
	expect(t, NULL);
	t->partial = false;
	wait_of(t, 3)->state = STATE_UNKNOWN;
	expect(t, NULL);
	wait_of(t, 3)->state = STATE_BLOCKED;
	wait_of(t, 0)->flags |= INTERVAL_OPEN_START;
	expect(t, CIRCLE);
	t->cut = true;
	expect(t, NULL);
	t->cut = false;
	wait_of(t, 1)->unsampled = true;
	expect(t, NULL);
	timeline_free(t);
}

/* A process that was killed in the circle: the kill ends the waits. */
static void test_killed(void **state)
{
	static const int two[] = {1, 0, -1, -1};
	Timeline *t = make_waits(two);

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		wait_of(t, i)->flags = 0;
		fixture_interval(t, i, 99 * MS, STATE_RUNNING, REASON_NONE);
		*vec_push(&t->threads.items[i].waker_stacks) =
			(WakerStack){.start_ns = wait_of(t, i)->start_ns, .by_signal = true};
	}
	expect(t, CIRCLE);
	/* Something else ended one of the waits: the thread got its lock. */
	t->threads.items[0].waker_stacks.items[0].by_signal = false;
	expect(t, NULL);
	t->threads.items[0].waker_stacks.items[0].by_signal = true;
	/* The first wait was over when the second one began. */
	t->threads.items[0].intervals.items[2].start_ns = wait_of(t, 1)->start_ns;
	expect(t, NULL);
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_circles),	  cmocka_unit_test(test_no_circle),
		cmocka_unit_test(test_functions), cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
