/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "frames_fixture.h"
#include "json_reader.h"
#include "report_sections.h"
#include "test_tools.h"
#include <limits.h>

#define MS NSEC_PER_MSEC

/* Calls of one function; some of them are folded. */
#define RECURSION 40

/* One thread, that runs for 30 ms, and has a tick at the end of each 10 of them. */
static void run_with_ticks(Fixture *fixture, const uint32_t stacks[3])
{
	Timeline *timeline = &fixture->timeline;
	Thread *thread = vec_push(&timeline->threads);

	timeline->start_ns = 0;
	timeline->end_ns = 30 * MS;
	timeline->command_thread = THREAD_NONE;
	*vec_push(&timeline->processes) = (Process){.ns_tgid = PROCESS};
	*vec_push(&timeline->processes.items[0].threads) = 0;
	*thread = (Thread){.end_ns = 30 * MS};
	*vec_push(&thread->intervals) = (Interval){
		.user_stack = STACK_NONE,
		.kernel_stack = STACK_NONE,
		.waker = THREAD_NONE,
		.cpu_user = THREAD_NONE,
		.syscall = -1,
		.state = STATE_RUNNING,
	};
	thread->ledger[STATE_RUNNING] = 30 * MS;
	for (size_t i = 0; i < 3; i++)
		*vec_push(&thread->ticks) = (Tick){
			.ns = MIN((i + 1) * 10 * MS, 30 * MS - 1),
			.user_stack = stacks[i],
			.kernel_stack = STACK_NONE,
			.user_mode = true,
		};
}

static void forget(Fixture *fixture)
{
	Timeline *timeline = &fixture->timeline;

	vec_free(&timeline->threads.items[0].intervals);
	vec_free(&timeline->threads.items[0].ticks);
	vec_free(&timeline->threads);
	vec_free(&timeline->processes.items[0].threads);
	vec_free(&timeline->processes);
}

static char *written(Fixture *fixture, bool as_json)
{
	char *text, *copy;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	Output *output = output_for_stream(stream);
	Json json = {.out = output};
	const Page page = {.file = stream};
	Places places;
	const Report report = {
		.page = &page, .places = &places, .rows = SIZE_MAX, .max_rank = INT_MAX};

	report_places_init(&places, &fixture->timeline, fixture->frames);
	report_places_add_all(&places);
	if (as_json) {
		json_begin_object(&json);
		report_functions(&json, &places);
		json_end_object(&json);
	} else {
		report_functions_print(&report);
	}
	report_places_free(&places);
	output_close(output);
	fclose(stream);
	copy = xstrdup(text); /* gcc takes text itself, whose address was passed, for local */
	free(text);
	return copy;
}

static void expect(const Node *functions, size_t number, const char *name, uint64_t self_ms,
		   uint64_t total_ms)
{
	const Node *function = node_at(functions, number);

	assert_string_equal(node_string(node_get(function, "function")), name);
	assert_string_equal(node_string(node_get(function, "library")), "libfoo.so.1");
	assert_int_equal(node_get(function, "kernel")->type, 'f');
	assert_int_equal((node_int(node_get(function, "self_ns")) + MS / 2) / MS, self_ms);
	assert_int_equal((node_int(node_get(function, "total_ns")) + MS / 2) / MS, total_ms);
}

/* What a function calls counts for it once, though it calls itself; its own time is all there is.
 */
static void test_functions(void **state)
{
	static const char *const names[] = {"leaf", "walk", "main"};
	Fixture *fixture = *state;
	uint64_t pcs[3]; /* of leaf, walk and main, as they stand when they call */
	char *text;
	Node *node;

	for (size_t i = 0; i < 3; i++) {
		uint64_t svma = 0x2000 + 0x100 * i;

		pcs[i] = AVMA + svma;
		give_symbol(fixture, 1, svma, svma, names[i], NULL);
		give_symbol(fixture, 1, svma - 1, svma, names[i], NULL);
	}
	const uint64_t deep[] = {pcs[0], pcs[1], pcs[1], pcs[2]}, flat[] = {pcs[1], pcs[2]};
	uint32_t stacks[] = {
		add_stack(fixture, STACK_USER, STACK_COMPLETE, deep, 4),
		add_stack(fixture, STACK_USER, STACK_COMPLETE, flat, 2),
		add_stack(fixture, STACK_USER, STACK_COMPLETE, flat, 2),
	};

	run_with_ticks(fixture, stacks);
	text = written(fixture, /* as_json= */ true);
	node = node_read(text);
	assert_int_equal(node_int(node_get(node, "running_function_count")), 3);
	const Node *functions = node_get(node, "running_functions");
	assert_int_equal(functions->count, 3);
	expect(functions, 0, "walk", 20, 30);
	expect(functions, 1, "leaf", 10, 10);
	expect(functions, 2, "main", 0, 30);
	node_free(node);
	free(text);
	text = written(fixture, /* as_json= */ false);
	assert_non_null(strstr(text,
			       "   20.000 ms  66.7 %    30.000 ms 100.0 %  walk (libfoo.so.1)\n"
			       "   10.000 ms  33.3 %    10.000 ms  33.3 %  leaf (libfoo.so.1)\n"));
	assert_null(strstr(text, "main"));
	free(text);
	forget(fixture);
}

/* A frame that stands for others is in no list of functions, unless time was spent there. */
static void test_pseudo_frames(void **state)
{
	Fixture *fixture = *state;
	uint64_t pcs[RECURSION], unknown = AVMA + 0x9000;
	uint32_t stacks[3];
	char *text;
	Node *node;

	give_symbol(fixture, 1, 0x2000, 0x2000, "walk", NULL);
	give_symbol(fixture, 1, 0x1fff, 0x2000, "walk", NULL);
	for (size_t i = 0; i < RECURSION; i++)
		pcs[i] = AVMA + 0x2000;
	/* Recursion, a stack that is truncated, and one of which nothing is known. */
	stacks[0] = add_stack(fixture, STACK_USER, STACK_COMPLETE, pcs, RECURSION);
	stacks[1] = add_stack(fixture, STACK_USER, STACK_NO_TABLE, pcs, 1);
	stacks[2] = add_stack(fixture, STACK_USER, STACK_COMPLETE, &unknown, 1);
	run_with_ticks(fixture, stacks);
	text = written(fixture, /* as_json= */ true);
	assert_null(strstr(text, "[recursion"));
	assert_null(strstr(text, "[truncated"));
	node = node_read(text);
	assert_int_equal(node_int(node_get(node, "running_function_count")), 2);
	expect(node_get(node, "running_functions"), 0, "walk", 20, 20);
	node_free(node);
	free(text);
	forget(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_functions),
		WITH_FIXTURE(test_pseudo_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
