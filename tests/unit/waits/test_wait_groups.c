/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "frames_fixture.h"
#include "make_record.h"
#include "wait_groups.h"

#define MS NSEC_PER_MSEC

/* A user stack of the functions in `names`, the innermost first, separated by blanks. */
static uint32_t user_stack(Fixture *fixture, const char *names)
{
	static uint64_t next = 0x2000;
	_cleanup_free_ char *copy = xstrdup(names);
	uint64_t pcs[16];
	uint16_t count = 0;
	char *rest;

	for (char *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
		assert_true(count < ARRAY_LEN(pcs));
		next += 0x10;
		pcs[count] = AVMA + next + (count > 0);
		give_symbol(fixture, 1, next, next, name, NULL);
		count++;
	}
	return add_stack(fixture, STACK_USER, STACK_COMPLETE, pcs, count);
}

static void add_thread(Fixture *fixture)
{
	if (fixture->timeline.processes.count == 0)
		*vec_push(&fixture->timeline.processes) = (Process){.ns_tgid = PROCESS};
	*vec_push(&fixture->timeline.threads) = (Thread){.start_ns = 50, .end_ns = 50};
}

/* The last thread waits for so long. */
static void wait_for(Fixture *fixture, uint64_t ms, enum reason reason, uint32_t stack)
{
	Thread *thread = &fixture->timeline.threads.items[fixture->timeline.threads.count - 1];

	*vec_push(&thread->intervals) = (Interval){
		.start_ns = thread->end_ns,
		.user_stack = stack,
		.kernel_stack = STACK_NONE,
		.waker = THREAD_NONE,
		.cpu_user = THREAD_NONE,
		.syscall = -1,
		.state = STATE_BLOCKED,
		.reason = reason,
	};
	thread->end_ns += ms * MS;
}

static void forget(Fixture *fixture)
{
	for (size_t i = 0; i < fixture->timeline.threads.count; i++)
		vec_free(&fixture->timeline.threads.items[i].intervals);
	vec_free(&fixture->timeline.threads);
	vec_free(&fixture->timeline.processes);
}

static void expect_group(WaitGroup *group, enum reason reason, const char *chain, size_t count,
			 uint64_t total_ms, size_t threads)
{
	assert_int_equal(group->reason, reason);
	assert_string_equal(group->chain, chain);
	assert_int_equal(group->waits.ns.count, count);
	assert_int_equal(group->waits.total_ns, total_ms * MS);
	assert_int_equal(group->threads.count, threads);
}

/* One reason at one place is one group, in all threads; an idle thread is in none. */
static void test_groups(void **state)
{
	Fixture *fixture = *state;
	uint32_t reading = user_stack(fixture, "read fill parse main"), elsewhere;
	uint32_t again = user_stack(fixture, "read fill parse main"); /* other calls of the same */
	WaitGroups groups;

	elsewhere = user_stack(fixture, "read fill parse deep deeper main");
	add_thread(fixture);
	wait_for(fixture, 10, REASON_DISK_READ, reading);
	wait_for(fixture, 30, REASON_DISK_READ, again);
	wait_for(fixture, 5, REASON_PIPE_READ, reading);
	add_thread(fixture);
	wait_for(fixture, 2, REASON_DISK_READ, reading);
	wait_for(fixture, 7, REASON_UNINTERRUPTIBLE, STACK_NONE);
	wait_for(fixture, 3, REASON_DISK_READ, elsewhere);
	wait_for(fixture, 1000, REASON_IDLE_EPOLL, reading);
	groups = wait_groups_make(&fixture->timeline, fixture->frames, false);
	assert_int_equal(groups.list.count, 4);
	assert_int_equal(groups.total_ns, 57 * MS);
	assert_int_equal(groups.other_ns, 7 * MS);
	expect_group(&groups.list.items[0], REASON_DISK_READ, "read ← fill ← parse ← main", 3, 42,
		     2);
	assert_int_equal(distribution_at(&groups.list.items[0].waits, 0.5), 10 * MS);
	expect_group(&groups.list.items[1], REASON_UNINTERRUPTIBLE, "", 1, 7, 1);
	expect_group(&groups.list.items[2], REASON_PIPE_READ, "read ← fill ← parse ← main", 1, 5,
		     1);
	expect_group(&groups.list.items[3], REASON_DISK_READ, "read ← fill ← parse ← deep", 1, 3,
		     1);
	wait_groups_free(&groups);
	forget(fixture);
}

