/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "frames_fixture.h"
#include "hints.h"
#include "make_record.h"

#define MS	 NSEC_PER_MSEC
#define PYTHON	 0x560000000000
#define JIT_CODE 0x700000000000

/*
 * Sets when the thread ends, and its ticks: each is at the end of a tenth of its time, the last one
 * just before it.
 */
static void end_at(Thread *thread, uint64_t end_ns)
{
	thread->end_ns = end_ns;
	for (size_t i = 0; i < thread->ticks.count; i++)
		thread->ticks.items[i].ns = end_ns / 10 * (i + 1) - (i == 9);
}

/* A process whose ticks have the first stack, and after `first` of ten the second. */
static void run_with_ticks(Fixture *fixture, char *program, uint32_t stack, size_t first,
			   uint32_t other)
{
	Timeline *timeline = &fixture->timeline;
	Thread *thread = vec_push(&timeline->threads);

	timeline->end_ns = 1000 * MS;
	timeline->command_thread = THREAD_NONE;
	*vec_push(&timeline->processes) =
		(Process){.ns_tgid = PROCESS, .name = program, .path = program};
	*thread = (Thread){};
	*vec_push(&thread->intervals) = (Interval){
		.user_stack = STACK_NONE,
		.kernel_stack = STACK_NONE,
		.state = STATE_RUNNING,
	};
	for (size_t i = 0; i < 10; i++)
		*vec_push(&thread->ticks) = (Tick){
			.user_stack = i < first ? stack : other,
			.kernel_stack = STACK_NONE,
			.user_mode = true,
		};
	end_at(thread, 1000 * MS);
}

static void forget(Fixture *fixture)
{
	Timeline *timeline = &fixture->timeline;

	vec_free(&timeline->threads.items[0].intervals);
	vec_free(&timeline->threads.items[0].ticks);
	vec_free(&timeline->threads);
	vec_free(&timeline->processes);
}

static const HintsOptions usual = {.capture = "dir/x.capture"};

/* Returns what is logged, until the next call. */
static const char *hints_of(Fixture *fixture, const HintsOptions *options)
{
	static char text[4096];
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t size;

	assert_non_null(file);
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	hints_log(&fixture->timeline, fixture->frames, options);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	size = fread(text, 1, sizeof(text) - 1, file);
	text[size] = '\0';
	fclose(file);
	return text;
}

static void expect_hint(Fixture *fixture, const char *wanted)
{
	const char *text = hints_of(fixture, &usual);

	if (!strstr(text, wanted))
		fail_msg("no \"%s\" in \"%s\"", wanted, text);
	/* It is one line. */
	assert_int_equal(strcspn(text, "\n"), strlen(text) - 1);
}

/* Names the function at the address, and as seen from a return address behind it. */
static void name_function(const Fixture *fixture, uint32_t file, uint64_t address, const char *name)
{
	give_symbol(fixture, file, address, address, name, NULL);
	give_symbol(fixture, file, address - 1, address, name, NULL);
}

/* Maps the interpreter, with a name, and memory in which names are, or none. */
static void map_python(Fixture *fixture, const char *path, const char *function)
{
	give_record(fixture, make_file(3, 0, path, 0));
	give_record(fixture, make_mapping(10, 0, PROCESS, 3, PYTHON, PYTHON + 0x10000, PYTHON));
	name_function(fixture, 3, 0x100, "_PyEval_EvalFrameDefault");
	give_record(fixture, make_file(4, FILE_ANON, "//anon", 0));
	give_record(fixture,
		    make_mapping(10, 0, PROCESS, 4, JIT_CODE, JIT_CODE + 0x10000, JIT_CODE));
	if (function)
		name_function(fixture, 4, 0x200, function);
}

static const uint64_t interpreter[] = {PYTHON + 0x100};
static const uint64_t trampoline[] = {PYTHON + 0x100, JIT_CODE + 0x200};

