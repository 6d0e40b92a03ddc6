/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answer.h"
#include "critical_path.h"
#include "make_record.h"
#include "test_tools.h"
#include "timeline_fixture.h"

#define MS NSEC_PER_MSEC

/* Checks the text and the length of part i. */
static void expect_part(const Answer *answer, size_t i, uint64_t ms, const char *who,
			const char *what)
{
	assert_true(i < answer->parts.count);
	assert_string_equal(answer->parts.items[i].who, who);
	assert_string_equal(answer->parts.items[i].what, what);
	assert_int_equal(answer->parts.items[i].ns, ms * MS);
}

static uint64_t sum_of(const Answer *answer)
{
	uint64_t ns = answer->others_ns;

	for (size_t i = 0; i < answer->parts.count; i++)
		ns += answer->parts.items[i].ns;
	return ns;
}

/* Two processes of one name, a server with an idle thread, and a thread with a name of its own. */
static Timeline *make_timeline(void)
{
	Timeline *t = fixture_new(100 * MS);
	uint32_t server = fixture_process(t, 7, "server", 0, 100 * MS);
	uint32_t main = fixture_thread(t, server, 7, "server", 0, 100 * MS);
	uint32_t flusher = fixture_thread(t, server, 8, "flusher", 0, 100 * MS);
	uint32_t idle = fixture_thread(t, server, 9, "server", 0, 100 * MS);

	fixture_interval(t, main, 0, STATE_RUNNING, REASON_NONE);
	fixture_interval(t, main, 40 * MS, STATE_BLOCKED, REASON_IDLE_EPOLL);
	fixture_interval(t, main, 90 * MS, STATE_RUNNABLE, REASON_PREEMPTED);
	fixture_interval(t, flusher, 0, STATE_BLOCKED, REASON_DISK_SYNC);
	fixture_interval(t, flusher, 30 * MS, STATE_RUNNING, REASON_NONE);
	fixture_interval(t, flusher, 35 * MS, STATE_BLOCKED, REASON_DISK_SYNC);
	fixture_interval(t, idle, 0, STATE_BLOCKED, REASON_BETWEEN_JOBS_CONDVAR);
	fixture_running_process(t, 20, "worker", 10 * MS, 30 * MS);
	fixture_running_process(t, 21, "worker", 40 * MS, 65 * MS);
	fixture_finish(t);
	return t;
}

static void test_parts(void **state)
{
	Timeline *t = make_timeline();
	Frames *frames = frames_new();
	Answer answer = answer_make(t, frames, SIZE_MAX);

	(void)state;
	assert_false(answer.is_path);
	expect_part(&answer, 0, 95, "flusher (server)", "[fsync wait], 2 times of 47.500 ms");
	expect_part(&answer, 1, 45, "worker (2 processes)", "running");
	expect_part(&answer, 2, 40, "server (7)", "running");
	expect_part(&answer, 3, 10, "server (7)", "[runnable: preempted]");
	assert_int_equal(answer.parts.count, 5);
	assert_int_equal(answer.others, 0);
	/* Idle time is apart, and so are the threads that have no other. */
	assert_int_equal(answer.all_ns, 195 * MS);
	assert_int_equal(sum_of(&answer), answer.all_ns);
	assert_int_equal(answer.idle_ns, 150 * MS);
	assert_int_equal(answer.idle_threads, 1);
	answer_free(&answer);
	frames_free(frames);
	timeline_free(t);
}

/* In a recording of the whole system a thread's waits for others are no part of the time. */
static void test_whole_system(void **state)
{
	Timeline *t = make_timeline();
	Frames *frames = frames_new();
	Answer answer;

	(void)state;
	t->whole_system = true;
	t->threads.items[1].intervals.items[0].reason = REASON_PIPE_READ;
	answer = answer_make(t, frames, SIZE_MAX);
	expect_part(&answer, 0, 65, "flusher (server)", "[fsync wait]");
	expect_part(&answer, 1, 45, "worker (2 processes)", "running");
	assert_int_equal(answer.all_ns, 165 * MS);
	answer_free(&answer);
	frames_free(frames);
	timeline_free(t);
}

