/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "json_reader.h"
#include "labels.h"
#include "print_report.h"
#include "record_info.h"
#include "test_tools.h"
#include "timeline_fixture.h"

#define MS NSEC_PER_MSEC

static void report_json_of_all(FILE *stream, const Timeline *timeline, Frames *frames)
{
	Output *output = output_for_stream(stream);

	report_json(output, timeline, frames, /* function= */ NULL);
	output_close(output);
}

/* A command of 100 ms: 10 ms user, 5 ms kernel, 20 ms disk, 65 ms idle; an idle thread. */
static Timeline *make_timeline(void)
{
	Timeline *t = fixture_new(100 * MS);
	uint32_t process = fixture_process(t, 7, "app", 0, 100 * MS);
	uint32_t main = fixture_thread(t, process, 7, "app", 0, 100 * MS);
	uint32_t other = fixture_thread(t, process, 8, "helper", 0, 100 * MS);

	t->command_thread = main;
	fixture_meta(t, "command", "app --fast");
	fixture_meta(t, "kernel", "6.1.0");
	fixture_interval(t, main, 0, STATE_RUNNING, REASON_NONE);
	fixture_interval(t, main, 15 * MS, STATE_BLOCKED, REASON_DISK_READ);
	fixture_interval(t, main, 35 * MS, STATE_BLOCKED, REASON_SLEEP);
	fixture_tick(t, main, 10 * MS, true);
	fixture_tick(t, main, 15 * MS - 1, false);
	fixture_interval(t, other, 0, STATE_BLOCKED, REASON_IDLE_POLL);
	fixture_finish(t);
	t->threads.items[main].switch_outs = 3;
	t->threads.items[main].kernel = (KernelAccount){
		.known = true,
		.sum_exec_runtime = 15 * MS - 5,
		.run_delay = 12345,
		.utime = 4 * MS,
		.stime = 12 * MS,
		.nvcsw = 2,
		.nivcsw = 1,
	};
	t->totals[REC_SWITCH].sent = t->totals[REC_SWITCH].received = 1000;
	return t;
}

static void test_accounts(void **state)
{
	Timeline *t = make_timeline();

	(void)state;
	check_contains(print_accounts, t,
		       "real 100.000 ms = user 10.000 ms + sys 5.000 ms + waited 85.000 ms");
	check_contains(print_accounts, t,
		       "running 15.000 ms + runnable 0 s + blocked 185.000 ms + unknown 0 s = "
		       "lifetime 200.000 ms");
	check_contains(print_accounts, t,
		       ": 1 thread, sum_exec_runtime 15.000 ms (running 15.000 ms), "
		       "run_delay 12.3 us (runnable 0 s)");
	check_contains(print_accounts, t, "\nno events lost\n");
	check_lacks(print_accounts, t, "did not trace");
	check_lacks(print_accounts, t, "cut off");
	t->threads.items[0].kernel.clock_known = true;
	t->threads.items[0].kernel.clock_ahead = -2 * (int64_t)MS;
	check_contains(
		print_accounts, t,
		"sum_exec_runtime 15.000 ms (running 15.000 ms, scheduler clock -2.000 ms), ");
	t->threads.items[0].kernel.clock_ahead = 3 * MS;
	check_contains(print_accounts, t, "(running 15.000 ms, scheduler clock +3.000 ms), ");
	timeline_free(t);
}

/* Steal time is reported where it is more than the kernel's 10 ms and 1 % of the CPUs'
 * time. */