typedef struct Seen {
	size_t count, waits, threads;
	uint64_t total_ns;
} Seen;

static void see(void *user, FunctionWaits *function)
{
	*(Seen *)user = (Seen){
		.count = ((Seen *)user)->count + 1,
		.waits = function->waits.ns.count,
		.threads = function->threads,
		.total_ns = function->waits.total_ns,
	};
}

static void expect_function(WaitGroups *groups, const char *name, size_t found, size_t count,
			    uint64_t total_ms, size_t threads)
{
	Seen seen = {};

	assert_int_equal(wait_groups_by_function(groups, name, SIZE_MAX, see, &seen), found);
	assert_int_equal(seen.count, found);
	assert_int_equal(seen.waits, count);
	assert_int_equal(seen.total_ns, total_ms * MS);
	assert_int_equal(seen.threads, threads);
}

/* What lies below a function counts for it once, however often it is on the stack. */
static void test_functions(void **state)
{
	Fixture *fixture = *state;
	uint32_t deep = user_stack(fixture, "wait walk walk walk main");
	uint32_t method = user_stack(fixture, "wait Tree::walk(int) main");
	WaitGroups groups;
	Seen seen = {};

	add_thread(fixture);
	wait_for(fixture, 10, REASON_MUTEX, deep);
	wait_for(fixture, 20, REASON_MUTEX, method);
	add_thread(fixture);
	wait_for(fixture, 4, REASON_MUTEX, deep);
	wait_for(fixture, 50, REASON_IDLE_POLL, deep);
	groups = wait_groups_make(&fixture->timeline, fixture->frames, false);
	expect_function(&groups, "main", 1, 3, 34, 2);
	expect_function(&groups, "walk", 1, 2, 14, 2);
	expect_function(&groups, "Tree::walk", 1, 1, 20, 1);
	expect_function(&groups, "Tree::walk(int)", 1, 1, 20, 1);
	expect_function(&groups, "wal", 0, 0, 0, 0);
	assert_int_equal(wait_groups_by_function(&groups, NULL, 2, see, &seen), 2);
	assert_int_equal(seen.total_ns, 34 * MS); /* of main and of wait */
	wait_groups_free(&groups);
	groups = wait_groups_make(&fixture->timeline, fixture->frames, /* with_idle= */ true);
	expect_function(&groups, "main", 1, 4, 84, 2);
	wait_groups_free(&groups);
	forget(fixture);
}

typedef struct ExpectedFunction {
	const char *function, *others;
	uint64_t ms;
	size_t threads;
} ExpectedFunction;

typedef struct Expected {
	const ExpectedFunction *list;
	size_t count, at;
} Expected;

static void expect_told(void *user, FunctionWaits *function)
{
	Expected *expected = user;
	const ExpectedFunction *wanted_function = &expected->list[expected->at++];

	assert_true(expected->at <= expected->count);
	assert_string_equal(function->function, wanted_function->function);
	assert_string_equal(function->others, wanted_function->others);
	assert_int_equal(function->waits.total_ns, wanted_function->ms * MS);
	assert_int_equal(function->threads, wanted_function->threads);
}

static void check_telling(Fixture *fixture, const ExpectedFunction *list, size_t count)
{
	WaitGroups groups = wait_groups_make(&fixture->timeline, fixture->frames, false);
	Expected expected = {list, count, 0};

	assert_int_equal(wait_groups_telling_functions(&groups, SIZE_MAX, expect_told, &expected),
			 count);
	assert_int_equal(expected.at, count);
	expected.at = 0;
	assert_int_equal(wait_groups_telling_functions(&groups, 1, expect_told, &expected), 1);
	wait_groups_free(&groups);
}

/* main() is on all stacks, read() where parse() is, and write() is called by two functions. */
static void test_telling_functions(void **state)
{
	static const ExpectedFunction wanted[] = {{"parse", "read", 70, 2},
						  {"fill", "", 40, 1},
						  {"load", "", 30, 1},
						  {"save", "", 20, 1},
						  {"note", "", 10, 1}};
	Fixture *fixture = *state;

	add_thread(fixture);
	wait_for(fixture, 40, REASON_DISK_READ, user_stack(fixture, "read fill parse main _start"));
	wait_for(fixture, 20, REASON_DISK_WRITE, user_stack(fixture, "write save main _start"));
	wait_for(fixture, 10, REASON_DISK_WRITE, user_stack(fixture, "write note main _start"));
	add_thread(fixture);
	wait_for(fixture, 30, REASON_DISK_READ, user_stack(fixture, "read load parse main _start"));
	wait_for(fixture, 1000, REASON_IDLE_EPOLL, user_stack(fixture, "epoll_wait main _start"));
	check_telling(fixture, wanted, ARRAY_LEN(wanted));
	forget(fixture);
}

