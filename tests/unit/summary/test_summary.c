/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "accounts.h"
#include "print_report.h"
#include "summary.h"
#include "test_tools.h"
#include "timeline_fixture.h"

#define MS NSEC_PER_MSEC

static size_t lines_of(const char *text)
{
	size_t lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

/* A command that runs, waits for a disk and has idle threads; many other processes. */
static Timeline *make_timeline(size_t processes)
{
	Timeline *t = fixture_new(100 * MS);
	uint32_t process = fixture_process(t, 7, "app", 0, 100 * MS);
	uint32_t main = fixture_thread(t, process, 7, "app", 0, 100 * MS);

	t->command_thread = main;
	fixture_meta(t, "command", "app --fast");
	fixture_meta(t, "cpus", "4");
	fixture_interval(t, main, 0, STATE_RUNNING, REASON_NONE);
	fixture_interval(t, main, 15 * MS, STATE_BLOCKED, REASON_DISK_READ);
	fixture_interval(t, main, 75 * MS, STATE_RUNNABLE, REASON_WOKEN);
	for (size_t i = 0; i < processes; i++) {
		char name[32];

		snprintf(name, sizeof(name), "p%zu", i);
		fixture_running_process(t, 100 + i, name, i * MS / 10, 60 * MS + i * MS / 10);
	}
	fixture_finish(t);
	t->complete = true;
	t->processes.items[process].exited_in_window = true;
	return t;
}

static void test_lines(void **state)
{
	Timeline *t = make_timeline(0);

	(void)state;
	check_contains(print_summary, t, "took 100.000 ms (1 thread); time of app:\n");
	check_contains(print_summary, t, " 60.0 %  60.000 ms  app: [disk read wait]\n");
	check_contains(print_summary, t, " 25.0 %  25.000 ms  app: [runnable: woken]\n");
	check_contains(print_summary, t, " 15.0 %  15.000 ms  app: running\n");
	check_contains(print_summary, t,
		       "CPUs: used 4 % of 4; up to 1 thread wanted one, and "
		       "waited 25.000 ms\n");
	check_contains(print_summary, t,
		       "next: wallprof open dir/out.json.gz, or wallprof report dir/out.capture\n");
	check_lacks(print_summary, t, "lost");
	check_lacks(print_summary, t, "real ");
	check_contains(print_accounts, t, "time by state: running 15.000 ms + runnable 25.000 ms");
	timeline_free(t);
}

/* A part that is small beside the largest has no line, nor has a wait for a CPU that is short. */
static void test_small_parts(void **state)
{
	Timeline *t = make_timeline(0);

	(void)state;
	t->threads.items[0].intervals.items[1].start_ns -= 13 * MS;
	t->threads.items[0].intervals.items[2].start_ns += 24 * MS;
	t->threads.items[0].ledger[STATE_RUNNABLE] = MS;
	check_contains(print_summary, t, " 97.0 %  97.000 ms  app: [disk read wait]\n");
	check_contains(print_summary, t, "  2.0 %   2.000 ms  app: running\n");
	check_contains(print_summary, t, "  1.0 %   1.000 ms  1 smaller part\n");
	check_lacks(print_summary, t, "runnable");
	check_contains(print_summary, t, "\nCPUs: used 4 % of 4\n");
	timeline_free(t);
}

/* It has at most eight lines, whatever was recorded and lost. */
static void test_length(void **state)
{
	(void)state;
	for (size_t processes = 0; processes < 40; processes += 13) {
		Timeline *t = make_timeline(processes);
		char *text;

		t->missed_switches = 2;
		t->complete = false;
		t->totals[REC_SWITCH].lost = 42;
		t->cost_known = true;
		t->threads.items[0].recording.switches_ns = 10 * MS;
		t->threads.items[0].kernel =
			(KernelAccount){.known = true, .sum_exec_runtime = 90 * MS};
		text = report_text(print_summary, t);
		assert_true(lines_of(text) <= SUMMARY_LINES);
		assert_non_null(strstr(text, "42 switch"));
		assert_non_null(strstr(text, "wallprof open"));
		free(text);
		timeline_free(t);
	}
}

/*
 * What the scheduler's clock counted too much or too little is no disagreement, a run that the
 * timeline lacks is one.
 */
static void test_disagreement_by_clock(void **state)
{
	Timeline *t = make_timeline(0);
	KernelAccount *kernel = &t->threads.items[0].kernel;

	(void)state;
	*kernel = (KernelAccount){.known = true,
				  .sum_exec_runtime = 40 * MS,
				  .clock_known = true,
				  .clock_ahead = 25 * MS};
	check_lacks(print_summary, t, "the kernel says");
	kernel->sum_exec_runtime = MS;
	kernel->clock_ahead = -14 * (int64_t)MS;
	check_lacks(print_summary, t, "the kernel says");
	kernel->sum_exec_runtime = 65 * MS;
	kernel->clock_ahead = 25 * MS;
	check_contains(print_summary, t,
		       "the kernel says that these threads ran for 40.000 ms, not 15.000 ms");
	/* Its clock was behind by as much as the timeline lacks. */
	kernel->sum_exec_runtime = 15 * MS;
	kernel->clock_ahead = -25 * (int64_t)MS;
	check_contains(print_summary, t,
		       "the kernel says that these threads ran for 40.000 ms, not 15.000 ms");
	/* A damaged capture may hold any number; the sanitizers watch the sums. */
	kernel->clock_ahead = INT64_MIN;
	check_contains(print_summary, t, "the kernel says that these threads ran for");
	kernel->clock_ahead = INT64_MAX;
	check_contains(print_summary, t, "the kernel says that these threads ran for 0 s");
	timeline_free(t);
}

/* What disagrees with the kernel is said. */
static void test_disagreement(void **state)
{
	Timeline *t = make_timeline(0);

	(void)state;
	t->threads.items[0].kernel =
		(KernelAccount){.known = true, .sum_exec_runtime = 15 * MS + MS / 10};
	check_lacks(print_summary, t, "the kernel says");
	t->threads.items[0].kernel.sum_exec_runtime = 40 * MS;
	check_contains(print_summary, t,
		       "the kernel says that these threads ran for 40.000 ms, not 15.000 ms");
	timeline_free(t);
}

static void test_states(void **state)
{
	char *text = accounts_states_text(1 << STATE_RUNNABLE | 1 << STATE_UNKNOWN);

	(void)state;
	assert_string_equal(text, "only these states: running, blocked");
	free(text);
	assert_null(accounts_states_text(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_small_parts),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_disagreement),
		cmocka_unit_test(test_disagreement_by_clock),
		cmocka_unit_test(test_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
