/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpu_users.h"
#include "rivals_line.h"
#include "test_tools.h"
#include "timeline_fixture.h"

#define MS NSEC_PER_MSEC

static Timeline *new_timeline(void)
{
	Timeline *t = fixture_new(200 * MS);

	fixture_process(t, 10, "app", 0, 200 * MS);
	return t;
}

/* It runs on CPU 1 between two times, and sleeps afterwards. */
static void add_runner(Timeline *t, const char *name, uint64_t from, uint64_t to)
{
	uint32_t thread = fixture_thread(t, 0, 10 + t->threads.count, name, 0, 200 * MS);

	if (from > 0)
		fixture_interval(t, thread, 0, STATE_BLOCKED, REASON_SLEEP);
	fixture_interval(t, thread, from, STATE_RUNNING, REASON_NONE)->cpu = 1;
	fixture_interval(t, thread, to, STATE_BLOCKED, REASON_SLEEP);
}

static void add_victim(Timeline *t, uint64_t from, uint64_t to)
{
	uint32_t victim = fixture_thread(t, 0, 10 + t->threads.count, "victim", 0, 200 * MS);

	fixture_interval(t, victim, 0, STATE_BLOCKED, REASON_SLEEP);
	fixture_interval(t, victim, from, STATE_RUNNABLE, REASON_WOKEN)->cpu = 1;
	fixture_interval(t, victim, to, STATE_RUNNING, REASON_NONE)->cpu = 1;
}

static void expect_line(const Timeline *t, const char *expected)
{
	char *line = rivals_line_text(t);

	if (expected)
		assert_string_equal(line, expected);
	else
		assert_null(line);
	free(line);
}

/* Tasks of one name are one program, and what ran for a moment is not worth its place. */
static void test_names(void **state)
{
	Timeline *t = new_timeline();

	(void)state;
	add_runner(t, "cc1", 0, 60 * MS);
	add_runner(t, "gzip", 95 * MS, 146 * MS);
	add_runner(t, "cc1", 60 * MS, 95 * MS);
	add_runner(t, "blip", 146 * MS, 151 * MS);
	add_victim(t, 10 * MS, 151 * MS);
	fixture_finish(t);
	cpu_users_index(t);
	expect_line(t, "cc1 60 %, gzip 36 %");
	timeline_free(t);
}

static void test_most_lines(void **state)
{
	Timeline *t = new_timeline();

	(void)state;
	add_runner(t, "a", 0, 40 * MS);
	add_runner(t, "b\033[1m", 40 * MS, 70 * MS);
	add_runner(t, "c", 70 * MS, 90 * MS);
	add_runner(t, "d", 90 * MS, 100 * MS);
	add_victim(t, 0, 100 * MS);
	fixture_finish(t);
	cpu_users_index(t);
	expect_line(t, "a 40 %, b?[1m 30 %, c 20 %");
	timeline_free(t);
}

static void test_no_wait(void **state)
{
	Timeline *t = new_timeline();

	(void)state;
	add_runner(t, "a", 0, 40 * MS);
	fixture_finish(t);
	cpu_users_index(t);
	expect_line(t, NULL);
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_most_lines),
		cmocka_unit_test(test_no_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
