/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which threads are shown, in which order, and what shares a row. */
#include "profile_reader.h"
#include "test_tools.h"

static void test_order_and_first_screen(void **state)
{
	Timeline *t = fixture_new(100 * MS);
	uint32_t command = fixture_process(t, 10, "command", 0, 100 * MS);
	uint32_t server = fixture_process(t, 20, "server", 0, 100 * MS);
	static const char *const tids[] = {"10", "20", "23", "22", "21"};

	(void)state;
	fixture_simple_thread(t, command, 10, "command", STATE_BLOCKED, REASON_CHILD);
	t->command_thread = 0;
	fixture_simple_thread(t, server, 20, "server", STATE_BLOCKED, REASON_IDLE_POLL);
	fixture_simple_thread(t, server, 21, "idle", STATE_BLOCKED, REASON_CONDVAR);
	uint32_t half = fixture_thread(t, server, 22, "half", 0, 100 * MS);
	fixture_interval(t, half, 0, STATE_BLOCKED, REASON_SLEEP);
	fixture_interval(t, half, 50 * MS, STATE_RUNNING, REASON_NONE);
	fixture_simple_thread(t, server, 23, "locked", STATE_BLOCKED, REASON_MUTEX);
	uint32_t crowd = fixture_process(t, 30, "crowd", 0, 100 * MS);
	for (uint32_t i = 0; i < 20; i++)
		fixture_simple_thread(t, crowd, 30 + i, "crowd", STATE_BLOCKED, REASON_SLEEP);
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	for (size_t i = 0; i < ARRAY_LEN(tids); i++)
		assert_string_equal(node_get(thread_at(&profile, i), "tid")->text, tids[i]);
	size_t last = thread_count(&profile) - 1;
	assert_string_equal(node_string(node_get(thread_at(&profile, last), "pid")), "System");
	assert_int_equal(node_get(thread_at(&profile, last), "isMainThread")->type, 'f');
	assert_int_equal(sample_count(thread_at(&profile, last)), 0);
	const Node *visible = node_get(profile.meta, "initialVisibleThreads");
	/* The command, the thread that ran, and the system. */
	assert_int_equal(visible->count, 3);
	assert_int_equal(node_int(node_at(visible, 0)), 0);
	assert_int_equal(node_int(node_at(visible, 1)), 3);
	assert_int_equal(node_int(node_at(visible, visible->count - 1)), last);
	const Node *selected = node_get(profile.meta, "initialSelectedThreads");
	assert_int_equal(node_int(node_at(selected, 0)), 3);
	assert_int_equal(node_get(profile.meta, "keepProfileThreadOrder")->type, 't');
	profile_done(&profile, t);
}

static void add_path_part(Timeline *t, uint32_t thread, uint64_t start, uint64_t end)
{
	Interval part = t->threads.items[thread].intervals.items[0];

	part.start_ns = FIXTURE_START + start;
	*vec_push(&t->path.track.intervals) = part;
	*vec_push(&t->path.track.owners) = thread;
	t->path.track.end_ns = FIXTURE_START + end;
}

/* Checks the functions of a thread's sample, from the root on. */
static void expect_stack(const Profile *profile, const Node *thread, size_t sample,
			 const char *const *names, size_t count)
{
	const Node *prefixes = profile_table(profile, "stackTable", "prefix");
	const Node *frames = profile_table(profile, "stackTable", "frame");
	const Node *funcs = profile_table(profile, "frameTable", "func");
	const Node *texts = profile_table(profile, "funcTable", "name");
	const Node *stack = node_at(node_get(node_get(thread, "samples"), "stack"), sample);

	for (size_t i = count; i-- > 0; stack = node_at(prefixes, node_int(stack))) {
		long long frame, func;

		assert_int_equal(stack->type, '0');
		frame = node_int(node_at(frames, node_int(stack)));
		func = node_int(node_at(funcs, frame));
		assert_string_equal(string_at(profile, texts, func), names[i]);
	}
	assert_int_not_equal(stack->type, '0');
}

