/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the words of memory are called that threads wait for. */
#include "make_record.h"
#include "scenario.h"
#include "wait_fields.h"
#include "wait_reasons.h"
#include <setjmp.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include <cmocka.h>

#define S	1 /* TASK_INTERRUPTIBLE */
#define PROCESS 20
#define NS(x)	((x) + 1000) /* its number in wallprof's PID namespace, see scenario.c */
#define AVMA	0x400000
#define TABLE	0x5000 /* where the program has a variable of 64 bytes */
#define WORD	(AVMA + TABLE)

typedef struct Case {
	Scenario scenario;
	Frames *frames;
} Case;

static void to_frames(Case *c, struct record *record)
{
	frames_add(c->frames, record);
	free(record);
}

static void to_timeline(Case *c, int ms, struct record *record)
{
	record->ns = scenario_ns(ms);
	timeline_builder_add(c->scenario.builder, record);
	free(record);
}

/* A program whose code is mapped at AVMA, with a variable, and a function that ends before it. */
static int set_up(void **state)
{
	Case *c = xcalloc(1, sizeof(*c));

	scenario_begin(&c->scenario, 20, false);
	described(at(&c->scenario, -1), PROCESS, PROCESS, "app");
	in(at(&c->scenario, 0), PROCESS, 0);
	c->frames = frames_new();
	to_frames(c, make_file(1, 0, "/usr/bin/app", 0));
	to_frames(c, make_mapping(scenario_ns(-1), 0, NS(PROCESS), 1, AVMA, AVMA + 0x4000, AVMA));
	for (uint64_t offset = 0; offset < 64; offset += 8)
		to_frames(c, make_symbol(SYMBOL_DATA, 1, TABLE + offset, TABLE, "table", NULL));
	to_frames(c, make_symbol(0, 1, TABLE + 0x100, TABLE + 0x100, "function", NULL));
	*state = c;
	return 0;
}

static int tear_down(void **state)
{
	Case *c = *state;

	frames_free(c->frames);
	scenario_free(&c->scenario);
	free(c);
	return 0;
}

static void wait_for(Case *c, uint64_t address)
{
	c->scenario.next_out.args[0] = address;
	c->scenario.next_out.args[1] = 128; /* FUTEX_PRIVATE_FLAG */
	out_call(at(&c->scenario, 3), PROCESS, S, SYS_futex);
	wake(at(&c->scenario, 5), PROCESS, 30);
	in(at(&c->scenario, 6), PROCESS, 0);
}

static struct rec_futex *make_futex(uint64_t address, enum fault_memory memory, uint64_t inode)
{
	struct rec_futex *futex = make_record(REC_FUTEX, 0, 1, sizeof(struct rec_futex), NULL, 0);

	futex->address = address;
	futex->tgid = PROCESS;
	futex->memory = memory;
	futex->inode = inode;
	return futex;
}

static void expect(Case *c, const char *name)
{
	const Timeline *timeline;
	const Thread *thread;
	uint32_t object = OBJECT_NONE;

	scenario_finish(&c->scenario);
	timeline = c->scenario.timeline;
	wait_name_futexes(c->scenario.timeline, c->frames);
	thread = scenario_thread(&c->scenario, PROCESS, 0);
	for (size_t i = 0; i < thread->intervals.count; i++)
		if (thread->intervals.items[i].state == STATE_BLOCKED)
			object = wait_object(timeline, thread, i);
	assert_int_not_equal(object, OBJECT_NONE);
	assert_int_equal(timeline->objects.list.items[object].kind, OBJECT_FUTEX);
	assert_string_equal(timeline->objects.list.items[object].name, name);
}

static void test_variable(void **state)
{
	Case *c = *state;

	wait_for(c, WORD);
	to_timeline(c, 3, &make_futex(WORD, MEMORY_FILE, 7)->h);
	expect(c, "0x405000 (app: table)");
}

static void test_within_variable(void **state)
{
	Case *c = *state;

	wait_for(c, WORD + 0x18);
	to_timeline(c, 3, &make_futex(WORD + 0x18, MEMORY_ANONYMOUS, 0)->h);
	expect(c, "0x405018 (app: table+0x18)");
}