/*
 * Too few CPUs are one fact about a whole system. Of a process each thread's wait is its own, and
 * so are a cgroup's limit and the waits of a single program.
 */
static void test_cpus_of_whole_system(void **state)
{
	Timeline *t = make_timeline();
	Frames *frames = frames_new();
	uint32_t batch = fixture_process(t, 30, "batch", 0, 100 * MS);
	uint32_t thread = fixture_thread(t, batch, 30, "batch", 0, 100 * MS);
	Answer answer;

	(void)state;
	fixture_interval(t, thread, 0, STATE_RUNNABLE, REASON_WOKEN);
	fixture_interval(t, thread, 40 * MS, STATE_RUNNABLE, REASON_PREEMPTED);
	fixture_interval(t, thread, 90 * MS, STATE_RUNNABLE, REASON_THROTTLED);
	fixture_finish(t);
	answer = answer_make(t, frames, SIZE_MAX);
	assert_false(answer_is_of_cpus(&answer));
	expect_part(&answer, 1, 50, "batch", "[runnable: preempted]");
	answer_free(&answer);
	t->whole_system = true;
	answer = answer_make(t, frames, SIZE_MAX);
	assert_true(answer_is_of_cpus(&answer));
	expect_part(&answer, 0, 100, "2 programs", "waiting for a CPU (batch 90 %, server 10 %)");
	expect_part(&answer, answer.parts.count - 2, 10, "batch", "[runnable: throttled]");
	assert_int_equal(sum_of(&answer), answer.all_ns);
	answer_free(&answer);
	/* Two processes of one program, with other arguments. */
	free(t->processes.items[batch].name);
	t->processes.items[batch].name = xstrdup("server");
	answer = answer_make(t, frames, SIZE_MAX);
	expect_part(&answer, 0, 100, "server", "waiting for a CPU");
	answer_free(&answer);
	t->threads.items[0].intervals.count--; /* now only one program waits */
	t->threads.items[0].end_ns = 90 * MS;
	answer = answer_make(t, frames, SIZE_MAX);
	expect_part(&answer, 1, 50, "batch", "[runnable: preempted]");
	expect_part(&answer, 4, 40, "batch", "[runnable: woken]");
	answer_free(&answer);
	frames_free(frames);
	timeline_free(t);
}

static void give(Frames *frames, struct record *record)
{
	frames_add(frames, record);
	free(record);
}

/* Three functions wait equally long: what all of them are in only started the program. */
static void test_start_functions(void **state)
{
	static const char *const names[] = {"_start", "f", "g", "h"};
	Timeline *t = fixture_new(90 * MS);
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 7, "app", 0, 90 * MS), 7, "app", 0, 90 * MS);
	Frames *frames = frames_new();
	Answer answer;

	(void)state;
	give(frames, make_file(1, 0, "/usr/bin/app", 0));
	give(frames, make_mapping(1, 0, 7, 1, 0x10000, 0x20000, 0x10000));
	/* Only the caller, _start(), is looked up before its address. */
	for (uint64_t i = 0; i < ARRAY_LEN(names); i++)
		give(frames,
		     make_symbol(0, 1, 0x100 * i + 0x20 - !i, 0x100 * i + 0x10, names[i], NULL));
	for (uint64_t i = 1; i < ARRAY_LEN(names); i++) {
		uint32_t stack = fixture_stack(t, 0x10020 + i * 0x100, true);

		*vec_push(&t->frames) = 0x10020;
		t->stacks.items[stack].count = 2;
		fixture_interval(t, thread, (i - 1) * 30 * MS, STATE_BLOCKED, REASON_SLEEP)
			->user_stack = stack;
	}
	fixture_finish(t);
	answer = answer_make(t, frames, SIZE_MAX);
	expect_part(&answer, 0, 90, "app", "[sleep], 3 times of 30.000 ms");
	answer_free(&answer);
	frames_free(frames);
	timeline_free(t);
}