/*
 * The critical path is the first row and selected; then comes the command with what it started, by
 * the time on the path; then others, though they ran for longer.
 */
static void test_critical_path(void **state)
{
	Timeline *t = fixture_new(100 * MS);
	uint32_t other = fixture_process(t, 20, "other", 0, 100 * MS);
	uint32_t command = fixture_process(t, 10, "command", 0, 100 * MS);
	uint32_t brief = fixture_process(t, 11, "brief", 0, 100 * MS);
	uint32_t busy = fixture_process(t, 12, "busy", 0, 100 * MS), thread;
	static const char *const pids[] = {"10", "11", "12", "20"};

	(void)state;
	fixture_simple_thread(t, other, 20, "other", STATE_RUNNING, REASON_NONE);
	t->command_thread = t->threads.count;
	fixture_simple_thread(t, command, 10, "command", STATE_BLOCKED, REASON_CHILD);
	t->processes.items[brief].parent = command;
	t->processes.items[busy].parent = brief;
	thread = fixture_thread(t, brief, 11, "brief", 0, 100 * MS);
	fixture_interval(t, thread, 0, STATE_BLOCKED, REASON_SLEEP);
	fixture_interval(t, thread, 99 * MS, STATE_RUNNING, REASON_NONE);
	fixture_simple_thread(t, busy, 12, "busy", STATE_RUNNING, REASON_NONE);
	fixture_finish(t);
	t->path.track.name = xstrdup("command (10)");
	t->path.track.start_ns = FIXTURE_START;
	add_path_part(t, thread, 0, 60 * MS);
	add_path_part(t, thread + 1, 60 * MS, 100 * MS);
	Profile profile = make_profile(t, NULL);
	assert_string_equal(node_string(node_get(thread_at(&profile, 0), "processName")),
			    "Critical path");
	/* The viewer shows any PID but this one, and puts this type of process first. */
	assert_string_equal(node_string(node_get(thread_at(&profile, 0), "pid")), "0");
	assert_string_equal(node_string(node_get(thread_at(&profile, 0), "processType")),
			    "default");
	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		const Node *row = thread_at(&profile, i + 1);

		assert_string_equal(node_string(node_get(row, "pid")), pids[i]);
		assert_string_not_equal(node_string(node_get(row, "processType")), "default");
	}
	/* Its call tree begins with the process and the state. */
	const Node *path = thread_at(&profile, 0);
	expect_stack(&profile, path, 0, (const char *[]){"brief", "Sleep (timer)", "[sleep]"}, 3);
	expect_stack(&profile, path, sample_count(path) - 1,
		     (const char *[]){"busy", "Running", "[no stack]"}, 3);
	const Node *selected = node_get(profile.meta, "initialSelectedThreads");
	const Node *visible = node_get(profile.meta, "initialVisibleThreads");
	assert_int_equal(selected->count, 1);
	assert_int_equal(node_int(node_at(selected, 0)), 0);
	assert_int_equal(visible->count, 6);
	profile_done(&profile, t);
}

/* The rows of a main thread that the viewer counts to order the processes. */
static size_t busy_rows(const Profile *profile, size_t thread)
{
	size_t count = 0;

	for (size_t i = 0; i < sample_count(thread_at(profile, thread)); i++)
		count +=
			sample_at(profile, thread_at(profile, thread), i).category != CATEGORY_IDLE;
	return count;
}

/*
 * The viewer orders processes by the number of these rows. Those above have as many as any visible
 * one below, unless that would take more than a part of the budget.
 */
