/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Among the run-time system's functions above a program's own only the called one is kept.
 */
#include "frames_fixture.h"
#include "make_record.h"
#include "runtime_functions.h"

#define FRAMES_MAX 12
#define FILE_SPAN  0x10000 /* bytes that each file is mapped with */

/* The files that a stack's frames may lie in, by the letter before the colon. */
static const struct {
	char letter;
	const char *path;
} files[] = {
	{'c', "/usr/lib/x86_64-linux-gnu/libc.so.6"},
	{'m', "/lib/ld-musl-x86_64.so.1"},
	{'s', "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"},
	{'p', "/usr/bin/program"},
	{'l', "/usr/lib/libcurl.so.4"},
};

static size_t file_of(char letter)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (files[i].letter == letter)
			return i;
	fail();
	return 0;
}

/* A stack of "LETTER:FUNCTION", the innermost first; NULL ends it. */
static uint32_t stack_of(Fixture *fixture, const char *const *names)
{
	static uint64_t next = 0x100;
	uint64_t pcs[FRAMES_MAX];
	uint16_t count = 0;

	for (; names[count]; count++) {
		size_t file = file_of(names[count][0]);

		assert_true(count < FRAMES_MAX);
		next += 0x10;
		pcs[count] = AVMA + file * FILE_SPAN + next + (count > 0);
		give_symbol(fixture, file + 1, next, next, names[count] + 2, NULL);
	}
	return add_stack(fixture, STACK_USER, STACK_COMPLETE, pcs, count);
}

typedef struct Case {
	const char *names[FRAMES_MAX];
	const char *entry; /* the innermost function that is left */
} Case;

static const Case cases[] = {
	/* glibc 2.36 with a table of all its symbols, 2.41, and with exports alone. */
	{{"c:__GI___libc_read", "c:_IO_new_file_underflow", "c:_IO_fgets", "p:read_config",
	  "p:main", "c:__libc_start_call_main"},
	 "_IO_fgets"},
	{{"c:__syscall_cancel_arch", "c:__internal_syscall_cancel", "c:__syscall_cancel", "c:read",
	  "p:read_config", "p:main", "c:__libc_start_call_main"},
	 "read"},
	{{"c:0x9f3d1 (libc.so.6)", "c:0x9f401 (libc.so.6)", "c:pthread_cond_wait", "p:take",
	  "p:main"},
	 "pthread_cond_wait"},
	{{"c:read", "p:main"}, "read"},
	{{"m:__cp_end", "m:__syscall_cp_c", "m:readv", "m:__stdio_read", "m:__uflow", "m:fgets",
	  "p:read_config", "p:main"},
	 "fgets"},
	/* Linked statically: by the names that are the implementation's. */
	{{"p:__syscall_cancel_arch", "p:__syscall_cancel", "p:__libc_read", "p:_IO_file_underflow",
	  "p:_IO_fgets", "p:read_config", "p:main", "p:__libc_start_main", "p:_start"},
	 "_IO_fgets"},
	{{"p:read", "p:_IO_file_underflow", "p:_IO_getline_info", "p:fgets", "p:read_config",
	  "p:main"},
	 "_IO_getline_info"},
	{{"p:nanosleep", "p:_nap", "p:main"}, "nanosleep"},
	/* C++, Rust, Go. */
	{{"c:read", "s:std::__basic_file<char>::xsgetn", "s:std::istream::getline",
	  "p:std::basic_ios<char>::good", "p:app::Config::read", "p:main"},
	 "std::basic_ios<char>::good"},
	{{"c:read", "p:std::sys::pal::unix::fd::FileDesc::read",
	  "p:<std::io::stdio::StdinRaw as std::io::Read>::read", "p:app::read_config",
	  "p:std::rt::lang_start"},
	 "<std::io::stdio::StdinRaw as std::io::Read>::read"},
	{{"c:write", "p:<std::fs::File as std::io::Write>::write",
	  "p:<app::Log as std::io::Write>::write", "p:app::main"},
	 "<std::fs::File as std::io::Write>::write"},
	{{"p:internal/runtime/syscall.Syscall6", "p:syscall.RawSyscall6", "p:syscall.read",
	  "p:internal/poll.(*FD).Read", "p:os.(*File).Read", "p:bufio.(*Reader).fill",
	  "p:main.readConfig", "p:main.main", "p:runtime.main", "p:runtime.goexit"},
	 "bufio.(*Reader).fill"},
	{{"p:syscall.read", "p:example.org/os.Read", "p:main.main"}, "syscall.read"},
	/* A C function of that name, and gcc's copy of one. */
	{{"p:time.constprop.0", "p:wait_a_while", "p:main"}, "time.constprop.0"},
	{{"c:nanosleep", "p:time.isra.0", "p:main"}, "nanosleep"},
	/* A library that is no run-time system is the program's. */
	{{"c:poll", "l:Curl_poll", "l:curl_multi_wait", "p:main"}, "poll"},
	/* Below a callback the run-time system is the program's business. */
	{{"p:compare", "c:qsort_r", "p:main"}, "compare"},
	/* Nothing of the program: all of it is shown. */
	{{"p:runtime.futex", "p:runtime.notesleep", "p:runtime.stopm", "p:runtime.mcall"},
	 "runtime.futex"},
	{{"c:epoll_wait", "c:start_thread", "c:clone3"}, "epoll_wait"},
	{{"p:__libc_read", "p:__libc_start_main", "p:_start"}, "__libc_read"},
};