static void check_python(void **state, const char *path, const char *wanted)
{
	Fixture *fixture = *state;
	uint32_t stack;
	char program[] = "/usr/bin/python3";

	map_python(fixture, path, NULL);
	stack = add_stack(fixture, STACK_USER, STACK_COMPLETE, interpreter, 1);
	run_with_ticks(fixture, program, stack, 10, stack);
	expect_hint(fixture, wanted);
	forget(fixture);
}

static void test_python(void **state)
{
	check_python(state, "/usr/bin/python3.15",
		     "hint: 100 % of the stacks lack the names of Python functions; record python3 "
		     "-X perf (Python 3.12 or later)");
}

static void test_old_python(void **state)
{
	check_python(state, "/usr/lib/libpython3.7.so.1.0", "which python3 cannot give; use");
}

/* There is no global lock, so its functions are not read. */
static void test_free_threaded_python(void **state)
{
	check_python(state, "/usr/bin/python3.13t", "record python3 -X perf");
}

/* Functions are read, but a short program may have ended before. */
static void test_read_python(void **state)
{
	static const char *const paths[] = {"/usr/bin/python3.8", "/usr/lib/libpython3.14.so.1.0"};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		Fixture *fixture = *state;
		uint32_t stack;
		char program[] = "/usr/bin/python3";

		map_python(fixture, paths[i], NULL);
		stack = add_stack(fixture, STACK_USER, STACK_COMPLETE, interpreter, 1);
		run_with_ticks(fixture, program, stack, 10, stack);
		assert_string_equal(hints_of(fixture, &usual), "");
		forget(fixture);
	}
}

/* With the perf trampoline, the functions are there. */
static void test_named_python(void **state)
{
	Fixture *fixture = *state;
	uint32_t stack;
	char program[] = "/usr/bin/python3.12";

	map_python(fixture, "/usr/bin/python3.15", "py::work:/x.py");
	stack = add_stack(fixture, STACK_USER, STACK_COMPLETE, trampoline, 2);
	run_with_ticks(fixture, program, stack, 10, stack);
	assert_string_equal(hints_of(fixture, &usual), "");
	forget(fixture);
}

static void check_jit(void **state, char *program, const char *wanted)
{
	static const uint64_t code[] = {JIT_CODE + 0x300};
	Fixture *fixture = *state;
	uint32_t stack;

	map_python(fixture, "/usr/bin/python3.12", NULL);
	stack = add_stack(fixture, STACK_USER, STACK_COMPLETE, code, 1);
	run_with_ticks(fixture, program, stack, 10, stack);
	expect_hint(fixture, wanted);
	forget(fixture);
}

static void test_node(void **state)
{
	char program[] = "/usr/bin/node";

	check_jit(state, program, "JavaScript functions; record node --perf-basic-prof");
}

static void test_java(void **state)
{
	char program[] = "/usr/lib/jvm/bin/java";

	check_jit(state, program, "Java methods; record java -XX:+UnlockDiagnosticVMOptions");
}

static void test_other_jit(void **state)
{
	char program[] = "/usr/bin/luajit";

	check_jit(state, program,
		  "code that luajit made at run time; let it write /tmp/perf-PID.map");
}

static void check_cut(void **state, char *program, int result, const char *wanted)
{
	static const uint64_t code[] = {JIT_CODE + 0x300};
	Fixture *fixture = *state;
	uint32_t stack;

	map_python(fixture, "/usr/bin/python3.12", NULL);
	stack = add_stack(fixture, STACK_USER, result, code, 1);
	fixture->timeline.stacks.items[stack].tables_ns = 1;
	run_with_ticks(fixture, program, stack, 10, stack);
	expect_hint(fixture, wanted);
	forget(fixture);
}

static void test_cut(void **state)
{
	char program[] = "/usr/bin/php8.2";

	check_cut(state, program, STACK_NO_CFI,
		  "hint: 100 % of the stacks are cut in code that php8.2 made at run time; record "
		  "php -d opcache.jit=disable");
}

static void test_cut_by_others(void **state)
{
	char program[] = "qemu-x86_64";

	check_cut(state, program, STACK_NO_CFI,
		  "let it keep frame pointers there, or make no code");
}

