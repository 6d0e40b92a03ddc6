/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A string of letters is what a thread does, 10 ms each. A table says what stack each letter has,
 * and what ends it.
 */
#include "idle.h"
#include "timeline_fixture.h"
#include <asm/unistd_64.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define STEP (10 * NSEC_PER_MSEC)

enum ender { PEER, SIGNAL, OTHERS_TASK, INTERRUPT, NO_END, UNKNOWN };

typedef struct Kind {
	char letter;
	/* A frame each, the outermost first; after a '|' those of a script. */
	const char *stack;
	enum ender ends;
	enum reason reason; /* REASON_NONE: it runs, and is seen there */
	int16_t syscall;
} Kind;

typedef struct Fixture {
	Timeline *timeline;
	uint32_t process, thread, peer, child, outsider;
	struct {
		char text[32];
		uint32_t stack;
	} stacks[32];
	size_t stack_count;
} Fixture;

/* Adds the script frames, the outermost first. Returns StackDef::script. */
static uint32_t add_script(Timeline *t, const char *text)
{
	size_t count = strlen(text);

	*vec_push(&t->scripts) = (ScriptStack){
		.first = t->script_frames.count,
		.count = count,
		.leaf = count,
		.defined = true,
	};
	for (size_t k = count; k-- > 0;)
		*vec_push(&t->script_frames) = (struct script_frame){.code = text[k], .at = 2};
	return t->scripts.count;
}

static uint32_t stack_of(Fixture *fixture, const char *text)
{
	Timeline *t = fixture->timeline;
	size_t frames = strcspn(text, "|"), i = 0;
	uint32_t script = 0;

	while (i < fixture->stack_count && strcmp(fixture->stacks[i].text, text) != 0)
		i++;
	if (i < fixture->stack_count)
		return fixture->stacks[i].stack;
	assert_true(i < ARRAY_LEN(fixture->stacks) &&
		    strlen(text) < sizeof(fixture->stacks[0].text));
	if (text[frames])
		script = add_script(t, text + frames + 1);
	strcpy(fixture->stacks[i].text, text);
	fixture->stacks[i].stack = t->stacks.count;
	fixture->stack_count++;
	*vec_push(&t->stacks) = (StackDef){
		.id = t->stacks.count + 1,
		.first = t->frames.count,
		.count = frames,
		.flags = STACK_USER,
		.defined = true,
		.script = script,
	};
	for (size_t k = frames; k-- > 0;)
		*vec_push(&t->frames) = 0x1000 + text[k];
	return fixture->stacks[i].stack;
}

static void add_step(Fixture *fixture, uint32_t thread, uint64_t ns, const Kind *kind)
{
	Timeline *t = fixture->timeline;
	Interval *interval = fixture_interval(
		t, thread, ns, kind->reason ? STATE_BLOCKED : STATE_RUNNING, kind->reason);

	if (!kind->reason) {
		fixture_tick(t, thread, ns + STEP / 2, true)->user_stack =
			stack_of(fixture, kind->stack);
		return;
	}
	interval->user_stack = stack_of(fixture, kind->stack);
	interval->syscall = kind->syscall;
	switch (kind->ends) {
	case PEER:
		interval->waker = t->threads.items[fixture->peer].task;
		break;
	case SIGNAL: /* of a child of the process */
		interval->waker = t->threads.items[fixture->child].task;
		break;
	case OTHERS_TASK:
		interval->waker = fixture->outsider;
		break;
	case INTERRUPT: /* of a timer */
		interval->flags = INTERVAL_WAKER_IRQ;
		*vec_push(&t->threads.items[thread].waker_stacks) = (WakerStack){
			.start_ns = interval->start_ns,
			.user_stack = STACK_NONE,
			.kernel_stack = STACK_NONE,
			.source = INTERRUPT_TIMER,
		};
		break;
	case NO_END:
		interval->flags = INTERVAL_OPEN_END;
		break;
	case UNKNOWN:
		break;
	}
}

