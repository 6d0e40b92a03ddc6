/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to a disk on the path. */
#include "critical_path.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#include "path_scenario.h"

#define D     0x2 /* TASK_UNINTERRUPTIBLE */
#define PREAD 17

/* What was computed while the request was in flight did not make the run longer. */
static void test_waits_for_a_request(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 12);
	s.next_out.fd_kind = 1;
	out_call(at(&s, 5), 20, D, PREAD);
	read_completes(at(&s, 8), 20, 3, 0);
	wake_by_irq(at(&s, 8), 20);
	in(at(&s, 9), 20, 0);
	scenario_finish(&s);
	expect_path(&s, 20, "AAAaaaaaaAAA");
	assert_int_equal(s.timeline->path.track.ledger[STATE_BLOCKED], 5 * NSEC_PER_MSEC);
	/* Asleep for it from 5 on: until then its own row says that it ran. */
	assert_int_equal(s.timeline->path.track.reason_ledger[REASON_ON_DEVICE], 2 * NSEC_PER_MSEC);
	assert_int_equal(s.timeline->path.track.intervals.items[1].reason, REASON_ON_DEVICE);
	assert_int_equal(critical_path_stretch(&s.timeline->path.track, 1), 2);
	assert_string_equal(critical_path_stretch_name(s.timeline, 1), "[on the device]");
	assert_int_equal(critical_path_stretch(&s.timeline->path.track, 2), 5);
	assert_string_equal(critical_path_stretch_name(s.timeline, 2), "born");
	scenario_free(&s);
}

/*
 * The thread sleeps until the device's queue has room, which the end of another thread's request
 * makes. Its own request is on the device from then on.
 */
static void test_waits_for_a_queue(void **state)
{
	const Thread *path;
	Thread *thread;
	Scenario s;

	(void)state;
	begin(&s, 14);
	create(&s, 0, 21, 20, 0);
	s.next_out.fd_kind = 1;
	s.next_out.h.flags = SWITCH_IOWAIT;
	out_call(at(&s, 3), 20, D, PREAD);
	read_completes(at(&s, 7), 21, 1, 0);
	wake_by_irq(at(&s, 7), 20);
	in(at(&s, 7), 20, 0);
	s.next_out.fd_kind = 1;
	out_call(at(&s, 9), 20, D, PREAD);
	read_completes(at(&s, 12), 20, 2, 0);
	wake_by_irq(at(&s, 12), 20);
	in(at(&s, 12), 20, 0);
	scenario_finish(&s);
	thread = &s.timeline->threads.items[0];
	assert_int_equal(thread_wait_request(thread, 1), 0);
	thread->intervals.items[1].reason = REASON_REQUEST_SLOT;
	s.timeline->requests.list.items[1].start_ns = scenario_ns(8);
	expect_path(&s, 20, "AAAaaaaaaaaaAA");
	path = &s.timeline->path.track;
	assert_int_equal(path->reason_ledger[REASON_REQUEST_SLOT], 4 * NSEC_PER_MSEC);
	assert_int_equal(path->reason_ledger[REASON_ON_DEVICE], 2 * NSEC_PER_MSEC);
	scenario_free(&s);
}

/* A worker submitted it for the thread while that slept already: before, nothing is known of it. */
static void test_request_of_a_worker(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 12);
	s.next_out.fd_kind = 1;
	out_call(at(&s, 3), 20, D, PREAD);
	read_completes(at(&s, 8), 20, 5, 0);
	wake_by_irq(at(&s, 8), 20);
	in(at(&s, 8), 20, 0);
	scenario_finish(&s);
	expect_path(&s, 20, "AAAaaaaaAAAA");
	scenario_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_for_a_request),
		cmocka_unit_test(test_waits_for_a_queue),
		cmocka_unit_test(test_request_of_a_worker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