/* A program without symbols for its own functions: one that has a name is said, too. */
static void test_without_names(void **state)
{
	Timeline *t = fixture_new(30 * MS);
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 7, "app", 0, 30 * MS), 7, "app", 0, 30 * MS);
	uint32_t stack = fixture_stack(t, 0x10120, true);
	Frames *frames = frames_new();
	Answer answer;

	(void)state;
	give(frames, make_file(1, 0, "/usr/bin/app", 0));
	give(frames, make_mapping(1, 0, 7, 1, 0x10000, 0x20000, 0x10000));
	give(frames, make_symbol(SYMBOL_NAMELESS, 1, 0x120, 0x100, "fun_100", NULL));
	give(frames, make_symbol(0, 1, 0x21f, 0x200, "serve", NULL));
	give(frames, make_symbol(0, 1, 0x31f, 0x300, "main", NULL));
	*vec_push(&t->frames) = 0x10220;
	*vec_push(&t->frames) = 0x10320;
	t->stacks.items[stack].count = 3;
	fixture_interval(t, thread, 0, STATE_RUNNING, REASON_NONE)->user_stack = stack;
	fixture_finish(t);
	answer = answer_make(t, frames, SIZE_MAX);
	expect_part(&answer, 0, 30, "app", "running in fun_100 ← serve");
	answer_free(&answer);
	frames_free(frames);
	timeline_free(t);
}

/* What is not shown is counted. */
static void test_others(void **state)
{
	Timeline *t = make_timeline();
	Frames *frames = frames_new();
	size_t count;
	Answer answer = answer_make(t, frames, 2);

	(void)state;
	assert_int_equal(answer.parts.count, 2);
	assert_int_equal(answer.others, 3);
	assert_int_equal(answer.others_ns, 55 * MS);
	assert_int_equal(answer_rest(&answer, 1, &count), 100 * MS);
	assert_int_equal(count, 4);
	assert_int_equal(sum_of(&answer), answer.all_ns);
	answer_free(&answer);
	frames_free(frames);
	timeline_free(t);
}

/* The file with the most waiting is named, an idle wait never. */
static void test_waited_for(void **state)
{
	Timeline *t = make_timeline();
	Frames *frames = frames_new();
	uint32_t file = objects_reference(&t->objects, OBJECT_FILE, 1, 2, 3);
	Answer answer;

	(void)state;
	free(t->objects.list.items[file].name);
	t->objects.list.items[file].name = xstrdup("/var/lib/x\033[31m.wal");
	*vec_push(&t->threads.items[1].object_waits) =
		(ObjectWait){t->threads.items[1].intervals.items[2].start_ns, file};
	objects_find_alike(&t->objects);
	answer = answer_make(t, frames, 1);
	/* Most of the part's time is for that file, and nothing is said twice. */
	assert_null(strchr(answer.parts.items[0].what, '\033'));
	assert_non_null(strstr(answer.parts.items[0].what, "[fsync wait] of /var/lib/x"));
	assert_null(answer.waited_for);
	answer_free(&answer);
	/* Now the first part is another one. */
	t->threads.items[1].intervals.items[0].state = STATE_RUNNING;
	t->threads.items[3].end_ns += 90 * MS;
	answer = answer_make(t, frames, 1);
	assert_string_equal(answer.parts.items[0].who, "worker (2 processes)");
	assert_non_null(answer.waited_for);
	assert_null(strchr(answer.waited_for, '\033'));
	assert_non_null(strstr(answer.waited_for, "fsync wait for /var/lib/x"));
	assert_int_equal(answer.waited_ns, 65 * MS);
	answer_free(&answer);
	frames_free(frames);
	timeline_free(t);
}