static uint32_t add_thread(Fixture *fixture, uint32_t tid, const char *states, const Kind *kinds)
{
	uint32_t thread = fixture_thread(fixture->timeline, fixture->process, tid, "thread", 0,
					 strlen(states) * STEP);

	for (size_t i = 0; states[i]; i++) {
		const Kind *kind = kinds;

		while (kind->letter && kind->letter != states[i])
			kind++;
		assert_true(kind->letter);
		add_step(fixture, thread, i * STEP, kind);
	}
	return thread;
}

static void begin(Fixture *fixture, const char *states, const Kind *kinds)
{
	Timeline *t = fixture_new(100 * STEP);

	*fixture = (Fixture){.timeline = t};
	fixture->process = fixture_process(t, 1, "process", 0, 100 * STEP);
	fixture->peer = fixture_thread(t, fixture->process, 1, "peer", 0, 100 * STEP);
	fixture_interval(t, fixture->peer, 0, STATE_RUNNING, REASON_NONE);
	fixture->child = fixture_thread(t, fixture_process(t, 5, "child", 0, 100 * STEP), 5,
					"child", 0, 100 * STEP);
	fixture_interval(t, fixture->child, 0, STATE_RUNNING, REASON_NONE);
	t->processes.items[t->processes.count - 1].parent = fixture->process;
	fixture->outsider = t->tasks.count;
	*vec_push(&t->tasks) = (Task){.tid = 99, .thread = THREAD_NONE};
	fixture->thread = add_thread(fixture, 2, states, kinds);
}

/* A letter for each interval: 'c' it counts, 'i' idle, 'j' between jobs, '.' it is no wait. */
static void expect(Fixture *fixture, const char *wanted)
{
	Timeline *t = fixture->timeline;
	Thread *thread = &t->threads.items[fixture->thread];
	char drawn[128] = {};
	uint64_t ledger[REASON_COUNT] = {};

	fixture_finish(t);
	idle_find(t);
	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *wait = &thread->intervals.items[i];
		enum category category = reason_info[wait->reason].category;

		drawn[i] = wait->state != STATE_BLOCKED ? '.'
			   : category == CATEGORY_IDLE	? 'i'
			   : category == CATEGORY_JOBS	? 'j'
							: 'c';
		if (wait->state == STATE_BLOCKED)
			ledger[wait->reason] += interval_end(thread, i) - wait->start_ns;
	}
	assert_string_equal(drawn, wanted);
	assert_memory_equal(ledger, thread->reason_ledger, sizeof(ledger));
	timeline_free(t);
}

static void test_who_ended_it(void **state)
{
	static const Kind kinds[] = {
		{'p', "MJC", PEER, REASON_CONDVAR, __NR_futex},
		{'o', "MJC", OTHERS_TASK, REASON_CONDVAR, __NR_futex},
		{'t', "MJC", INTERRUPT, REASON_CONDVAR, __NR_futex},
		{'n', "MJC", NO_END, REASON_CONDVAR, __NR_futex},
		{'u', "MJC", UNKNOWN, REASON_CONDVAR, __NR_futex},
		{'s', "MJS", INTERRUPT, REASON_SLEEP, __NR_nanosleep},
		{'m', "MJX", NO_END, REASON_MUTEX, __NR_futex},
		{'e', "MJE", OTHERS_TASK, REASON_EPOLL, __NR_epoll_wait},
		{'E', "MJE", INTERRUPT, REASON_NETWORK_POLL, __NR_epoll_wait},
		{'1', "MJP", INTERRUPT, REASON_NETWORK_POLL, __NR_poll},
		{'a', "MJA", INTERRUPT, REASON_ACCEPT, __NR_accept},
		{'r', "MJR", INTERRUPT, REASON_NETWORK_RECEIVE, __NR_recvfrom},
		{'d', "MJD", INTERRUPT, REASON_DISK_READ, __NR_read},
		{'A', "MJA", SIGNAL, REASON_ACCEPT, __NR_select},
		{'k', "MJK", PEER, REASON_CHILD, __NR_wait4},
		{'K', "MJK", NO_END, REASON_CHILD, __NR_wait4},
		{'q', "MJQ", PEER, REASON_JOIN, __NR_futex},
		{'Q', "MJQ", NO_END, REASON_JOIN, __NR_futex},
		{'.', "MJ", PEER, REASON_NONE, -1},
		{},
	};
	static const struct {
		const char *states, *wanted;
	} cases[] = {
		{".p.o.t.n", ".j.i.i.i"},
		{".u.s.m", ".c.c.c"},
		{".e.E.1.a.r.d", ".i.i.c.i.c.c"},
		/* A signal is not a connection, and a wait that does not end is idle. */
		{".A.k.q.K", ".i.c.c.i"},
		{".kkkkk.Q", ".ccccc.i"},
	};
	Fixture fixture;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		begin(&fixture, cases[i].states, kinds);
		expect(&fixture, cases[i].wanted);
	}
}