/* A futex that was waited for since before the window has no record. */
static void test_variable_untold(void **state)
{
	Case *c = *state;

	wait_for(c, WORD);
	expect(c, "0x405000 (app: table)");
}

/* The stack and what is shared are no variables, though they may follow a program. */
static void test_stack(void **state)
{
	Case *c = *state;

	wait_for(c, WORD);
	to_timeline(c, 3, &make_futex(WORD, MEMORY_STACK, 0)->h);
	expect(c, "0x405000 (stack)");
}

static void test_shared(void **state)
{
	static const char path[] = "ring\0shm\0dev";
	Case *c = *state;
	struct rec_inode *inode = make_record(REC_INODE, INODE_FULL_PATH, 1,
					      offsetof(struct rec_inode, text), path, sizeof(path));

	inode->inode = 7;
	inode->size = sizeof(path);
	to_timeline(c, 2, &inode->h);
	wait_for(c, WORD);
	to_timeline(c, 3, &make_futex(WORD, MEMORY_SHARED, 7)->h);
	expect(c, "0x405000 (mapped from /dev/shm/ring)");
}

static void test_function_is_no_variable(void **state)
{
	Case *c = *state;

	wait_for(c, WORD + 0x100);
	to_timeline(c, 3, &make_futex(WORD + 0x100, MEMORY_FILE, 7)->h);
	expect(c, "0x405100 (data of a file)");
}

static void test_memory(void **state)
{
	static const struct {
		enum fault_memory memory;
		const char *name;
	} cases[] = {
		{MEMORY_HEAP, "0x100 (heap)"},
		{MEMORY_STACK, "0x100 (stack)"},
		{MEMORY_ANONYMOUS, "0x100 (anonymous memory)"},
		{MEMORY_SHARED, "0x100 (shared memory)"},
		{MEMORY_FILE, "0x100 (data of a file)"},
		{MEMORY_UNKNOWN, "0x100"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		void *one;

		set_up(&one);
		wait_for(one, 0x100);
		to_timeline(one, 3, &make_futex(0x100, cases[i].memory, 0)->h);
		expect(one, cases[i].name);
		tear_down(&one);
	}
}

/* The later process of a number maps another program there. */
static void test_number_used_again(void **state)
{
	Case *c = *state;

	to_frames(c, make_file(2, 0, "/usr/bin/other", 0));
	to_frames(c, make_space(scenario_ns(2), SPACE_EXEC, NS(PROCESS), 0));
	to_frames(c, make_mapping(scenario_ns(2), 0, NS(PROCESS), 2, AVMA, AVMA + 0x4000, AVMA));
	to_frames(c, make_symbol(SYMBOL_DATA, 2, TABLE, TABLE, "queue", NULL));
	wait_for(c, WORD);
	to_timeline(c, 3, &make_futex(WORD, MEMORY_FILE, 7)->h);
	expect(c, "0x405000 (other: queue)");
}

/* A shared word that holds a tid is one that a join waits for; another one may be any word. */
static void test_join(void **state)
{
	static const struct {
		uint32_t value;
		enum reason reason;
	} cases[] = {{PROCESS + 1 + 2000, REASON_JOIN}, {7, REASON_FUTEX}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Scenario s;

		scenario_begin(&s, 20, false);
		described(at(&s, -1), PROCESS, PROCESS, "app");
		in(at(&s, 0), PROCESS, 0);
		birth(at(&s, 1), PROCESS + 1, PROCESS);
		wake_new(at(&s, 1), PROCESS + 1, PROCESS);
		s.next_out.args[0] = WORD;
		s.next_out.args[2] = cases[i].value;
		out_call(at(&s, 3), PROCESS, S, SYS_futex);
		scenario_finish(&s);
		assert_int_equal(scenario_thread(&s, PROCESS, 0)->intervals.items[1].reason,
				 cases[i].reason);
		scenario_free(&s);
	}
}

#define WITH_CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_CASE(test_variable),
		WITH_CASE(test_within_variable),
		WITH_CASE(test_variable_untold),
		WITH_CASE(test_stack),
		WITH_CASE(test_shared),
		WITH_CASE(test_function_is_no_variable),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_memory),
		WITH_CASE(test_number_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