static void test_stolen(void **state)
{
	static const struct {
		const char *at_end;
		bool is_reported;
	} cases[] = {{"1040000000", true}, {"1010000000", false}, {"900000000", false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Timeline *t = make_timeline();

		fixture_meta(t, "cpus", "4");
		fixture_meta(t, "stolen_at_start_ns", "1000000000");
		check_lacks(print_accounts, t, "steal time:");
		fixture_meta(t, "stolen_at_end_ns", cases[i].at_end);
		if (cases[i].is_reported)
			check_contains(print_accounts, t,
				       "steal time: 40.000 ms (10.0 % of CPU time)");
		else
			check_lacks(print_accounts, t, "steal time:");
		timeline_free(t);
	}
}

/* Without ticks the kernel's own split is used; without that there is none. */
static void test_times_without_ticks(void **state)
{
	Timeline *t = make_timeline();

	(void)state;
	t->threads.items[0].ticks.count = 0;
	check_contains(print_accounts, t, "= user 3.750 ms + sys 11.250 ms + waited");
	/* Of a damaged capture, also if they are more than any integer. */
	t->threads.items[0].kernel.utime = t->threads.items[0].kernel.stime = UINT64_MAX;
	check_contains(print_accounts, t, "= user 7.500 ms + sys 7.500 ms + waited");
	t->threads.items[0].kernel.known = false;
	check_contains(print_accounts, t, "= user and sys 15.000 ms + waited 85.000 ms");
	check_contains(print_accounts, t, "kernel accounting: not received");
	t->command_thread = THREAD_NONE;
	check_contains(print_accounts, t, "real 100.000 ms, 2 threads in 1 process\n");
	timeline_free(t);
}

static void test_no_run_delay(void **state)
{
	Timeline *t = make_timeline();
	char *text;
	Node *node;

	(void)state;
	t->threads.items[0].kernel.run_delay = UINT64_MAX;
	check_lacks(print_accounts, t, "run_delay");
	text = report_text(report_json_of_all, t);
	node = node_read(text);
	const Node *kernel = node_get(node_at(node_get(node, "threads"), 0), "kernel");
	assert_int_equal(node_get(kernel, "run_delay")->type, 'n');
	node_free(node);
	free(text);
	timeline_free(t);
}

static void add_losses(Timeline *t)
{
	t->totals[REC_SWITCH].sent = 1000;
	t->totals[REC_SWITCH].received = 958;
	t->totals[REC_SWITCH].lost = 42;
	*vec_push(&t->losses) = (LossSpan){REC_SWITCH, LOSS_RING_FULL,	   3,
					   42,	       FIXTURE_START + MS, FIXTURE_START + 3 * MS};
	*vec_push(&t->losses) =
		(LossSpan){REC_MAPPING, LOSS_SIDEBAND, 0, 5, FIXTURE_START, FIXTURE_START};
	t->missed_switches = 2;
	t->complete = false;
}

static void test_losses(void **state)
{
	Timeline *t = make_timeline();

	(void)state;
	add_losses(t);
	check_contains(print_accounts, t,
		       "events lost: 42 switch of 1000, 5 mapping (shown as unknown");
	check_contains(print_accounts, t,
		       "as markers)\n      the kernel did not trace 2 context switches (");
	check_contains(print_accounts, t, "cut off");
	check_contains(print_full, t,
		       "      42     1.000 ms     2.000 ms  switch on CPU 3: ring full\n");
	t->losses.items[0].from_ns -= 6 * MS;
	t->losses.items[0].to_ns -= 6 * MS;
	check_contains(print_full, t,
		       "      42    before it     2.000 ms  switch on CPU 3: ring full\n");
	timeline_free(t);
}

/* For a part of a recording, losses in it and losses elsewhere are separate. */
static void test_losses_elsewhere(void **state)
{
	Timeline *t = make_timeline();

	(void)state;
	add_losses(t);
	t->threads.items[0].kernel.known = false;
	fixture_meta(t, "flight_recorder_ns", "100000000");
	t->totals[REC_SWITCH].lost = 50;
	check_contains(print_accounts, t, "events lost: 42 switch, 5 mapping (shown as unknown");
	check_contains(print_accounts, t, "      lost in the rest of the recording: 8 switch\n");
	check_contains(print_accounts, t,
		       "kernel accounting: not available for a part of a recording\n");
	t->missed_switches = 0;
	t->losses.items[0].from_ns = t->losses.items[0].to_ns = FIXTURE_START - MS;
	t->losses.items[1].from_ns = t->losses.items[1].to_ns = FIXTURE_START - MS;
	check_contains(print_accounts, t,
		       "no events lost\n      lost in the rest of the recording: "
		       "50 switch, 5 mapping\n");
	timeline_free(t);
}

/* A chain that is broken without a loss is reported beside "nothing lost". */
static void test_not_traced(void **state)
{
	Timeline *t = make_timeline();

	(void)state;
	t->missed_switches = 1;
	t->threads.items[1].intervals.items[0].state = STATE_UNKNOWN;
	t->threads.items[1].intervals.items[0].reason = REASON_NOT_TRACED;
	check_contains(print_accounts, t,
		       "no events lost; the kernel did not trace 1 context switch (100.000 ms "
		       "unknown)\nnext:");
	timeline_free(t);
}

static void test_report(void **state)
{
	Timeline *t = make_timeline();

	(void)state;
	check_contains(print_full, t,
		       "app --fast\n100.000 ms, 2 threads in 1 process, kernel 6.1.0\n");
	check_contains(print_full, t, "helper (app)\n");
	check_contains(print_full, t, "  app\n");
	timeline_free(t);
}

static void print_io(FILE *file, const Timeline *timeline, Frames *frames)
{
	print_section(file, timeline, frames, "io");
}

/*
 * One makes 200 MB dirty, which others write to the disk, another reads 4 KiB in 1 ms: bytes are as
 * the kernel accounts them, the rate is that of requests.
 */
static void test_io_by_thread(void **state)
{
	Timeline *t = make_timeline();
	Thread *dirties = &t->threads.items[0], *reads = &t->threads.items[1];

	(void)state;
	dirties->kernel.write_bytes = 200000000;
	reads->kernel = (KernelAccount){.known = true, .read_bytes = 4096};
	*vec_push(&t->requests.list) = (Request){
		.submit_ns = FIXTURE_START + 10 * MS,
		.issue_ns = FIXTURE_START + 10 * MS,
		.end_ns = FIXTURE_START + 11 * MS,
		.bytes = 4096,
		.device = 8 << 20,
		.file = OBJECT_NONE,
		.user_stack = STACK_NONE,
		.task = reads->task,
		.thread = 1,
	};
	requests_device(&t->requests, 8 << 20);
	*vec_push(&reads->requests) = 0;
	check_contains(print_full, t, "0        200.0          0 s      0.0  app (7)");
	check_contains(print_full, t,
		       "1        0.0        0          0.0     1.000 ms      4.1  helper (8)");
	check_contains(print_full, t, "submitter unknown: 1 request\n");
	t->requests.list.items[0].flags = REQUEST_SUBMITTED;
	check_lacks(print_io, t, "not known of");
	/* A kernel without such accounts. */
	reads->kernel.read_bytes = dirties->kernel.write_bytes = 0;
	check_lacks(print_io, t, "  app (7)");
	check_contains(print_io, t, "  helper (8)");
	timeline_free(t);
}

/*
 * Five files, of which the first is waited for 8 ms, and read at 4 MB in 2 of them and 2 more;
 * three are shown, the others summed up.
 */
static void test_waited_objects(void **state)
{
	Timeline *t = fixture_new(200 * MS);
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 1, "a", 0, 200 * MS), 1, "a", 0, 200 * MS);
	const Node *last;
	char *text;
	Node *node;

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		uint64_t ns = 10 * i * MS;
		uint32_t object = objects_reference(&t->objects, OBJECT_FILE, 8 << 20, 10 + i, 0);

		fixture_interval(t, thread, ns, STATE_BLOCKED, REASON_DISK_READ);
		fixture_interval(t, thread, ns + (8 - i) * MS, STATE_RUNNING, REASON_NONE);
		*vec_push(&t->threads.items[thread].object_waits) =
			(ObjectWait){FIXTURE_START + ns, object};
	}
	*vec_push(&t->requests.list) = (Request){
		.submit_ns = FIXTURE_START + 6 * MS,
		.end_ns = FIXTURE_START + 10 * MS,
		.bytes = 4000000,
		.device = 8 << 20,
		.user_stack = STACK_NONE,
		.task = THREAD_NONE,
		.thread = THREAD_NONE,
	};
	requests_device(&t->requests, 8 << 20);
	*vec_push(&t->threads.items[thread].request_waits) = (RequestWait){0, 0};
	fixture_finish(t);
	check_contains(
		print_full, t,
		"   30.000 ms          5     8.000 ms  [disk read wait]\n"
		"    8.000 ms          1     8.000 ms    inode 10 of device 8:0 at 400.0 MB/s\n"
		"    7.000 ms          1     7.000 ms    inode 11 of device 8:0\n"
		"    6.000 ms          1     6.000 ms    inode 12 of device 8:0\n"
		"    9.000 ms          2     5.000 ms    2 other files\n");
	/* The kernel read it; the submitter and the time of the submission are not known. */
	t->requests.list.items[0].flags = REQUEST_KTHREAD;
	check_contains(print_full, t, "  inode 10 of device 8:0\n");
	check_lacks(print_full, t, "held back");
	/* On its device it was for 1 ms of the 4. */
	t->requests.list.items[0].held_ns = 3 * MS;
	check_contains(print_full, t, "held back by cgroup limits: 1 request, 3.000 ms in total\n");
	check_contains(print_full, t, "     1.000 ms   4000.0  inode 10 of device 8:0\n");
	text = report_text(report_json_of_all, t);
	node = node_read(text);
	last = node_at(node_get(node, "waited_objects"), 4);
	assert_int_equal(node_int(node_get(last, "ns")), 4 * MS);
	assert_int_equal(node_int(node_get(last, "count")), 1);
	node_free(node);
	free(text);
	timeline_free(t);
}

