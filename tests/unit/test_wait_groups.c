/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "frames_fixture.h"
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
		.rival = THREAD_NONE,
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

/* One reason at one place is one group, in whatever thread; who is idle is in none. */
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
		WITH_FIXTURE(test_no_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
