/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions of a program that an interpreter runs, in their places among the functions of C. */
#include "frames_fixture.h"
#include "script_frames.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define EVAL  "_PyEval_EvalFrameDefault"
#define MAX_C 8

/* Gives the code with this id a name and a file. */
static void give_code(const Fixture *fixture, uint64_t id, const char *name, const char *path)
{
	struct rec_script_code *code = xcalloc(1, sizeof(*code));

	code->h = (struct record){.len = sizeof(*code), .kind = REC_SCRIPT_CODE};
	code->id = id;
	code->version = 0x030b;
	code->language = SCRIPT_PYTHON;
	code->first_line = 10;
	code->name_kind = code->path_kind = 1;
	code->name_bytes = strlen(name);
	code->path_bytes = strlen(path);
	memcpy(code->name, name, code->name_bytes);
	memcpy(code->path, path, code->path_bytes);
	give_record(fixture, &code->h);
}

/* Returns a stack of these functions of C, the innermost one first. */
static uint32_t add_c(Fixture *fixture, const char *const *names)
{
	uint64_t pcs[MAX_C];
	uint16_t count = 0;

	for (; names[count]; count++) {
		pcs[count] = AVMA + 0x2000 + fixture->timeline.frames.count * 0x100 + count * 0x100;
		/* Of all but the innermost one the address of the call is looked up. */
		give_symbol(fixture, 1, pcs[count] - AVMA - (count > 0), pcs[count] - AVMA - 16,
			    names[count], NULL);
	}
	return add_stack(fixture, STACK_USER, STACK_COMPLETE, pcs, count);
}

/* Adds script frames, the innermost one first: ids of code, negative if C code has called it. */
static uint32_t add_script(Fixture *fixture, uint32_t plain, uint8_t result, const int *codes)
{
	Timeline *t = &fixture->timeline;
	ScriptStack script = {
		.first = t->script_frames.count,
		.result = result,
		.language = SCRIPT_PYTHON,
		.defined = true,
	};
	StackDef stack = t->stacks.items[plain];

	for (; codes[script.count]; script.count++)
		*vec_push(&t->script_frames) = (struct script_frame){
			.code = abs(codes[script.count]),
			.at = -1,
			.flags = codes[script.count] < 0 ? SCRIPT_FRAME_ENTRY : 0,
		};
	script.leaf = script.count;
	*vec_push(&t->scripts) = script;
	stack.script = t->scripts.count;
	stack.plain = plain;
	*vec_push(&t->stacks) = stack;
	return t->stacks.count - 1;
}

static int set_up(void **state)
{
	int error = frames_fixture_set_up(state);
	Fixture *fixture = *state;

	give_code(fixture, 1, "<module>", "/srv/app.py");
	give_code(fixture, 2, "serve", "/srv/app.py");
	give_code(fixture, 3, "Condition.wait", "/usr/lib/python3.11/threading.py");
	give_code(fixture, 4, "_find_and_load", "<frozen importlib._bootstrap>");
	give_code(fixture, 5, "__init__", "__init__");
	return error;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	vec_free(&fixture->timeline.scripts);
	vec_free(&fixture->timeline.script_frames);
	return frames_fixture_tear_down(state);
}

static void expect(Fixture *fixture, const char *const *c, uint8_t result, const int *codes,
		   const char *wanted)
{
	uint32_t stack = add_script(fixture, add_c(fixture, c), result, codes);

	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false), wanted);
}

#define C_STACK(...) ((const char *const[]){__VA_ARGS__, NULL})
#define SCRIPT(...)  ((const int[]){__VA_ARGS__, 0})

/* One function of C runs two functions, another one runs the third. */
static void test_runs(void **state)
{
	expect(*state, C_STACK("sem_wait", "acquire", EVAL, "callback", EVAL, "_start"),
	       SCRIPT_COMPLETE, SCRIPT(-3, 2, -1),
	       "_start;<module>;serve;[libfoo.so.1];Condition.wait;acquire;sem_wait");
}

/* What only passes a call on is not shown, unless the thread is in it. */
static void test_glue(void **state)
{
	expect(*state, C_STACK("sem_wait", "_PyObject_MakeTpCall", EVAL, "_start"), SCRIPT_COMPLETE,
	       SCRIPT(2, -1), "_start;<module>;serve;sem_wait");
	expect(*state, C_STACK("_PyObject_MakeTpCall", EVAL, "_start"), SCRIPT_COMPLETE,
	       SCRIPT(2, -1), "_start;<module>;serve;_PyObject_MakeTpCall");
	expect(*state, C_STACK("sem_wait", EVAL, "_PyObject_Vectorcall", EVAL, "_start"),
	       SCRIPT_COMPLETE, SCRIPT(-2, -1), "_start;<module>;serve;sem_wait");
}

static void test_hidden(void **state)
{
	expect(*state, C_STACK("sem_wait", EVAL, "_start"), SCRIPT_COMPLETE, SCRIPT(2, 5, -1),
	       "_start;<module>;serve;sem_wait");
	expect(*state, C_STACK("sem_wait", EVAL, "_start"), SCRIPT_COMPLETE, SCRIPT(2, 4, 4, -1),
	       "_start;<module>;[importlib];serve;sem_wait");
}

/* What could not be read is not guessed. */
static void test_unread(void **state)
{
	expect(*state, C_STACK("sem_wait", EVAL, "_start"), SCRIPT_COMPLETE, SCRIPT(2, 77, -1),
	       "_start;<module>;[script function lost];serve;sem_wait");
	expect(*state, C_STACK("sem_wait", EVAL, "_start"), SCRIPT_FAULT, SCRIPT(2, -1),
	       "_start;[script frames: unreadable];<module>;serve;sem_wait");
	expect(*state, C_STACK("sem_wait", EVAL, "_start"), SCRIPT_TRUNCATED, SCRIPT(2, -1),
	       "_start;[script frames: too deep];<module>;serve;sem_wait");
}

/* No function of C runs code: the stack of C does not reach there. */
static void test_without_evaluator(void **state)
{
	expect(*state, C_STACK("sem_wait", "main"), SCRIPT_COMPLETE, SCRIPT(2, -1),
	       "<module>;serve;main;sem_wait");
}

#define WITH_SCRIPTS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SCRIPTS(test_runs),
		WITH_SCRIPTS(test_glue),
		WITH_SCRIPTS(test_hidden),
		WITH_SCRIPTS(test_unread),
		WITH_SCRIPTS(test_without_evaluator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