/* A worker of a pool: its loop L waits for a job, and does it. */
static void test_outermost_loop(void **state)
{
	static const Kind kinds[] = {
		{'w', "MLC", PEER, REASON_CONDVAR, __NR_futex},
		/* A wait in the middle of the job, for a thread that answers. */
		{'x', "MLJXC", PEER, REASON_CONDVAR, __NR_futex},
		{'y', "MLJYC", PEER, REASON_EPOLL, __NR_epoll_wait},
		/* May be a lock of the program's own. */
		{'f', "MLF", PEER, REASON_FUTEX, __NR_futex},
		/* At the end of the recording they are asleep. */
		{'W', "MLC", NO_END, REASON_CONDVAR, __NR_futex},
		{'X', "MLJXC", NO_END, REASON_CONDVAR, __NR_futex},
		{'Y', "MLJYC", NO_END, REASON_EPOLL, __NR_epoll_wait},
		{'j', "MLJ", PEER, REASON_NONE, -1},
		{'k', "MLJK", PEER, REASON_NONE, -1},
		{'l', "MLJXL", PEER, REASON_NONE, -1},
		{'b', "ML", PEER, REASON_NONE, -1},
		{'i', "MI", PEER, REASON_NONE, -1},
		{},
	};
	static const struct {
		const char *states, *wanted;
	} cases[] = {
		{"wjwkwjkw", "j.j.j..j"},
		/* Nothing was seen of the jobs. */
		{"wwww", "jjjj"},
		/* Not again and again. */
		{"wjwj", "c.c."},
		/* What came before the loop, and after it, does not matter. */
		{"iiiiwjwjwjiii", "....j.j.j...."},
		/* What is waited for in a job counts, and that for the job does not. */
		{"wjxkwjxlwkxjw", "j.c.j.c.j.c.j"},
		{"wjxyjwjxyjwjxyjw", "j.cc.j.cc.j.cc.j"},
		/* A job that is as long as the recording, and does other things, too. */
		{"kxbxjlxkxbxk", ".c.c..c.c.c."},
		{"wjfwjfwjfw", "j.cj.cj.cj"},
		/* Threads end the other waits at the place, so this one counts as well. */
		{"wjxkwjxlwkxjwkX", "j.c.j.c.j.c.j.c"},
		{"wjxkwjxlwkxjW", "j.c.j.c.j.c.i"},
		{"wjxkwjxlwkxjwkY", "j.c.j.c.j.c.j.i"},
	};
	Fixture fixture;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		print_message("%s\n", cases[i].states);
		begin(&fixture, cases[i].states, kinds);
		expect(&fixture, cases[i].wanted);
	}
}

/* In C all waits of a program that an interpreter runs have one stack. */
static void test_scripts(void **state)
{
	static const Kind kinds[] = {
		{'w', "MEC|ML", PEER, REASON_QUEUE, __NR_futex},
		{'x', "MEC|MLJX", PEER, REASON_FUTURE, __NR_futex},
		{'o', "MEC|ML", PEER, REASON_LOCK, __NR_futex},
		{'j', "MEF|MLJ", PEER, REASON_NONE, -1},
		{'k', "ME|MLJK", PEER, REASON_NONE, -1},
		/* Their functions were not read. */
		{'n', "MEF", PEER, REASON_NONE, -1},
		{},
	};
	static const struct {
		const char *states, *wanted;
	} cases[] = {
		{"wjwkwjkw", "j.j.j..j"},
		/* What is waited for in a job counts. */
		{"wjxkwjxkwkxjw", "j.c.j.c.j.c.j"},
		/* A lock does, wherever it is. */
		{"wjokwjokwkojw", "j.c.j.c.j.c.j"},
		{"wjnnwnnkwjnnw", "j...j...j...j"},
	};
	Fixture fixture;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		print_message("%s\n", cases[i].states);
		begin(&fixture, cases[i].states, kinds);
		expect(&fixture, cases[i].wanted);
	}
}

