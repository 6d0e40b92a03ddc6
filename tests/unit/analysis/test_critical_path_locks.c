/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The critical path through waits for the lock of an interpreter, which are many parts. */
#include "critical_path.h"
#include "path_waits.h"
#include "timeline_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define MS_NS	  NSEC_PER_MSEC
#define LAST_MS	  30
#define PART_MS	  5
#define CHANGE_MS 15 /* where a thread has the lock first, and another one last */
#define A_LOCK	  0x1000
#define B_LOCK	  0x2000

typedef struct Fixture {
	Timeline *timeline;
	uint32_t process;
	uint32_t threads[3]; /* a, b, c */
} Fixture;

static Thread *thread_of(const Fixture *f, int thread)
{
	return &f->timeline->threads.items[f->threads[thread]];
}

static void begin(Fixture *f)
{
	f->timeline = fixture_new(LAST_MS * MS_NS);
	f->process = fixture_process(f->timeline, 1, "python", 0, LAST_MS * MS_NS);
	for (int i = 0; i < 3; i++) {
		f->threads[i] =
			fixture_thread(f->timeline, f->process, i + 1, "t", 0, LAST_MS * MS_NS);
		fixture_interval(f->timeline, f->threads[i], 0, STATE_RUNNING, REASON_NONE);
	}
}

/* waker: -1 = a timer. */
static void waits(Fixture *f, int thread, uint64_t from_ns, uint64_t to_ns, int waker,
		  enum reason reason)
{
	Interval *wait =
		fixture_interval(f->timeline, f->threads[thread], from_ns, STATE_BLOCKED, reason);

	if (waker < 0)
		wait->flags = INTERVAL_WAKER_IRQ;
	else
		wait->waker = thread_of(f, waker)->task;
	fixture_interval(f->timeline, f->threads[thread], to_ns, STATE_RUNNING, REASON_NONE);
}

/*
 * The thread waits for the lock, which `first` has at the beginning, in parts of 5 ms. The last
 * part is ended by `last`.
 */
static void wants(Fixture *f, int thread, int from_ms, int to_ms, int first, int last,
		  uint64_t lock)
{
	for (int ms = from_ms; ms < to_ms; ms += PART_MS) {
		uint64_t start_ns = ms * MS_NS + (ms > from_ms ? NSEC_PER_USEC : 0);
		bool ends = ms + PART_MS >= to_ms;

		waits(f, thread, start_ns, MIN(ms + PART_MS, to_ms) * MS_NS, ends ? last : -1,
		      REASON_GIL);
		*vec_push(&thread_of(f, thread)->lock_waits) = (LockWait){
			.start_ns = FIXTURE_START + start_ns,
			.address = lock,
			.holder = thread_of(f, ms >= CHANGE_MS && last >= 0 ? last : first)->task,
			.held = true,
		};
	}
}

/* Draws which thread is on the path of a in each millisecond; in capitals if it ran. */
static void expect(Fixture *f, const char *wanted)
{
	char drawn[LAST_MS + 1] = {};
	const Thread *track = &f->timeline->path.track;

	fixture_finish(f->timeline);
	critical_path_find(f->timeline, f->threads[0]);
	memset(drawn, '.', LAST_MS);
	for (size_t i = 0; i < track->intervals.count; i++)
		for (int ms = 0; ms < LAST_MS; ms++) {
			uint64_t ns = FIXTURE_START + ms * MS_NS + MS_NS / 2;

			if (ns < track->intervals.items[i].start_ns || ns >= interval_end(track, i))
				continue;
			for (int t = 0; t < 3; t++)
				if (track->owners.items[i] == f->threads[t])
					drawn[ms] =
						(track->intervals.items[i].state == STATE_RUNNING
							 ? 'A'
							 : 'a') +
						t;
		}
	assert_string_equal(drawn, wanted);
	timeline_free(f->timeline);
}

/* b sleeps with the lock: that a's time limit woke it in between means nothing. */
static void test_sleep_of_the_holder(void **state)
{
	Fixture f;

	(void)state;
	begin(&f);
	waits(&f, 1, 3 * MS_NS, 24 * MS_NS, -1, REASON_SLEEP);
	wants(&f, 0, 2, 25, 1, 1, A_LOCK);
	expect(&f, "BBBbbbbbbbbbbbbbbbbbbbbbBAAAAA");
}

/* A holder that slept before a did gives back to it when a began to wait. */
static void test_sleep_that_began_before(void **state)
{
	Fixture f;

	(void)state;
	begin(&f);
	waits(&f, 1, 1 * MS_NS, 24 * MS_NS, -1, REASON_SLEEP);
	wants(&f, 0, 8, 25, 1, 1, A_LOCK);
	expect(&f, "AAAAAAAAbbbbbbbbbbbbbbbbBAAAAA");
}

/* c has the lock first. b sleeps without it then, and has it when a gets it. */
static void test_two_holders(void **state)
{
	Fixture f;

	(void)state;
	begin(&f);
	waits(&f, 1, 4 * MS_NS, 14 * MS_NS, -1, REASON_SLEEP);
	wants(&f, 1, 14, 15, 2, 2, A_LOCK);
	wants(&f, 0, 2, 25, 2, 1, A_LOCK);
	expect(&f, "CCCCCCCCCCCCCCCBBBBBBBBBBAAAAA");
}