/* What a wait on the path is for is known of the thread's own wait. */
static void test_object_on_path(void **state)
{
	Timeline *t = make_timeline();
	Frames *frames = frames_new();
	uint32_t file = objects_reference(&t->objects, OBJECT_FILE, 1, 2, 3);
	Answer answer;

	(void)state;
	free(t->objects.list.items[file].name);
	t->objects.list.items[file].name = xstrdup("/var/lib/x.wal");
	*vec_push(&t->threads.items[1].object_waits) =
		(ObjectWait){t->threads.items[1].intervals.items[2].start_ns, file};
	objects_find_alike(&t->objects);
	critical_path_find(t, 1);
	answer = answer_make(t, frames, 1);
	assert_true(answer.is_path);
	expect_part(&answer, 0, 95, "flusher (server)",
		    "[fsync wait] of /var/lib/x.wal, 2 times of 47.500 ms");
	answer_free(&answer);
	frames_free(frames);
	timeline_free(t);
}

/* A program that hangs has idle waits alone, and they are the answer; not if anything goes on. */
static void test_idle(void **state)
{
	Timeline *t = fixture_new(1000 * MS);
	Frames *frames = frames_new();
	uint32_t server = fixture_process(t, 7, "server", 0, 1000 * MS);
	Answer answer;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t thread = fixture_thread(t, server, 7 + i, "server", 0, 1000 * MS);

		fixture_interval(t, thread, 0, STATE_BLOCKED,
				 i ? REASON_IDLE_CONDVAR : REASON_IDLE_EPOLL);
	}
	fixture_interval(t, 0, 900 * MS, STATE_RUNNING, REASON_NONE);
	fixture_interval(t, 0, 919 * MS, STATE_BLOCKED, REASON_IDLE_EPOLL);
	fixture_finish(t);
	answer = answer_make(t, frames, SIZE_MAX);
	assert_true(answer.is_idle);
	expect_part(&answer, 0, 2000, "server (2 threads)",
		    "[idle: condition variable], 2 times of 1.000 s");
	expect_part(&answer, 1, 981, "server (7)", "[idle: epoll], 2 times of 490.500 ms");
	assert_int_equal(answer.parts.count, 2);
	assert_int_equal(answer.all_ns, answer.idle_ns);
	assert_int_equal(answer.busy_ns, 19 * MS);
	assert_string_equal(answer.busy, "server (7): running");
	answer_free(&answer);
	/* As long as the other threads', the main thread's part is the first. */
	t->threads.items[1].intervals.items[0].reason = REASON_IDLE_POLL;
	answer = answer_make(t, frames, SIZE_MAX);
	expect_part(&answer, 0, 981, "server (7)", "[idle: epoll], 2 times of 490.500 ms");
	assert_int_equal(answer.parts.count, 3);
	answer_free(&answer);
	/* A thread that worked for 2 % of the window. */
	t->threads.items[0].intervals.items[2].start_ns += MS;
	answer = answer_make(t, frames, SIZE_MAX);
	assert_false(answer.is_idle);
	expect_part(&answer, 0, 20, "server (7)", "running");
	assert_int_equal(answer.parts.count, 1);
	answer_free(&answer);
	/* Of a whole system idle threads say nothing. */
	t->threads.items[0].intervals.items[2].start_ns -= MS;
	t->whole_system = true;
	answer = answer_make(t, frames, SIZE_MAX);
	assert_false(answer.is_idle);
	answer_free(&answer);
	frames_free(frames);
	timeline_free(t);
}

static void test_nothing(void **state)
{
	Timeline *t = fixture_new(MS);
	Frames *frames = frames_new();
	Answer answer;

	(void)state;
	fixture_finish(t);
	answer = answer_make(t, frames, 4);
	assert_int_equal(answer.parts.count, 0);
	assert_int_equal(answer.all_ns, 0);
	assert_null(answer.waited_for);
	answer_free(&answer);
	frames_free(frames);
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),		cmocka_unit_test(test_whole_system),
		cmocka_unit_test(test_start_functions), cmocka_unit_test(test_without_names),
		cmocka_unit_test(test_others),		cmocka_unit_test(test_waited_for),
		cmocka_unit_test(test_object_on_path),	cmocka_unit_test(test_idle),
		cmocka_unit_test(test_nothing),		cmocka_unit_test(test_cpus_of_whole_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