/* It ends there for another reason. */
static void test_not_cut(void **state)
{
	char program[] = "/usr/bin/php8.2";

	check_cut(state, program, STACK_COMPLETE, "lack the names of code that php8.2 made");
}

static const uint64_t unnamed[] = {AVMA + 0x5000}, named[] = {AVMA + 0x2000};

/* It is given for a tenth of the time and more. */
static void test_share(void **state)
{
	char program[] = "x";

	for (size_t first = 0; first <= 2; first++) {
		Fixture *fixture = *state;
		uint32_t stack = add_stack(fixture, STACK_USER, STACK_COMPLETE, unnamed, 1);
		uint32_t other = add_stack(fixture, STACK_USER, STACK_COMPLETE, named, 1);

		name_function(fixture, 1, 0x2000, "work");
		run_with_ticks(fixture, program, stack, first, other);
		if (first)
			expect_hint(fixture, first == 1 ? "hint: 10 % of" : "hint: 20 % of");
		else
			assert_string_equal(hints_of(fixture, &usual), "");
		forget(fixture);
	}
}

/* Ticks are more frequent at first: those of the first 200 ms are a fifth of the time. */
static void test_rate_changes(void **state)
{
	Fixture *fixture = *state;
	char program[] = "x";
	uint32_t stack = add_stack(fixture, STACK_USER, STACK_COMPLETE, unnamed, 1);
	uint32_t other = add_stack(fixture, STACK_USER, STACK_COMPLETE, named, 1);
	Thread *thread;

	name_function(fixture, 1, 0x2000, "work");
	run_with_ticks(fixture, program, stack, 8, other);
	thread = &fixture->timeline.threads.items[0];
	for (size_t i = 0; i < 8; i++)
		thread->ticks.items[i].ns = 25 * MS * (i + 1);
	expect_hint(fixture, "hint: 20 % of");
	forget(fixture);
}

/* A short run has few samples, which say nothing. */
static void test_short_run(void **state)
{
	Fixture *fixture = *state;
	char program[] = "x";
	uint32_t stack = add_stack(fixture, STACK_USER, STACK_COMPLETE, unnamed, 1);

	run_with_ticks(fixture, program, stack, 10, stack);
	end_at(&fixture->timeline.threads.items[0], HINT_NS - 10);
	assert_string_equal(hints_of(fixture, &usual), "");
	end_at(&fixture->timeline.threads.items[0], HINT_NS);
	expect_hint(fixture, "libfoo.so.1; build it without -s");
	forget(fixture);
}

/* The profile of that size is loaded by the viewer, a larger one is not. */
static void test_size(void **state)
{
	Fixture *fixture = *state;
	HintsOptions options = {.profile_bytes = HINT_VIEWER_BYTES, .capture = "my dir/x.capture"};
	char program[] = "x";

	run_with_ticks(fixture, program, STACK_NONE, 10, STACK_NONE);
	assert_string_equal(hints_of(fixture, &options), "");
	options.profile_bytes++;
	assert_non_null(strstr(hints_of(fixture, &options),
			       "hint: the profile has 537 MB of JSON, too much for the viewer; "
			       "wallprof export --to 10s -o part.json.gz 'my dir/x.capture', or"));
	options.capture = NULL;
	assert_non_null(strstr(hints_of(fixture, &options), "record a shorter time (-d 10s)"));
	forget(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_python),	 WITH_FIXTURE(test_old_python),
		WITH_FIXTURE(test_read_python),	 WITH_FIXTURE(test_free_threaded_python),
		WITH_FIXTURE(test_named_python), WITH_FIXTURE(test_node),
		WITH_FIXTURE(test_java),	 WITH_FIXTURE(test_other_jit),
		WITH_FIXTURE(test_cut),		 WITH_FIXTURE(test_cut_by_others),
		WITH_FIXTURE(test_not_cut),	 WITH_FIXTURE(test_share),
		WITH_FIXTURE(test_rate_changes), WITH_FIXTURE(test_short_run),
		WITH_FIXTURE(test_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