/* What the waiting call does is neither work nor a loop. */
static void test_in_the_call(void **state)
{
	static const Kind kinds[] = {
		{'w', "MLWCF", PEER, REASON_CONDVAR, __NR_futex},
		{'c', "MLWCM", PEER, REASON_NONE, -1},
		{'j', "MLJ", PEER, REASON_NONE, -1},
		{},
	};
	Fixture fixture;

	(void)state;
	for (uint16_t call_frames = 0; call_frames <= 2; call_frames += 2) {
		begin(&fixture, "wcccjwcccjwcccjwccc", kinds);
		fixture.timeline->stacks.items[0].call_frames = call_frames;
		expect(&fixture, call_frames ? "j....j....j....j..." : "c....c....c....c...");
	}
}

/* Adds one end of a Unix connection; returns the object's index. */
static uint32_t add_connection(Timeline *t, bool accepted)
{
	static const char path[] = "/run/x";
	_cleanup_free_ struct rec_socket *socket = xcalloc(1, sizeof(*socket) + sizeof(path));

	socket->h.kind = REC_SOCKET;
	socket->h.len = sizeof(*socket) + sizeof(path);
	socket->h.flags = accepted ? 0 : SOCKET_PEER_PATH;
	socket->inode = 17;
	socket->peer_inode = 18;
	socket->family = AF_UNIX;
	socket->size = sizeof(path) - 1;
	strcpy(socket->text, path);
	objects_add_socket(&t->objects, socket);
	return t->objects.list.count - 1;
}

/* The waits with these letters are for one end of a connection. */
static void wait_for_connection(Fixture *fixture, const char *states, const char *letters,
				bool accepted)
{
	uint32_t object = add_connection(fixture->timeline, accepted);
	Thread *thread = &fixture->timeline->threads.items[fixture->thread];

	for (size_t i = 0; i < thread->intervals.count; i++)
		if (strchr(letters, states[i]))
			*vec_push(&thread->object_waits) =
				(ObjectWait){thread->intervals.items[i].start_ns, object};
}

/* One thread per connection: it is idle until its client sends a request. */
static void test_clients(void **state)
{
	static const Kind kinds[] = {
		{'p', "MLP", INTERRUPT, REASON_UNIX_POLL, __NR_poll},
		{'n', "MLP", NO_END, REASON_UNIX_POLL, __NR_poll},
		/* A few waits in the middle of a request, none for the next one. */
		{'x', "MLJX", PEER, REASON_CONDVAR, __NR_futex},
		/* A pause in it, and one between requests. */
		{'t', "MLJTC", INTERRUPT, REASON_CONDVAR, __NR_futex},
		{'T', "MTC", INTERRUPT, REASON_CONDVAR, __NR_futex},
		{'j', "MLJ", PEER, REASON_NONE, -1},
		{},
	};
	static const struct {
		const char *states, *wanted[2]; /* of a client's connection, of an accepted one */
	} cases[] = {
		{"pppjxpppjxpppjxppn", {"ccc.jccc.jccc.jccc", "iii.ciii.ciii.ciii"}},
		{"Tpjtjpjtjpjtjpjp", {"ic.i.c.i.c.i.c.c", "ii.c.i.c.i.c.i.i"}},
	};
	Fixture fixture;

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
		begin(&fixture, cases[i / 2].states, kinds);
		wait_for_connection(&fixture, cases[i / 2].states, "pn", i % 2);
		expect(&fixture, cases[i / 2].wanted[i % 2]);
	}
}

/*
 * A recorded thread sends what ends the waits: requests on an accepted connection; replies on one
 * to a server, if the thread waits for nothing else.
 */