/* What a process calls itself must not reach the terminal as it is. */
static void test_control_characters(void **state)
{
	Timeline *t = make_timeline();

	(void)state;
	free(t->threads.items[0].name);
	t->threads.items[0].name = xstrdup("a\x1b[2Jb\x7f\xc2\x9b\xff");
	check_contains(print_full, t, "a?[2Jb???\xef\xbf\xbd");
	check_lacks(print_full, t, "\x1b");
	timeline_free(t);
}

static void test_empty(void **state)
{
	Timeline *t = fixture_new(0);

	(void)state;
	check_contains(print_full, t, "where the time of 0 threads went: 0 s\n");
	check_contains(print_accounts, t, "no events lost");
	timeline_free(t);
}

static uint64_t member(const Node *node, const char *outer, const char *key)
{
	return node_int(node_get(node_get(node, outer), key));
}

/* A process has what its threads have. */
static void test_process_ledger(void **state)
{
	Timeline *t = fixture_new(100 * MS);
	uint32_t make, cc1;
	char *text;
	Node *node;

	(void)state;
	make = fixture_process(t, 7, "make", 0, 100 * MS);
	cc1 = fixture_process(t, 8, "cc1", 0, 100 * MS);
	fixture_simple_thread(t, make, 7, "make", STATE_BLOCKED, REASON_CHILD);
	fixture_simple_thread(t, cc1, 8, "cc1", STATE_RUNNING, REASON_NONE);
	fixture_simple_thread(t, cc1, 9, "helper", STATE_BLOCKED, REASON_MUTEX);
	fixture_finish(t);
	check_contains(
		print_full, t,
		"     pid  threads     lifetime      running     runnable      blocked      "
		"unknown  switches  process\n"
		"       8        2   200.000 ms   100.000 ms          0 s   100.000 ms          "
		"0 s         0  cc1\n"
		"       7        1   100.000 ms          0 s          0 s   100.000 ms          "
		"0 s         0  make\n");
	text = report_text(report_json_of_all, t);
	node = node_read(text);
	const Node *process = node_at(node_get(node, "processes"), 1);
	assert_int_equal(node_int(node_get(process, "lifetime_ns")), 200 * MS);
	assert_int_equal(member(process, "states", "running"), 100 * MS);
	assert_int_equal(member(process, "states", "blocked"), 100 * MS);
	assert_int_equal(member(process, "reasons", "[mutex wait]"), 100 * MS);
	node_free(node);
	free(text);
	timeline_free(t);
}