/* A thread's function is listed if it waits itself; one that nearly only calls another is not. */
static void test_nearly_all(void **state)
{
	static const ExpectedFunction wanted[] = {
		{"worker", "start_thread", 200, 2}, {"lock", "futex", 96, 1}, {"other", "", 4, 1}};
	Fixture *fixture = *state;

	add_thread(fixture);
	wait_for(fixture, 96, REASON_MUTEX,
		 user_stack(fixture, "futex lock take worker start_thread"));
	wait_for(fixture, 4, REASON_SLEEP, user_stack(fixture, "other take worker start_thread"));
	wait_for(fixture, 50, REASON_SLEEP, user_stack(fixture, "worker start_thread"));
	add_thread(fixture);
	wait_for(fixture, 50, REASON_SLEEP, user_stack(fixture, "worker start_thread"));
	check_telling(fixture, wanted, ARRAY_LEN(wanted));
	forget(fixture);
}

/* What is charged to a wait is its group's, before groups are merged and after. */
static void test_charge(void **state)
{
	Fixture *fixture = *state;
	uint32_t reading = user_stack(fixture, "read parse main");
	WaitGroups groups;

	add_thread(fixture);
	wait_for(fixture, 10, REASON_DISK_READ, reading);
	wait_for(fixture, 30, REASON_PIPE_READ, reading);
	wait_for(fixture, 5, REASON_DISK_READ, reading);
	groups = wait_groups_make(&fixture->timeline, fixture->frames, false);
	wait_groups_charge(&groups, &fixture->timeline, 0, 0, 7);
	wait_groups_charge(&groups, &fixture->timeline, 0, 2, 4);
	wait_groups_merge_objects(&groups, 3);
	assert_int_equal(groups.list.items[0].reason, REASON_PIPE_READ);
	assert_int_equal(groups.list.items[0].path_ns, 0);
	assert_int_equal(groups.list.items[1].path_ns, 11);
	wait_groups_free(&groups);
	forget(fixture);
}

/* A stack of one function called by its address, in file 1 or the one mapped behind it. */
static uint32_t nameless_stack(Fixture *fixture, uint32_t file)
{
	uint64_t pc = AVMA + (file == 1 ? 0 : 0x20000) + 0x1139;

	give_record(fixture,
		    make_symbol(SYMBOL_NAMELESS, file, pc - AVMA - (file == 1 ? 0 : 0x20000),
				0x1139, "fun_1139", NULL));
	return add_stack(fixture, STACK_USER, STACK_COMPLETE, &pc, 1);
}

static void expect_library(void *user, FunctionWaits *function)
{
	const char **libraries = user;

	assert_string_equal(function->function, "fun_1139");
	while (*libraries && strcmp(*libraries, function->library) != 0)
		libraries++;
	assert_non_null(*libraries);
}

/* What is called by its address is a function of one file, and says of which. */
static void test_same_name(void **state)
{
	Fixture *fixture = *state;
	const char *both[] = {"libfoo.so.1", "libbar.so", NULL}, *bar[] = {"libbar.so", NULL};
	WaitGroups groups;
	uint32_t foo, in_bar;

	give_record(fixture, make_mapping(10, 0, PROCESS, 2, AVMA + 0x20000, AVMA + 0x30000,
					  AVMA + 0x20000));
	foo = nameless_stack(fixture, 1);
	in_bar = nameless_stack(fixture, 2);
	add_thread(fixture);
	wait_for(fixture, 30, REASON_DISK_READ, foo);
	wait_for(fixture, 20, REASON_DISK_READ, in_bar);
	groups = wait_groups_make(&fixture->timeline, fixture->frames, false);
	assert_int_equal(groups.list.count, 2);
	expect_group(&groups.list.items[0], REASON_DISK_READ, "fun_1139 (libfoo.so.1)", 1, 30, 1);
	expect_group(&groups.list.items[1], REASON_DISK_READ, "fun_1139 (libbar.so)", 1, 20, 1);
	assert_int_equal(
		wait_groups_by_function(&groups, "fun_1139", SIZE_MAX, expect_library, both), 2);
	assert_int_equal(wait_groups_by_function(&groups, "fun_1139 (libbar.so)", SIZE_MAX,
						 expect_library, bar),
			 1);
	expect_function(&groups, "fun_1139 (libbar.so)", 1, 1, 20, 1);
	expect_function(&groups, "fun_1139 (lib)", 0, 0, 0, 0);
	wait_groups_free(&groups);
	forget(fixture);
}