static void test_replies(void **state)
{
	static const Kind kinds[] = {
		{'p', "MLP", PEER, REASON_UNIX_POLL, __NR_poll},
		{'e', "MLP", PEER, REASON_UNIX_POLL, __NR_epoll_wait},
		{'j', "MLJ", PEER, REASON_NONE, -1},
		{},
	};
	static const char *const states[] = {"pjpjpjpjp", "ejejejeje"};
	static const char *const wanted[2][2] = {{"c.c.c.c.c", "j.j.j.j.j"},
						 {"j.j.j.j.j", "j.j.j.j.j"}};
	Fixture fixture;

	(void)state;
	for (int accepted = 0; accepted <= 1; accepted++)
		for (size_t i = 0; i < ARRAY_LEN(states); i++) {
			begin(&fixture, states[i], kinds);
			wait_for_connection(&fixture, states[i], "pe", accepted);
			expect(&fixture, wanted[accepted][i]);
		}
}

/* An event loop and a pool that works for it: the thread that gave the job waits for the answer. */
static void test_own_pool(void **state)
{
	static const Kind kinds[] = {
		{'e', "MLE", PEER, REASON_EPOLL, __NR_epoll_wait},
		{'j', "MLJ", PEER, REASON_NONE, -1},
		{'w', "PWC", PEER, REASON_CONDVAR, __NR_futex},
		{'k', "PWK", PEER, REASON_NONE, -1},
		{'s', "PWS", INTERRUPT, REASON_SLEEP, __NR_nanosleep},
		{},
	};
	static const struct {
		const char *worker, *wanted;
	} cases[] = {
		{"wkwkwkwk", ".c.c.c.c"},
		/* It has slept since, so it may be a client with a think time. */
		{"wswswsws", ".j.j.j.j"},
	};
	Fixture fixture;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint32_t worker;

		begin(&fixture, "jejejeje", kinds);
		fixture.peer = fixture.thread;
		worker = add_thread(&fixture, 3, cases[i].worker, kinds);
		for (size_t k = 1; k < 8; k += 2)
			fixture.timeline->threads.items[fixture.thread].intervals.items[k].waker =
				fixture.timeline->threads.items[worker].task;
		expect(&fixture, cases[i].wanted);
	}
}

/* Truncated stacks do not show what lies outside. */
static void test_cut_stacks(void **state)
{
	static const Kind kinds[] = {
		{'w', "MLC", PEER, REASON_CONDVAR, __NR_futex},
		{'j', "MLJ", PEER, REASON_NONE, -1},
		{},
	};
	Fixture fixture;

	(void)state;
	begin(&fixture, "wjwjwj", kinds);
	for (size_t i = 0; i < fixture.timeline->stacks.count; i++)
		fixture.timeline->stacks.items[i].result = STACK_COMPLETE + 1;
	expect(&fixture, "c.c.c.");
	begin(&fixture, "wjwjwj", kinds);
	fixture.timeline->stacks.items[0].defined = false;
	expect(&fixture, "c.c.c.");
}

/* A wait in a program's own scheduler is one without work, whatever the thread does elsewhere. */
static void test_without_work(void **state)
{
	static const Kind kinds[] = {
		{'p', "GS", PEER, REASON_GO_SCHEDULER, __NR_futex},
		{'e', "GE", PEER, REASON_EPOLL, __NR_epoll_pwait},
		{'t', "GE", INTERRUPT, REASON_EPOLL, __NR_epoll_pwait},
		{'o', "GE", OTHERS_TASK, REASON_EPOLL, __NR_epoll_pwait},
		{'u', "GE", UNKNOWN, REASON_EPOLL, __NR_epoll_pwait},
		{'n', "GS", NO_END, REASON_GO_SCHEDULER, __NR_futex},
		{'j', "RJ", PEER, REASON_NONE, -1},
		{},
	};
	Fixture fixture;

	(void)state;
	for (int with_work = 0; with_work < 2; with_work++) {
		begin(&fixture, "pjejtjojujpn", kinds);
		for (size_t i = 0; i < fixture.timeline->stacks.count; i++)
			fixture.timeline->stacks.items[i].without_work = !with_work;
		expect(&fixture, with_work ? "c.c.i.i.c.ci" : "j.j.i.i.c.ji");
	}
}