static void test_rows_keep_the_order(void **state)
{
	Timeline *t = fixture_new(1000 * MS);
	static const uint64_t budgets[] = {0, 2000};

	(void)state;
	t->command_thread = 0;
	fixture_simple_thread(t, fixture_process(t, 10, "command", 0, 1000 * MS), 10, "command",
			      STATE_BLOCKED, REASON_CHILD);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t process = fixture_process(t, 20 + i, "other", 0, 1000 * MS);
		uint32_t thread = fixture_thread(t, process, 20 + i, "other", 0, 1000 * MS);

		/* The first one runs for the longest time, and has the fewest rows. */
		for (uint64_t ms = 0; ms < 1000; ms += 40 - i * 10) {
			fixture_interval(t, thread, ms * MS, STATE_RUNNING, REASON_NONE);
			fixture_interval(t, thread, ms * MS + (9 - i) * MS, STATE_BLOCKED,
					 REASON_PIPE_READ);
		}
		fixture_interval(t, thread, 999 * MS, STATE_BLOCKED, REASON_IDLE_POLL);
	}
	fixture_finish(t);
	for (size_t b = 0; b < ARRAY_LEN(budgets); b++) {
		FirefoxOptions options = {.row_budget = budgets[b]};
		Profile profile = make_profile(t, &options);
		bool ordered = true;

		for (size_t i = 1; i < 4; i++)
			ordered &= busy_rows(&profile, i - 1) >= busy_rows(&profile, i);
		assert_int_equal(ordered, b == 0);
		for (size_t i = 0; i < 4; i++)
			assert_int_equal(
				distance(sum_weights(&profile, thread_at(&profile, i))
							 .states[STATE_BLOCKED] +
						 sum_weights(&profile, thread_at(&profile, i))
							 .states[STATE_RUNNING],
					 1000 * MS),
				0);
		profile_free(&profile);
	}
	timeline_free(t);
}

/* Two rows never read the same: threads of one name have their TIDs, main threads their PIDs. */
static void test_names_that_repeat(void **state)
{
	static const char *const names[] = {"worker (12)", "only", "server", "worker",
					    "worker (13)"};
	static const char *const tids[] = {"12", "14", "10", "20", "13"};
	Timeline *t = fixture_new(100 * MS);
	uint32_t server = fixture_process(t, 10, "server", 0, 100 * MS);
	uint32_t worker = fixture_process(t, 20, "worker", 0, 100 * MS);

	(void)state;
	fixture_simple_thread(t, server, 10, "server", STATE_RUNNING, REASON_NONE);
	fixture_simple_thread(t, server, 12, "worker", STATE_RUNNING, REASON_NONE);
	fixture_simple_thread(t, server, 13, "worker", STATE_RUNNING, REASON_NONE);
	fixture_simple_thread(t, server, 14, "only", STATE_RUNNING, REASON_NONE);
	fixture_simple_thread(t, worker, 20, "worker", STATE_RUNNING, REASON_NONE);
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_string_equal(node_string(node_get(find_thread(&profile, tids[i]), "name")),
				    names[i]);
	profile_done(&profile, t);
}

/* A thread that ran comes before one that waited for longer; nothing that never ran is selected. */
static void test_selected_of_a_system(void **state)
{
	Timeline *t = fixture_new(100 * MS);
	uint32_t daemon = fixture_process(t, 10, "daemon", 0, 100 * MS);
	uint32_t worker = fixture_process(t, 20, "worker", 0, 100 * MS), half;

	(void)state;
	t->whole_system = true;
	fixture_simple_thread(t, daemon, 10, "daemon", STATE_BLOCKED, REASON_PIPE_READ);
	half = fixture_thread(t, worker, 20, "worker", 0, 100 * MS);
	fixture_interval(t, half, 0, STATE_BLOCKED, REASON_SLEEP);
	fixture_interval(t, half, 50 * MS, STATE_RUNNING, REASON_NONE);
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	const Node *selected = node_get(profile.meta, "initialSelectedThreads");
	const Node *thread = thread_at(&profile, node_int(node_at(selected, 0)));

	assert_string_equal(node_get(thread, "tid")->text, "20");
	profile_done(&profile, t);
}

