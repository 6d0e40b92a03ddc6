/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of waits, and the places of the summary. */
#include "print_report.h"
#include "test_tools.h"
#include "timeline_fixture.h"

#define MS NSEC_PER_MSEC

static void print_places(FILE *file, const Timeline *timeline, Frames *frames)
{
	print_section(file, timeline, frames, "places");
}

static void print_objects(FILE *file, const Timeline *timeline, Frames *frames)
{
	print_section(file, timeline, frames, "objects");
}

static void print_idle(FILE *file, const Timeline *timeline, Frames *frames)
{
	print_section(file, timeline, frames, "idle");
}

/* Ten kinds of waits beside what is idle, which stands apart; what is unknown is no wait. */
static void test_largest_waits(void **state)
{
	static const enum reason reasons[] = {
		REASON_LOST,	  REASON_IDLE_EPOLL, REASON_IDLE_ACCEPT, REASON_MUTEX,
		REASON_RWLOCK,	  REASON_CONDVAR,    REASON_JOIN,	 REASON_CHILD,
		REASON_PIPE_READ, REASON_PIPE_WRITE, REASON_SLEEP,	 REASON_NETWORK_RECEIVE,
		REASON_DISK_READ, REASON_DISK_WRITE,
	};
	Timeline *t = fixture_new(200 * MS);
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 1, "a", 0, 200 * MS), 1, "a", 0, 200 * MS);
	uint64_t ns = 0;
	char *waits;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		fixture_interval(t, thread, ns, i ? STATE_BLOCKED : STATE_UNKNOWN, reasons[i]);
		ns += (20 - i) * MS;
	}
	fixture_interval(t, thread, ns, STATE_RUNNING, REASON_NONE);
	fixture_finish(t);
	check_contains(print_idle, t, "idle (not counted as waits)\n");
	check_contains(print_idle, t, "   19.000 ms          1    19.000 ms  [idle: epoll]\n");
	check_contains(print_idle, t, "   18.000 ms          1    18.000 ms  [idle: accept]\n");
	waits = report_text(print_objects, t);
	assert_null(strstr(waits, "[unknown"));
	assert_null(strstr(waits, "[idle"));
	/* What is not shown is summed up, so that each table is whole. */
	assert_non_null(strstr(waits, "    7.000 ms          1     7.000 ms  1 other\n"));
	check_contains(print_places, t,
		       "where the time of 1 thread went: 163.000 ms (and 37.000 ms idle, ");
	check_contains(print_places, t, "   17.000 ms  10.4 %  [mutex wait]\n");
	check_contains(print_places, t, "   24.000 ms  14.7 %  3 others\n");
	for (size_t i = 3; i < ARRAY_LEN(reasons); i++) {
		bool found = strstr(waits, reason_info[reasons[i]].leaf);

		assert_int_equal(found, i < 3 + 10);
	}
	free(waits);
	timeline_free(t);
}

/* What is idle and what is between jobs is neither in the summary nor among the waits. */
static void test_between_jobs(void **state)
{
	Timeline *t = fixture_new(100 * MS);
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 1, "a", 0, 100 * MS), 1, "a", 0, 100 * MS);
	char *text, *waits;

	(void)state;
	fixture_interval(t, thread, 0, STATE_BLOCKED, REASON_BETWEEN_JOBS_CONDVAR);
	fixture_interval(t, thread, 30 * MS, STATE_BLOCKED, REASON_IDLE_SIGNAL);
	fixture_interval(t, thread, 50 * MS, STATE_BLOCKED, REASON_CONDVAR);
	/* The thread is then runnable for 5 ms, which is worth a word, and for 1 ms, which is not.
	 */
	fixture_interval(t, thread, 60 * MS, STATE_RUNNABLE, REASON_WOKEN);
	fixture_interval(t, thread, 65 * MS, STATE_BLOCKED, REASON_MUTEX);
	fixture_interval(t, thread, 95 * MS, STATE_RUNNABLE, REASON_WOKEN);
	fixture_interval(t, thread, 96 * MS, STATE_RUNNING, REASON_NONE);
	fixture_finish(t);
	check_contains(print_full, t,
		       "where the time of 1 thread went: 50.000 ms (and 20.000 ms idle, "
		       "30.000 ms between jobs, not counted here)\n");
	check_lacks(print_summary, t, "[between jobs");
	check_contains(print_full, t,
		       "between jobs (not counted as waits)\n   30.000 ms          1    30.000 ms  "
		       "[between jobs: condition variable]\n");
	text = report_text(print_full, t);
	waits = strstr(text, "waits by reason and object\n");
	assert_non_null(waits);
	assert_non_null(strstr(waits, "[condition variable wait], then 5.000 ms runnable\n"));
	assert_non_null(strstr(waits, "[mutex wait]\n"));
	free(text);
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_largest_waits),
		cmocka_unit_test(test_between_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