static void test_json_processes(void **state)
{
	Timeline *t = fixture_new(100 * MS);
	char *text;
	Node *node;

	(void)state;
	fixture_running_process(t, 7, "make", 0, 100 * MS);
	fixture_running_process(t, 8, "cc1", 10 * MS, 30 * MS);
	fixture_running_process(t, 9, "as", 10 * MS, 40 * MS);
	t->processes.items[1].parent = 0;
	t->processes.items[1].path = xstrdup("/lib/cc1");
	t->processes.items[1].exit_code = 7 << 8;
	t->processes.items[2].exit_code = 9;
	fixture_finish(t);
	text = report_text(report_json_of_all, t);
	node = node_read(text);
	const Node *processes = node_get(node, "processes");
	assert_int_equal(processes->count, 3);
	const Node *make = node_at(processes, 0), *cc1 = node_at(processes, 1);
	assert_int_equal(node_get(make, "parent")->type, 'n');
	assert_int_equal(node_get(make, "path")->type, 'n');
	assert_int_equal(node_get(make, "exit_status")->type, 'n');
	assert_int_equal(node_get(make, "exit_signal")->type, 'n');
	assert_int_equal(node_int(node_get(cc1, "pid")), 8);
	assert_int_equal(node_int(node_get(cc1, "parent")), 7);
	assert_string_equal(node_string(node_get(cc1, "name")), "cc1");
	assert_string_equal(node_string(node_get(cc1, "path")), "/lib/cc1");
	assert_int_equal(node_int(node_get(cc1, "start_ns")), 10 * MS);
	assert_int_equal(node_int(node_get(cc1, "end_ns")), 30 * MS);
	assert_int_equal(node_int(node_get(cc1, "threads")), 1);
	assert_int_equal(node_int(node_get(cc1, "exit_status")), 7);
	assert_int_equal(node_get(cc1, "exit_signal")->type, 'n');
	assert_int_equal(node_get(node_at(processes, 2), "exit_status")->type, 'n');
	assert_int_equal(node_int(node_get(node_at(processes, 2), "exit_signal")), 9);
	node_free(node);
	free(text);
	timeline_free(t);
}