/* A wait that a peer in another process ends counts as a wait for the peer. */
static void test_without_work_for_peer(void **state)
{
	static const Kind kinds[] = {
		{'e', "GE", PEER, REASON_EPOLL, __NR_epoll_pwait},
		{'j', "RJ", PEER, REASON_NONE, -1},
		{},
	};
	Fixture fixture;

	(void)state;
	begin(&fixture, "ejeje", kinds);
	fixture.timeline->stacks.items[0].without_work = true;
	fixture.timeline->threads.items[fixture.peer].process =
		fixture_process(fixture.timeline, 7, "peer", 0, 100 * STEP);
	expect(&fixture, "c.c.c");
}

/* A loop deep in the program is not the outermost one. */
static void test_deep_loop(void **state)
{
	static const Kind kinds[] = {
		{'w', "0123456789abcdefgL", PEER, REASON_CONDVAR, __NR_futex},
		{'j', "0123456789abcdefgJ", PEER, REASON_NONE, -1},
		{'x', "0123456789abcdefghijklmnL", PEER, REASON_CONDVAR, __NR_futex},
		{},
	};
	Fixture fixture;

	(void)state;
	begin(&fixture, "wjwjwj", kinds);
	expect(&fixture, "c.c.c.");
	/* Even if no other work was seen. */
	begin(&fixture, "xxxx", kinds);
	expect(&fixture, "cccc");
}

/* Two queues: it is not known for which of the two a thread works. */
static void test_two_in_one_loop(void **state)
{
	static const Kind kinds[] = {
		{'w', "MLC", PEER, REASON_CONDVAR, __NR_futex},
		{'x', "MLD", PEER, REASON_CONDVAR, __NR_futex},
		{'j', "MLJ", PEER, REASON_NONE, -1},
		{},
	};
	Fixture fixture;

	(void)state;
	begin(&fixture, "wjxwjxwjxwjx", kinds);
	expect(&fixture, "c.cc.cc.cc.c");
}

/* The threads of a pool share a place: each may have waited there but once, and nowhere else. */
static void test_pool(void **state)
{
	static const Kind kinds[] = {
		{'w', "MLC", PEER, REASON_SEMAPHORE, __NR_futex},
		{'x', "MLX", PEER, REASON_SEMAPHORE, __NR_futex},
		{'h', "MHC", PEER, REASON_SEMAPHORE, __NR_futex},
		{'j', "MLJ", PEER, REASON_NONE, -1},
		{'s', "S", PEER, REASON_NONE, -1},
		{'E', "E", PEER, REASON_NONE, -1},
		{},
	};
	Fixture fixture;

	(void)state;
	/* A tick hit one of them while it started. */
	begin(&fixture, "swj", kinds);
	add_thread(&fixture, 3, "wj", kinds);
	add_thread(&fixture, 4, "wj", kinds);
	expect(&fixture, ".j.");
	begin(&fixture, "sw", kinds);
	add_thread(&fixture, 3, "w", kinds);
	add_thread(&fixture, 4, "wj", kinds);
	expect(&fixture, ".j");
	/* Some hit it while the process ended. */
	begin(&fixture, "swjEEE", kinds);
	fixture.timeline->stacks.items[stack_of(&fixture, "E")].result = STACK_NO_MM;
	add_thread(&fixture, 3, "wj", kinds);
	add_thread(&fixture, 4, "wj", kinds);
	expect(&fixture, ".j....");
	begin(&fixture, "wjj", kinds);
	add_thread(&fixture, 3, "wj", kinds);
	add_thread(&fixture, 4, "wjj", kinds);
	expect(&fixture, "j..");
	begin(&fixture, "wjjxj", kinds);
	add_thread(&fixture, 3, "wj", kinds);
	add_thread(&fixture, 4, "wjj", kinds);
	expect(&fixture, "c..c.");
	/* Each thread waits once at its beginning, which is not its loop. */
	begin(&fixture, "hwjwjwj", kinds);
	add_thread(&fixture, 3, "hwj", kinds);
	add_thread(&fixture, 4, "hj", kinds);
	expect(&fixture, "jj.j.j.");
}