/* Each CPU has a row; of many, none is seen at first. */
static void test_cpus(void **state)
{
	(void)state;
	for (size_t count = 16; count <= 17; count++) {
		Timeline *t = fixture_new(100 * MS);
		uint32_t process = fixture_process(t, 10, "command", 0, 100 * MS);

		fixture_simple_thread(t, process, 10, "command", STATE_RUNNING, REASON_NONE);
		t->command_thread = 0;
		for (size_t i = 0; i < count; i++) {
			Cpu *cpu = vec_push(&t->cpus);

			*cpu = (Cpu){};
			*vec_push(&cpu->runs) = (CpuRun){FIXTURE_START, CPU_IDLE};
			*vec_push(&cpu->runs) = (CpuRun){FIXTURE_START + 40 * MS, 0};
		}
		fixture_finish(t);
		Profile profile = make_profile(t, NULL);
		const Node *visible = node_get(profile.meta, "initialVisibleThreads");
		assert_int_equal(thread_count(&profile), 1 + count + 1);
		assert_string_equal(node_string(node_get(thread_at(&profile, 1), "name")), "CPU 0");
		assert_int_equal(sample_count(thread_at(&profile, 1)), 4);
		/* Without a main thread the viewer shows no PID. */
		assert_int_equal(node_get(thread_at(&profile, 1), "isMainThread")->type, 'f');
		assert_int_equal(visible->count, 1 + (count > 16 ? 0 : count) + 1);
		profile_done(&profile, t);
	}
}

/* The command's main thread is shown even if twelve others are busier. */
static void test_main_thread_is_visible(void **state)
{
	Timeline *t = fixture_new(100 * MS);
	uint32_t busy = fixture_process(t, 20, "busy", 0, 100 * MS);

	(void)state;
	for (uint32_t i = 0; i < 14; i++)
		fixture_simple_thread(t, busy, 20 + i, "busy", STATE_RUNNING, REASON_NONE);
	t->command_thread = t->threads.count;
	fixture_simple_thread(t, fixture_process(t, 10, "command", 0, 100 * MS), 10, "command",
			      STATE_BLOCKED, REASON_CHILD);
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	const Node *visible = node_get(profile.meta, "initialVisibleThreads");
	assert_int_equal(visible->count, 12 + 2);
	assert_int_equal(node_int(node_at(visible, 0)), 0);
	assert_string_equal(node_get(thread_at(&profile, 0), "tid")->text, "10");
	profile_done(&profile, t);
}

/* Three one after another and one that overlaps: two lanes; two of another name: none. */
static void test_short_processes_share_lanes(void **state)
{
	Timeline *t = fixture_new(1000 * MS);

	(void)state;
	fixture_simple_thread(t, fixture_process(t, 1, "make", 0, 1000 * MS), 1, "make",
			      STATE_BLOCKED, REASON_CHILD);
	t->command_thread = 0;
	fixture_running_process(t, 50, "cc1", 10 * MS, 15 * MS);
	fixture_running_process(t, 51, "cc1", 12 * MS, 17 * MS);
	fixture_running_process(t, 52, "cc1", 15 * MS, 20 * MS);
	fixture_running_process(t, 53, "cc1", 500 * MS, 505 * MS);
	fixture_running_process(t, 60, "as", 20 * MS, 21 * MS);
	fixture_running_process(t, 61, "as", 30 * MS, 31 * MS);
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	assert_int_equal(thread_count(&profile), 1 + 2 + 2 + 1);
	const Node *first = find_thread(&profile, "50"), *second = find_thread(&profile, "51");
	find_thread(&profile, "60");
	find_thread(&profile, "61");
	assert_string_equal(node_string(node_get(first, "processName")), "cc1 ×4");
	assert_string_equal(node_string(node_get(first, "name")), "cc1 ×4");
	assert_string_equal(node_string(node_get(second, "pid")), "50");
	assert_int_equal(node_get(second, "isMainThread")->type, 'f');
	assert_int_equal(sum_weights(&profile, first).states[STATE_RUNNING], 15 * MS);
	/* Each process has its lifetime in the lane. */
	const Node *markers = node_get(first, "markers"),
		   *process = node_at(node_get(markers, "data"), 1);
	assert_int_equal(node_int(node_get(markers, "length")), 3);
	assert_string_equal(node_string(node_get(process, "type")), "Process");
	assert_string_equal(node_string(node_get(process, "process")), "52");
	assert_int_equal(node_ns(node_at(node_get(markers, "startTime"), 1)), 15 * MS);
	assert_int_equal(node_ns(node_at(node_get(markers, "endTime"), 1)), 20 * MS);
	assert_int_equal(node_int(node_at(node_get(markers, "phase"), 1)), 1);
	/* The gap is painted as nothing, from end to start. */
	Sums paint = sum_paint(&profile, first, 10 * MS, 505 * MS);
	assert_int_equal(paint.states[STATE_RUNNING] / 2, 15 * MS);
	size_t gap = 0;
	for (size_t i = 0; i < sample_count(first); i++) {
		Sample sample = sample_at(&profile, first, i);

		if (strcmp(sample.leaf, "[not alive]"))
			continue;
		gap++;
		assert_int_equal(sample.category, CATEGORY_IDLE);
		assert_int_equal(sample.weight_ns, 0);
	}
	assert_int_equal(gap, 2);
	profile_done(&profile, t);
}