/* b took the lock when c released it, without a wait; another thread was woken for nothing. */
static void test_holder_that_did_not_wait(void **state)
{
	Fixture f;
	uint32_t other;

	(void)state;
	begin(&f);
	waits(&f, 1, 4 * MS_NS, 14 * MS_NS, -1, REASON_SLEEP);
	other = fixture_thread(f.timeline, f.process, 9, "t", 0, LAST_MS * MS_NS);
	fixture_interval(f.timeline, other, 0, STATE_RUNNING, REASON_NONE);
	fixture_interval(f.timeline, other, 1, STATE_BLOCKED, REASON_GIL)->waker =
		thread_of(&f, 2)->task;
	*vec_push(&f.timeline->threads.items[other].lock_waits) =
		(LockWait){.start_ns = FIXTURE_START + 1, .address = A_LOCK, .holder = THREAD_NONE};
	fixture_interval(f.timeline, other, 15 * MS_NS, STATE_RUNNING, REASON_NONE);
	wants(&f, 0, 2, 25, 2, 1, A_LOCK);
	expect(&f, "CCCCCCCCCCCCCCCBBBBBBBBBBAAAAA");
}

/* No release by c was seen, but b has the lock when the part at 17 ms begins. */
static void test_unseen_release(void **state)
{
	Fixture f;

	(void)state;
	begin(&f);
	waits(&f, 1, 4 * MS_NS, 14 * MS_NS, -1, REASON_SLEEP);
	wants(&f, 0, 2, 25, 2, 1, A_LOCK);
	expect(&f, "CCCCCCCCCCCCCCCCCBBBBBBBBAAAAA");
}

/* b has released the lock for c, which takes it late. */
static void test_handover(void **state)
{
	Fixture f;

	(void)state;
	begin(&f);
	waits(&f, 1, 20 * MS_NS, 24 * MS_NS, 2, REASON_GIL_HANDOVER);
	wants(&f, 0, 2, 25, 1, 1, A_LOCK);
	expect(&f, "BBBBBBBBBBBBBBBBBBBBbbbbBAAAAA");
}

/* The releases of another lock of the process do not count. */
static void test_another_lock(void **state)
{
	Fixture f;

	(void)state;
	begin(&f);
	wants(&f, 2, 10, 15, 1, 1, B_LOCK);
	wants(&f, 0, 2, 25, 1, 1, A_LOCK);
	expect(&f, "BBBBBBBBBBBBBBBBBBBBBBBBBAAAAA");
}

/* The last part of the wait ended by its time limit, just when the lock was free. */
static void test_time_limit(void **state)
{
	Fixture f;

	(void)state;
	begin(&f);
	wants(&f, 0, 2, 25, 1, -1, A_LOCK);
	expect(&f, "BBBBBBBBBBBBBBBBBBBBBBBBBAAAAA");
}

/* b waits for c, and keeps the lock. */
static void test_holder_that_waits_for_a_thread(void **state)
{
	Fixture f;

	(void)state;
	begin(&f);
	waits(&f, 1, 5 * MS_NS, 20 * MS_NS, 2, REASON_MUTEX);
	wants(&f, 0, 2, 25, 1, 1, A_LOCK);
	expect(&f, "CCCCCCCCCCCCCCCCCCCCBBBBBAAAAA");
}

/* All parts of a's wait are charged with what b did in them, and none with more than it took. */
static void test_charge(void **state)
{
	Fixture f;
	PathWaits waits_of_path;
	uint64_t ns = 0;

	(void)state;
	begin(&f);
	waits(&f, 1, 3 * MS_NS, 24 * MS_NS, -1, REASON_SLEEP);
	wants(&f, 0, 2, 25, 1, 1, A_LOCK);
	fixture_finish(f.timeline);
	critical_path_find(f.timeline, f.threads[0]);
	waits_of_path = path_waits_find(f.timeline);
	for (size_t i = 0; i < waits_of_path.count; i++) {
		const PathWait *wait = &waits_of_path.items[i];

		if (wait->thread != f.threads[0])
			continue;
		assert_true(wait->ns <=
			    interval_end(thread_of(&f, 0), wait->interval) -
				    thread_of(&f, 0)->intervals.items[wait->interval].start_ns);
		ns += wait->ns;
	}
	/* After each of the first four parts it was awake for 1 us. */
	assert_int_equal(ns, 23 * MS_NS - 4 * NSEC_PER_USEC);
	vec_free(&waits_of_path);
	timeline_free(f.timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleep_of_the_holder),
		cmocka_unit_test(test_sleep_that_began_before),
		cmocka_unit_test(test_two_holders),
		cmocka_unit_test(test_holder_that_did_not_wait),
		cmocka_unit_test(test_unseen_release),
		cmocka_unit_test(test_handover),
		cmocka_unit_test(test_another_lock),
		cmocka_unit_test(test_time_limit),
		cmocka_unit_test(test_holder_that_waits_for_a_thread),
		cmocka_unit_test(test_charge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