/* A time-out is a part of the wait that goes on after it, if that is at the same place. */
static void test_time_outs(void **state)
{
	static const Kind kinds[] = {
		{'p', "MLJXE", PEER, REASON_EPOLL, __NR_epoll_wait},
		{'t', "MLJXE", INTERRUPT, REASON_EPOLL, __NR_epoll_wait},
		{'T', "MLJZE", INTERRUPT, REASON_EPOLL, __NR_epoll_wait},
		{'n', "MLJXE", NO_END, REASON_EPOLL, __NR_epoll_wait},
		{'o', "MLJXE", OTHERS_TASK, REASON_EPOLL, __NR_epoll_wait},
		{'b', "ML", PEER, REASON_NONE, -1},
		{'j', "MLJX", PEER, REASON_NONE, -1},
		{},
	};
	Fixture fixture;

	(void)state;
	/* The thread's work is outside of the loop of the wait, and inside. */
	begin(&fixture, "btbtpbjjjjjjTpottn", kinds);
	expect(&fixture, ".c.cc.......iciiii");
	begin(&fixture, "btbtpbjjjjjjTpotptn", kinds);
	expect(&fixture, ".c.cc.......icicccc");
	/* Threads end many of the waits, so all of them count. */
	begin(&fixture, "tttttppp", kinds);
	expect(&fixture, "jjjjjjjj");
	/* A thread that looks for work now and then. */
	begin(&fixture, "tttttp", kinds);
	expect(&fixture, "iijjjj");
}

static void test_on_the_path(void **state)
{
	static const Kind kinds[] = {
		{'t', "MLE", INTERRUPT, REASON_EPOLL, __NR_epoll_wait},
		{'T', "MIE", INTERRUPT, REASON_EPOLL, __NR_epoll_wait},
		{'j', "MLJ", PEER, REASON_NONE, -1},
		{},
	};
	Fixture fixture;
	Thread *path_track;

	(void)state;
	begin(&fixture, "Tjtjt", kinds);
	/* A part of the second one. */
	path_track = &fixture.timeline->path.track;
	*vec_push(&path_track->intervals) =
		fixture.timeline->threads.items[fixture.thread].intervals.items[2];
	path_track->intervals.items[0].start_ns += STEP / 2;
	path_track->end_ns = path_track->intervals.items[0].start_ns + STEP / 4;
	*vec_push(&path_track->owners) = fixture.thread;
	expect(&fixture, "i.c.i");
	/* It was woken just after its waker had left the path. */
	begin(&fixture, "Tjtjt", kinds);
	path_track = &fixture.timeline->path.track;
	*vec_push(&path_track->intervals) =
		fixture.timeline->threads.items[fixture.thread].intervals.items[2];
	path_track->intervals.items[0].start_ns += STEP / 2;
	path_track->end_ns = path_track->intervals.items[0].start_ns + STEP / 200;
	*vec_push(&path_track->owners) = fixture.thread;
	expect(&fixture, "i.i.i");
}

/* A request to a disk ended it, or it is marked as a wait for one. */
static void test_disks(void **state)
{
	static const Kind kinds[] = {
		{'u', "MLU", INTERRUPT, REASON_AIO, __NR_io_getevents},
		{'U', "MIU", INTERRUPT, REASON_IO_URING, __NR_io_uring_enter},
		{},
	};
	Fixture fixture;
	Thread *thread;

	(void)state;
	begin(&fixture, "Uuu", kinds);
	thread = &fixture.timeline->threads.items[fixture.thread];
	/* A ring's request may be for the network, and the wait is marked as iowait as well. */
	thread->intervals.items[0].sleep = SLEEP_FOR_DISK;
	thread->intervals.items[1].sleep = SLEEP_FOR_DISK;
	*vec_push(&thread->request_waits) = (RequestWait){.interval = 2};
	expect(&fixture, "icc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_ended_it), cmocka_unit_test(test_outermost_loop),
		cmocka_unit_test(test_scripts),	     cmocka_unit_test(test_cut_stacks),
		cmocka_unit_test(test_deep_loop),    cmocka_unit_test(test_two_in_one_loop),
		cmocka_unit_test(test_pool),	     cmocka_unit_test(test_time_outs),
		cmocka_unit_test(test_on_the_path),  cmocka_unit_test(test_disks),
		cmocka_unit_test(test_in_the_call),  cmocka_unit_test(test_clients),
		cmocka_unit_test(test_replies),	     cmocka_unit_test(test_own_pool),
		cmocka_unit_test(test_without_work), cmocka_unit_test(test_without_work_for_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