static void test_entry(void **state)
{
	Fixture *fixture = *state;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		uint64_t start = AVMA + i * FILE_SPAN;

		give_record(fixture, make_file(i + 1, 0, files[i].path, 0));
		give_record(fixture,
			    make_mapping(10, 0, PROCESS, i + 1, start, start + FILE_SPAN, start));
	}
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint32_t stack = stack_of(fixture, cases[i].names);
		const uint32_t *indexes;
		size_t count = frames_resolve(fixture->frames, &fixture->timeline, PROCESS, 50,
					      stack, STACK_NONE, false, &indexes);
		size_t left = runtime_entry(fixture->frames, indexes, count);

		assert_uint_in_range(left, 1, count);
		assert_string_equal(
			strings_get(&fixture->frames->strings,
				    fixture->frames->list.items[indexes[left - 1]].function),
			cases[i].entry);
	}
}

/* A stack with an unknown root has a frame that says so. It is not a function of the program. */
static void test_truncated(void **state)
{
	static const uint64_t pc = AVMA + 0x40;
	Fixture *fixture = *state;
	const uint32_t *indexes;
	size_t count;

	give_record(fixture, make_file(1, 0, files[0].path, 0));
	give_record(fixture, make_mapping(10, 0, PROCESS, 1, AVMA, AVMA + FILE_SPAN, AVMA));
	give_symbol(fixture, 1, 0x40, 0x40, "read", NULL);
	count = frames_resolve(fixture->frames, &fixture->timeline, PROCESS, 50,
			       add_stack(fixture, STACK_USER, STACK_GAP, &pc, 1), STACK_NONE, false,
			       &indexes);
	assert_int_equal(count, 2);
	assert_int_equal(runtime_entry(fixture->frames, indexes, count), 2);
	assert_int_equal(runtime_entry(fixture->frames, NULL, 0), 0);
}

/* A mark of what is guessed, amid the run-time system's functions or just below them. */
static void test_marked(void **state)
{
	Fixture *fixture = *state;

	give_record(fixture, make_file(1, 0, files[0].path, 0));
	give_record(fixture, make_file(2, 0, "/usr/bin/program", 0));
	give_record(fixture, make_mapping(10, 0, PROCESS, 1, AVMA, AVMA + FILE_SPAN, AVMA));
	give_record(fixture, make_mapping(10, 0, PROCESS, 2, AVMA + FILE_SPAN, AVMA + 2 * FILE_SPAN,
					  AVMA + FILE_SPAN));
	give_symbol(fixture, 1, 0x40, 0x40, "write", NULL);
	give_symbol(fixture, 1, 0x7f, 0x60, "printf", NULL);
	give_symbol(fixture, 2, 0x9f, 0x80, "main", NULL);
	for (int guessed = 0; guessed < 3; guessed++) {
		uint64_t pcs[] = {AVMA + 0x40, AVMA + 0x80, AVMA + FILE_SPAN + 0xa0};
		const uint32_t *indexes;
		const Frame *frame;
		size_t count, entry;
		uint32_t stack;

		pcs[guessed] |= FRAME_GUESSED;
		stack = add_stack(fixture, STACK_USER | STACK_GUESSED, STACK_COMPLETE, pcs, 3);
		fixture->timeline.stacks.items[stack].tables_ns = 50;
		count = frames_resolve(fixture->frames, &fixture->timeline, PROCESS, 50, stack,
				       STACK_NONE, false, &indexes);
		assert_int_equal(count, 4);
		entry = runtime_entry(fixture->frames, indexes, count);
		frame = &fixture->frames->list.items[indexes[entry - 1]];
		assert_string_equal(strings_get(&fixture->frames->strings, frame->function),
				    "printf");
	}
}

static int set_up_empty(void **state)
{
	Fixture *fixture = xcalloc(1, sizeof(*fixture));

	fixture->frames = frames_new();
	*state = fixture;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_entry, set_up_empty, frames_fixture_tear_down),
		cmocka_unit_test_setup_teardown(test_truncated, set_up_empty,
						frames_fixture_tear_down),
		cmocka_unit_test_setup_teardown(test_marked, set_up_empty,
						frames_fixture_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