static void test_json(void **state)
{
	Timeline *t = make_timeline();
	char *text;
	Node *node;

	(void)state;
	add_losses(t);
	t->totals[REC_SWITCH].lost++;
	text = report_text(report_json_of_all, t);
	node = node_read(text);
	assert_int_equal(node_int(node_get(node, "window_ns")), 100 * MS);
	assert_int_equal(node_int(node_get(node, "contradictions")), 2);
	const Node *thread = node_at(node_get(node, "threads"), 0);
	assert_int_equal(node_int(node_get(thread, "tid")), 7);
	assert_int_equal(node_int(node_get(thread, "pid")), 7);
	assert_string_equal(node_string(node_get(thread, "name")), "app");
	assert_string_equal(node_string(node_get(thread, "process")), "app");
	assert_int_equal(node_int(node_get(thread, "lifetime_ns")), 100 * MS);
	assert_int_equal(member(thread, "states", "running"), 15 * MS);
	assert_int_equal(member(thread, "states", "runnable"), 0);
	assert_int_equal(member(thread, "states", "blocked"), 85 * MS);
	assert_int_equal(member(thread, "states", "unknown"), 0);
	assert_int_equal(node_get(thread, "reasons")->count, 2);
	assert_int_equal(member(thread, "reasons", "[disk read wait]"), 20 * MS);
	assert_int_equal(node_int(node_get(thread, "switch_outs")), 3);
	assert_int_equal(member(thread, "kernel", "sum_exec_runtime"), 15 * MS - 5);
	assert_int_equal(member(thread, "kernel", "run_delay"), 12345);
	assert_int_equal(member(thread, "kernel", "nvcsw"), 2);
	assert_int_equal(member(thread, "kernel", "nivcsw"), 1);
	assert_int_equal(node_get(node_get(thread, "kernel"), "clock_ahead")->type, 'n');
	assert_int_equal(node_get(node_at(node_get(node, "threads"), 1), "kernel")->type, 'n');
	const Node *total = node_get(node_get(node, "totals"), "switch");
	assert_int_equal(node_int(node_get(total, "sent")), 1000);
	assert_int_equal(node_int(node_get(total, "received")), 958);
	assert_int_equal(node_int(node_get(total, "lost")), 43);
	assert_int_equal(node_int(node_get(total, "lost_in_window")), 42);
	assert_int_equal(node_get(node, "totals")->count, 20);
	const Node *loss = node_at(node_get(node, "losses"), 0);
	assert_string_equal(node_string(node_get(loss, "kind")), "switch");
	assert_int_equal(node_int(node_get(loss, "cpu")), 3);
	assert_int_equal(node_int(node_get(loss, "count")), 42);
	assert_string_equal(node_string(node_get(loss, "cause")), "ring full");
	assert_int_equal(node_int(node_get(loss, "from_ns")), MS);
	assert_int_equal(node_int(node_get(loss, "to_ns")), 3 * MS);
	node_free(node);
	free(text);
	timeline_free(t);
}