/* The same file in two places (two containers' copies) is one. */
static void test_same_file_twice(void **state)
{
	Fixture *fixture = *state;
	uint64_t other = AVMA + 0x20000 + 0x500;
	WaitGroups groups;

	give_record(fixture, make_file(3, 0, "/usr/lib/libfoo.so.1", BASE));
	give_record(fixture, make_mapping(10, 0, PROCESS, 3, AVMA + 0x20000, AVMA + 0x30000,
					  AVMA + 0x20000));
	add_thread(fixture);
	wait_for(fixture, 30, REASON_DISK_READ, user_stack(fixture, "work"));
	give_symbol(fixture, 3, 0x500, 0x500, "work", NULL);
	wait_for(fixture, 20, REASON_DISK_READ,
		 add_stack(fixture, STACK_USER, STACK_COMPLETE, &other, 1));
	groups = wait_groups_make(&fixture->timeline, fixture->frames, false);
	expect_function(&groups, "work", 1, 2, 50, 1);
	wait_groups_free(&groups);
	forget(fixture);
}

/* The last wait was for that file. */
static void of_file(Fixture *fixture, uint64_t inode)
{
	Timeline *timeline = &fixture->timeline;
	Thread *thread = &timeline->threads.items[timeline->threads.count - 1];
	uint64_t start_ns = thread->intervals.items[thread->intervals.count - 1].start_ns;

	*vec_push(&thread->object_waits) = (ObjectWait){
		start_ns, objects_reference(&timeline->objects, OBJECT_FILE, 8 << 20, inode, 0)};
}

/* A file each: more than three at one place are one line, of all threads; others stay as they are.
 */
static void test_many_objects(void **state)
{
	Fixture *fixture = *state;
	uint32_t reading = user_stack(fixture, "read main");
	uint32_t other = user_stack(fixture, "map main");
	WaitGroups groups;

	for (int thread = 0; thread < 2; thread++) {
		add_thread(fixture);
		for (uint64_t i = 0; i < 4; i++) {
			wait_for(fixture, 5 + i, REASON_DISK_READ, reading);
			of_file(fixture, 10 + 4 * thread + i);
		}
	}
	wait_for(fixture, 3, REASON_DISK_READ, reading); /* of no file that is known */
	for (uint64_t i = 0; i < 3; i++) {
		wait_for(fixture, 1, REASON_DISK_READ, other);
		of_file(fixture, 10 + i);
	}
	groups = wait_groups_make(&fixture->timeline, fixture->frames, false);
	assert_int_equal(groups.list.count, 8 + 1 + 3);
	wait_groups_merge_objects(&groups, 3);
	assert_int_equal(groups.list.count, 1 + 1 + 3);
	expect_group(&groups.list.items[0], REASON_DISK_READ, "read ← main", 8, 52, 2);
	assert_int_equal(groups.list.items[0].objects, 8);
	expect_group(&groups.list.items[1], REASON_DISK_READ, "read ← main", 1, 3, 1);
	assert_int_equal(groups.list.items[1].objects, 0);
	expect_group(&groups.list.items[2], REASON_DISK_READ, "map ← main", 1, 1, 1);
	assert_int_equal(groups.list.items[2].objects, 1);
	wait_groups_free(&groups);
	for (size_t i = 0; i < fixture->timeline.threads.count; i++)
		vec_free(&fixture->timeline.threads.items[i].object_waits);
	objects_free(&fixture->timeline.objects);
	forget(fixture);
}

static void test_no_waits(void **state)
{
	Fixture *fixture = *state;
	WaitGroups groups = wait_groups_make(&fixture->timeline, fixture->frames, false);

	assert_int_equal(groups.list.count, 0);
	expect_function(&groups, "main", 0, 0, 0, 0);
	wait_groups_free(&groups);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_groups),
		WITH_FIXTURE(test_functions),
		WITH_FIXTURE(test_same_name),
		WITH_FIXTURE(test_same_file_twice),
		WITH_FIXTURE(test_many_objects),
		WITH_FIXTURE(test_no_waits),
		WITH_FIXTURE(test_telling_functions),
		WITH_FIXTURE(test_nearly_all),
		WITH_FIXTURE(test_charge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