/* Compilers of a small build: 13, of which each takes 5 %, and a long one; 12 of another name.
 */
static void test_a_crowd_shares_lanes(void **state)
{
	Timeline *t = fixture_new(1000 * MS);

	(void)state;
	for (uint32_t i = 0; i < 13; i++)
		fixture_running_process(t, 100 + i, "cc1", i * 60 * MS, (i * 60 + 50) * MS);
	fixture_running_process(t, 113, "cc1", 100 * MS, 200 * MS);
	for (uint32_t i = 0; i < 12; i++)
		fixture_running_process(t, 200 + i, "as", i * 60 * MS, (i * 60 + 50) * MS);
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	assert_int_equal(thread_count(&profile), 1 + 1 + 12 + 1);
	const Node *lane = find_thread(&profile, "100");
	assert_string_equal(node_string(node_get(lane, "processName")), "cc1 ×13");
	assert_int_equal(sum_weights(&profile, lane).states[STATE_RUNNING], 13 * 50 * MS);
	assert_string_equal(node_string(node_get(find_thread(&profile, "113"), "processName")),
			    "cc1");
	profile_done(&profile, t);
}

/* The same numbers again, and none at all in the recorder's namespace: ids stay unique. */
static void test_reused_ids(void **state)
{
	Timeline *t = fixture_new(100 * MS);

	(void)state;
	fixture_running_process(t, 7, "old", 0, 40 * MS);
	fixture_running_process(t, 7, "new", 50 * MS, 90 * MS);
	fixture_running_process(t, 8, "host", 0, 100 * MS);
	t->threads.items[2].ns_tid = t->processes.items[2].ns_tgid = 0;
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	assert_int_equal(node_get(find_thread(&profile, "7"), "tid")->type, '0');
	assert_string_equal(node_string(node_get(find_thread(&profile, "7.1"), "pid")), "7.1");
	assert_string_equal(node_string(node_get(find_thread(&profile, "host 100008"), "pid")),
			    "host 100008");
	profile_done(&profile, t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_first_screen),
		cmocka_unit_test(test_critical_path),
		cmocka_unit_test(test_rows_keep_the_order),
		cmocka_unit_test(test_names_that_repeat),
		cmocka_unit_test(test_selected_of_a_system),
		cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_main_thread_is_visible),
		cmocka_unit_test(test_short_processes_share_lanes),
		cmocka_unit_test(test_a_crowd_shares_lanes),
		cmocka_unit_test(test_reused_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