/* What was recorded, when, by which user, and whether it is complete. */
static void test_json_recording(void **state)
{
	Timeline *t = make_timeline();
	char *text;
	Node *node;

	(void)state;
	fixture_meta(t, "version", "0.1.0");
	t->complete = false;
	text = report_text(report_json_of_all, t);
	node = node_read(text);
	assert_int_equal(node_int(node_get(node, "format")), REPORT_FORMAT);
	assert_string_equal(node_string(node_get(node, "wallprof")), "0.1.0");
	assert_string_equal(node_string(node_get(node, "kernel")), "6.1.0");
	assert_string_equal(node_string(node_get(node, "command")), "app --fast");
	assert_string_equal(node_string(node_get(node, "start_time")),
			    "2026-11-20T12:00:00.123456789Z");
	assert_int_equal(node_get(node, "complete")->type, 'f');
	node_free(node);
	free(text);
	timeline_free(t);
	t = fixture_new(0);
	t->realtime_start_ns = 0;
	text = report_text(report_json_of_all, t);
	node = node_read(text);
	assert_int_equal(node_get(node, "command")->type, 'n');
	assert_int_equal(node_get(node, "start_time")->type, 'n');
	assert_int_equal(node_get(node, "complete")->type, 't');
	node_free(node);
	free(text);
	timeline_free(t);
}

/* Leaves are the keys of "reasons": no two reasons may share one. */
static void test_leaves_are_unique(void **state)
{
	(void)state;
	for (size_t i = 0; i < REASON_COUNT; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(reason_info[i].leaf, reason_info[k].leaf);
}

static void test_labels(void **state)
{
	static const char *const kinds[] = {
		"switch",     "waking",	   "task",	    "exec",	    "exit",
		"stats",      "snapshot",  "sample",	    "stack",	    "stack copy",
		"page fault", "file name", "request",	    "socket",	    "epoll list",
		"futex",      "arguments", "script frames", "script stack", "script function"};
	size_t found = 0;

	(void)state;
	for (uint32_t kind = 0; kind < REC_BPF_MAX; kind++)
		if (record_info(kind)->word)
			assert_string_equal(record_info(kind)->word, kinds[found++]);
	assert_int_equal(found, ARRAY_LEN(kinds));
	assert_null(record_info(UINT32_MAX)->word);
	for (uint32_t cause = 0; cause < LOSS_CAUSE_MAX; cause++)
		assert_string_not_equal(loss_cause_label(cause), "unknown cause");
	assert_string_equal(loss_cause_label(UINT32_MAX), "unknown cause");
	assert_string_equal(syscall_label(0), "read");
	assert_string_equal(syscall_label(21), "access");
	assert_string_equal(syscall_label(280), "utimensat");
	assert_string_equal(syscall_label(202), "futex");
	assert_string_equal(syscall_label(456), "futex_requeue");
	assert_null(syscall_label(-1));
	assert_null(syscall_label(39)); /* getpid */
	assert_null(syscall_label(100000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accounts),
		cmocka_unit_test(test_stolen),
		cmocka_unit_test(test_times_without_ticks),
		cmocka_unit_test(test_no_run_delay),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_losses_elsewhere),
		cmocka_unit_test(test_not_traced),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_io_by_thread),
		cmocka_unit_test(test_waited_objects),
		cmocka_unit_test(test_control_characters),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_recording),
		cmocka_unit_test(test_process_ledger),
		cmocka_unit_test(test_json_processes),
		cmocka_unit_test(test_leaves_are_unique),
		cmocka_unit_test(test_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
