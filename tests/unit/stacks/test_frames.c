/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "frames_fixture.h"
#include "make_record.h"

static const Frame *last_frame(const Fixture *fixture, uint32_t user, uint32_t kernel, bool exact)
{
	const uint32_t *indexes;
	size_t count = frames_resolve(fixture->frames, &fixture->timeline, PROCESS, 50, user,
				      kernel, exact, &indexes);

	assert_true(count > 0);
	return &fixture->frames->list.items[indexes[count - 1]];
}

static void test_user_stack(void **state)
{
	static const uint64_t pcs[] = {AVMA + 0x2000, AVMA + 0x3001};
	Fixture *fixture = *state;
	const Library *library;
	const Frame *frame;
	uint32_t stack;

	give_symbol(fixture, 1, 0x2000, 0x1ff0, "leaf", NULL);
	give_symbol(fixture, 1, 0x3000, 0x2ff0, "caller", NULL);
	stack = add_stack(fixture, STACK_USER, STACK_COMPLETE, pcs, 2);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false), "caller;leaf");
	frame = last_frame(fixture, stack, STACK_NONE, false);
	assert_int_equal(frame->address, 0x1000);
	assert_int_equal(frame->function_start, 0xff0);
	assert_int_equal(frame->function_size, 64);
	assert_int_equal(frame->source, UINT32_MAX);
	assert_true(frame->named);
	assert_false(frame->kernel);
	library = &fixture->frames->libraries.items[frame->lib];
	assert_string_equal(library->name, "libfoo.so.1");
	assert_string_equal(library->path, "/usr/lib/libfoo.so.1");
	assert_false(library->kernel);
	/* In a system call the leaf is a return address too. */
	stack = add_stack(fixture, STACK_USER | STACK_SYSCALL_PC, STACK_FRAME_POINTERS,
			  (uint64_t[]){AVMA + 0x2001}, 1);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "[truncated: no frame pointers];leaf");
}

static void test_inlined_calls(void **state)
{
	static const char text[] = "\x0a\0\0\0outer\0/src/a.c\0"
				   "\x14\0\0\0middle\0/src/b.h\0"
				   "\0\0\0\0inner\0";
	static const uint64_t pc = AVMA + 0x2000;
	Fixture *fixture = *state;
	const Frames *frames = fixture->frames;
	struct rec_symbol *symbol = make_record(REC_SYMBOL, 0, 0, offsetof(struct rec_symbol, text),
						text, sizeof(text));
	uint32_t stack = add_stack(fixture, STACK_USER, STACK_COMPLETE, &pc, 1);
	const uint32_t *indexes;

	symbol->file = 1;
	symbol->count = 3;
	symbol->address = 0x2000;
	symbol->function = 0x1f00;
	give_record(fixture, &symbol->h);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false), "outer;middle;inner");
	frames_resolve(fixture->frames, &fixture->timeline, PROCESS, 50, stack, STACK_NONE, false,
		       &indexes);
	for (int i = 0; i < 3; i++) {
		static const uint32_t lines[] = {10, 20, 0};
		const Frame *frame = &frames->list.items[indexes[i]];

		assert_int_equal(frame->inline_depth, i);
		assert_int_equal(frame->line, lines[i]);
		assert_int_equal(frame->address, 0x1000);
		assert_int_equal(frame->function_start, 0xf00);
	}
	assert_string_equal(strings_get(&frames->strings, frames->list.items[indexes[0]].source),
			    "/src/a.c");
	assert_string_equal(strings_get(&frames->strings, frames->list.items[indexes[1]].source),
			    "/src/b.h");
	assert_int_equal(frames->list.items[indexes[2]].source, UINT32_MAX);
}

/* Two functions at one address, one after the other, in memory of no file. */
static void test_code_made_at_run_time(void **state)
{
	static const uint64_t pcs[] = {0x5010, AVMA + 0x3001};
	Fixture *fixture = *state;
	uint32_t stack = add_stack(fixture, STACK_USER, STACK_COMPLETE, pcs, 2);
	const Library *library;
	const Frame *frame;

	give_record(fixture, make_file(3, FILE_ANON, "//anon", 0));
	give_record(fixture, make_file(4, FILE_JIT, "/tmp/jit-100.dump", 0));
	give_record(fixture, make_mapping(10, 0, PROCESS, 3, 0x5000, 0x6000, 0x5000));
	give_record(fixture, make_code(40, PROCESS, 4, 0x5000, 0x5100, 0x5000 - 0x80));
	give_record(fixture, make_code(60, PROCESS, 4, 0x5000, 0x5080, 0x5000 - 0x400));
	give_symbol(fixture, 1, 0x3000, 0x2ff0, "caller", NULL);
	give_symbol(fixture, 4, 0x90, 0x80, "first", NULL);
	give_symbol(fixture, 4, 0x410, 0x400, "second", NULL);
	assert_string_equal(resolve(fixture, 39, stack, STACK_NONE, false), "caller;0x10 ([anon])");
	assert_string_equal(resolve(fixture, 40, stack, STACK_NONE, false), "caller;first");
	assert_string_equal(resolve(fixture, 60, stack, STACK_NONE, false), "caller;second");
	assert_string_equal(resolve(fixture, 59, stack, STACK_NONE, false), "caller;first");
	frame = last_frame(fixture, stack, STACK_NONE, false);
	assert_int_equal(frame->address, 0x90);
	assert_int_equal(frame->function_start, 0x80);
	library = &fixture->frames->libraries.items[frame->lib];
	assert_string_equal(library->name, "jit-100.dump");
}

static void test_unknown_names(void **state)
{
	static const uint64_t pcs[] = {AVMA + 0x2234, 0x5679};
	Fixture *fixture = *state;
	uint32_t stack = add_stack(fixture, STACK_USER, STACK_COMPLETE, pcs, 2);
	const Frame *frame;

	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "0x5678;0x1234 (libfoo.so.1)");
	frame = last_frame(fixture, stack, STACK_NONE, false);
	assert_false(frame->named);
	assert_int_equal(frame->address, 0x1234);
	assert_int_equal(frame->function_start, frame->address);
	/* Before anything was mapped there. */
	assert_string_equal(resolve(fixture, 5, stack, STACK_NONE, false), "0x5678;0x7f0000002234");
}

static void test_memory_without_a_file(void **state)
{
	static const uint64_t pc = 0x601234;
	Fixture *fixture = *state;
	uint32_t stack = add_stack(fixture, STACK_USER, STACK_COMPLETE, &pc, 1);

	give_record(fixture, make_file(3, FILE_ANON, "//anon", 0));
	give_record(fixture, make_mapping(20, 0, PROCESS, 3, 0x600000, 0x700000, 0));
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false), "0x601234 ([anon])");
}

/* The same stack after dlclose and dlopen of something else there. */
static void test_generations(void **state)
{
	static const uint64_t pc = AVMA + 0x2000;
	Fixture *fixture = *state;
	uint32_t stack = add_stack(fixture, STACK_USER, STACK_COMPLETE, &pc, 1);

	give_record(fixture, make_mapping(100, 0, PROCESS, 2, AVMA, AVMA + 0x10000, AVMA - 0x100));
	give_symbol(fixture, 1, 0x2000, 0x2000, "old", NULL);
	give_symbol(fixture, 2, 0x2100, 0x2100, "new", NULL);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(resolve(fixture, 99, stack, STACK_NONE, false), "old");
		assert_string_equal(resolve(fixture, 100, stack, STACK_NONE, false), "new");
	}
}

static void test_interned_once(void **state)
{
	static const uint64_t pcs[] = {AVMA + 0x2000, AVMA + 0x3001, AVMA + 0x4001};
	Fixture *fixture = *state;
	uint32_t stack = add_stack(fixture, STACK_USER, STACK_COMPLETE, pcs, 3);
	uint32_t other = add_stack(fixture, STACK_USER, STACK_COMPLETE, pcs, 2);
	size_t frames;

	resolve(fixture, 50, stack, STACK_NONE, false);
	frames = fixture->frames->list.count;
	assert_int_equal(frames, 3);
	for (uint64_t ns = 50; ns < 60; ns++)
		resolve(fixture, ns, other, STACK_NONE, false);
	assert_int_equal(fixture->frames->list.count, frames);
	assert_int_equal(fixture->frames->libraries.count, 1);
	assert_int_equal(frames_pseudo(fixture->frames, "[mutex wait]"),
			 frames_pseudo(fixture->frames, "[mutex wait]"));
	assert_int_not_equal(frames_pseudo(fixture->frames, "[mutex wait]"),
			     frames_pseudo(fixture->frames, "[sleep]"));
}

static void test_pseudo(void **state)
{
	Fixture *fixture = *state;
	uint32_t number = frames_pseudo(fixture->frames, "[mutex wait]");
	const Frame *frame = &fixture->frames->list.items[number];

	assert_true(frame->address == UINT64_MAX);
	assert_int_equal(frame->lib, LIBRARY_NONE);
	assert_string_equal(strings_get(&fixture->frames->strings, frame->function),
			    "[mutex wait]");
}

#define KERNEL(n) (0xffffffff81000000 + (n))

static void test_kernel_stack(void **state)
{
	static const uint64_t user_pc = AVMA + 0x2000;
	static const uint64_t pcs[] = {KERNEL(0x100), KERNEL(0x201), KERNEL(0x301),
				       0xffffffffc0001001};
	Fixture *fixture = *state;
	uint32_t user = add_stack(fixture, STACK_USER, STACK_COMPLETE, &user_pc, 1);
	uint32_t stack = add_stack(fixture, 0, STACK_COMPLETE, pcs, 4);
	const Frame *frame;

	give_symbol(fixture, 1, 0x2000, 0x2000, "main", NULL);
	give_symbol(fixture, 0, KERNEL(0xff), KERNEL(0xf0), "before", NULL);
	give_symbol(fixture, 0, KERNEL(0x100), KERNEL(0x100), "exact", NULL);
	give_symbol(fixture, 0, KERNEL(0x200), KERNEL(0x200), "vfs_read", NULL);
	give_symbol(fixture, 0, 0xffffffffc0001000, 0xffffffffc0000ff0, "ext4_read", "[ext4]");
	assert_string_equal(resolve(fixture, 50, user, stack, true),
			    "main;ext4_read;0xffffffff81000300 ([kernel.kallsyms]);vfs_read;exact");
	assert_string_equal(resolve(fixture, 50, STACK_NONE, stack, false),
			    "ext4_read;0xffffffff81000300 ([kernel.kallsyms]);vfs_read;before");
	frame = last_frame(fixture, user, stack, true);
	assert_true(frame->kernel);
	assert_int_equal(frame->address, 0x1000100);
	assert_int_equal(frame->function_start, 0x1000100);
	assert_true(fixture->frames->libraries.items[frame->lib].kernel);
	assert_string_equal(fixture->frames->libraries.items[frame->lib].name, "[kernel.kallsyms]");
	frame = last_frame(fixture, STACK_NONE, add_stack(fixture, 0, STACK_COMPLETE, pcs + 3, 1),
			   false);
	assert_string_equal(fixture->frames->libraries.items[frame->lib].name, "[ext4]");
}

/* Leaf first, names; "" has none. Returns the stack. */
static uint32_t add_kernel_names(Fixture *fixture, const char *const *names, uint16_t count)
{
	static uint64_t next = KERNEL(0x100000);
	uint64_t pcs[16];

	for (uint16_t i = 0; i < count; i++) {
		next += 0x100;
		pcs[i] = next + 1;
		if (*names[i]) {
			give_symbol(fixture, 0, next, next, names[i], NULL);
			give_symbol(fixture, 0, next + 1, next, names[i], NULL);
		}
	}
	return add_stack(fixture, 0, STACK_COMPLETE, pcs, count);
}

static void test_tracing_is_stripped(void **state)
{
	static const char *const raw[] = {"bpf_prog_0123456789abcdef_handle_switch",
					  "bpf_trace_run4",
					  "__traceiter_sched_switch",
					  "__schedule",
					  "schedule",
					  "do_nanosleep"};
	static const char *const nameless[] = {"get_stack_helper", "bpf_get_stack_raw_tp", "",
					       "__traceiter_sched_switch", "__schedule"};
	static const char *const clean[] = {"__schedule", "schedule", "futex_wait"};
	static const char *const interrupted[] = {"try_to_wake_up",
						  "hrtimer_wakeup",
						  "hrtimer_interrupt",
						  "",
						  "bpf_prog_0123456789abcdef_on_ring_work",
						  "bpf_trampoline_6442464389",
						  "io_arm_poll_handler"};
	static const char *const preempted[] = {"__schedule", "preempt_schedule_irq",
						"bpf_trampoline_6442464389", "handle_mm_fault"};
	static const char *const deep[] = {
		"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "bpf_trace_run2"};
	Fixture *fixture = *state;
	uint32_t stack = add_kernel_names(fixture, raw, ARRAY_LEN(raw));

	assert_string_equal(resolve(fixture, 50, STACK_NONE, stack, false),
			    "do_nanosleep;schedule;__schedule");
	/* A tick that struck there belongs there. */
	assert_string_equal(resolve(fixture, 50, STACK_NONE, stack, true),
			    "do_nanosleep;schedule;__schedule;__traceiter_sched_switch;"
			    "bpf_trace_run4;bpf_prog_0123456789abcdef_handle_switch");
	stack = add_kernel_names(fixture, nameless, ARRAY_LEN(nameless));
	assert_string_equal(resolve(fixture, 50, STACK_NONE, stack, false), "__schedule");
	stack = add_kernel_names(fixture, clean, ARRAY_LEN(clean));
	assert_string_equal(resolve(fixture, 50, STACK_NONE, stack, false),
			    "futex_wait;schedule;__schedule");
	/* A program that was interrupted, or preempted, is not what took the stack. */
	stack = add_kernel_names(fixture, interrupted, ARRAY_LEN(interrupted));
	assert_non_null(strstr(resolve(fixture, 50, STACK_NONE, stack, false),
			       "hrtimer_interrupt;hrtimer_wakeup;try_to_wake_up"));
	stack = add_kernel_names(fixture, preempted, ARRAY_LEN(preempted));
	assert_string_equal(
		resolve(fixture, 50, STACK_NONE, stack, false),
		"handle_mm_fault;bpf_trampoline_6442464389;preempt_schedule_irq;__schedule");
	stack = add_kernel_names(fixture, deep, ARRAY_LEN(deep));
	assert_string_equal(resolve(fixture, 50, STACK_NONE, stack, false),
			    "bpf_trace_run2;j;i;h;g;f;e;d;c;b;a");
}

static void test_broken_stacks(void **state)
{
	static const uint64_t pc = AVMA + 0x2000;
	Fixture *fixture = *state;
	uint32_t deep = add_stack(fixture, STACK_USER, STACK_TRUNCATED, &pc, 1);
	uint32_t unreadable = add_stack(fixture, STACK_USER, STACK_FAULT, &pc, 1);
	uint32_t empty = add_stack(fixture, STACK_USER, STACK_FAULT, &pc, 0);
	uint32_t guessed = add_stack(fixture, STACK_USER, STACK_FRAME_POINTERS, &pc, 1);
	uint32_t lost = add_stack(fixture, 0, 0, &pc, 0);

	fixture->timeline.stacks.items[lost].defined = false;
	give_symbol(fixture, 1, 0x2000, 0x2000, "leaf", NULL);
	assert_string_equal(resolve(fixture, 50, deep, STACK_NONE, false),
			    "[truncated: too deep];leaf");
	assert_string_equal(resolve(fixture, 50, unreadable, STACK_NONE, false),
			    "[truncated: unreadable stack];leaf");
	assert_string_equal(resolve(fixture, 50, empty, STACK_NONE, false),
			    "[truncated: unreadable stack]");
	assert_string_equal(resolve(fixture, 50, guessed, STACK_NONE, false),
			    "[truncated: no frame pointers];leaf");
	assert_string_equal(resolve(fixture, 50, lost, STACK_NONE, false), "[stack lost]");
	assert_string_equal(resolve(fixture, 50, deep, lost, false),
			    "[truncated: too deep];leaf;[kernel stack lost]");
	assert_string_equal(resolve(fixture, 50, STACK_NONE, STACK_NONE, false), "");
}

/* A walk by frame pointers is whole only if it ends where threads begin. */
static void test_ends_of_walks(void **state)
{
	static const char *const roots[] = {"_start", "__libc_start_main_impl", "clone3",
					    "start_thread"};
	static const uint64_t nonsense[] = {AVMA + 0x2000, AVMA + 0x3001, 0x1234};
	Fixture *fixture = *state;
	uint64_t pcs[2] = {AVMA + 0x2000};
	char expected[64];
	uint32_t stack;

	give_symbol(fixture, 1, 0x2000, 0x2000, "leaf", NULL);
	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		give_symbol(fixture, 1, 0x3000 + 16 * i, 0x3000, roots[i], NULL);
		pcs[1] = AVMA + 0x3001 + 16 * i;
		stack = add_stack(fixture, STACK_USER, STACK_FRAME_POINTERS, pcs, 2);
		snprintf(expected, sizeof(expected), "%s;leaf", roots[i]);
		assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false), expected);
	}
	give_symbol(fixture, 1, 0x4000, 0x4000, "__restore_rt", NULL);
	pcs[1] = AVMA + 0x4001;
	stack = add_stack(fixture, STACK_USER, STACK_FRAME_POINTERS, pcs, 2);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "[truncated: no frame pointers];__restore_rt;leaf");
	/* What is read beyond the root does not matter; beyond another function it does. */
	stack = add_stack(fixture, STACK_USER, STACK_FRAME_POINTERS, nonsense, 3);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false), "_start;leaf");
	stack = add_stack(fixture, STACK_USER, STACK_FRAME_POINTERS, nonsense, 1);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "[truncated: no frame pointers];leaf");
	stack = add_stack(fixture, STACK_USER, STACK_FRAME_POINTERS, nonsense, 0);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "[truncated: no frame pointers]");
}

/* The C library's own beginnings often have no names; a leaf there proves nothing. */
static void test_roots_without_names(void **state)
{
	static const uint64_t in_libc[] = {AVMA + 0x2000, AVMA + 0x100041};
	static const uint64_t in_loader[] = {AVMA + 0x200040, AVMA + 0x200081};
	Fixture *fixture = *state;
	uint32_t stack;

	give_record(fixture, make_file(3, 0, "/usr/lib/libc.so.6", 0));
	give_record(fixture, make_file(4, 0, "/usr/lib/ld-linux-x86-64.so.2", 0));
	give_record(fixture, make_mapping(10, 0, PROCESS, 3, AVMA + 0x100000, AVMA + 0x110000,
					  AVMA + 0x100000));
	give_record(fixture, make_mapping(10, 0, PROCESS, 4, AVMA + 0x200000, AVMA + 0x210000,
					  AVMA + 0x200000));
	give_symbol(fixture, 1, 0x2000, 0x2000, "leaf", NULL);
	stack = add_stack(fixture, STACK_USER, STACK_FRAME_POINTERS, in_libc, 2);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "0x40 (libc.so.6);leaf");
	stack = add_stack(fixture, STACK_USER, STACK_FRAME_POINTERS, in_libc + 1, 1);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "[truncated: no frame pointers];0x41 (libc.so.6)");
	stack = add_stack(fixture, STACK_USER, STACK_FRAME_POINTERS, in_loader, 1);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "[truncated: no frame pointers];0x40 (ld-linux-x86-64.so.2)");
}

/* A frame pointer that points at itself is no recursion. */
static void test_loops(void **state)
{
	Fixture *fixture = *state;
	uint64_t pcs[100];
	uint32_t stack;
	const uint32_t *indexes;

	for (size_t i = 0; i < ARRAY_LEN(pcs); i++)
		pcs[i] = AVMA + 0x3001;
	pcs[0] = AVMA + 0x2000;
	give_symbol(fixture, 1, 0x2000, 0x2000, "leaf", NULL);
	give_symbol(fixture, 1, 0x3000, 0x2ff0, "caller", NULL);
	give_symbol(fixture, 1, 0x3008, 0x2ff0, "caller", NULL);
	fixture->frames->unfolded = true;
	stack = add_stack(fixture, STACK_USER, STACK_TRUNCATED, pcs, 100);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "[truncated: no frame pointers];caller;leaf");
	stack = add_stack(fixture, STACK_USER, STACK_TRUNCATED, pcs + 1, 99);
	assert_int_equal(frames_resolve(fixture->frames, &fixture->timeline, PROCESS, 50, stack,
					STACK_NONE, false, &indexes),
			 2);
	/* Too few to decide; and a function that calls itself. */
	stack = add_stack(fixture, STACK_USER, STACK_TRUNCATED, pcs, 32);
	assert_int_equal(frames_resolve(fixture->frames, &fixture->timeline, PROCESS, 50, stack,
					STACK_NONE, false, &indexes),
			 33);
	pcs[0] = AVMA + 0x3008;
	stack = add_stack(fixture, STACK_USER, STACK_TRUNCATED, pcs, 100);
	assert_int_equal(frames_resolve(fixture->frames, &fixture->timeline, PROCESS, 50, stack,
					STACK_NONE, false, &indexes),
			 101);
	/* A piece of code without symbols is not a function that calls itself. */
	pcs[0] = AVMA + 0x4000;
	for (size_t i = 1; i < ARRAY_LEN(pcs); i++)
		pcs[i] = AVMA + 0x4101;
	give_symbol(fixture, 1, 0x4000, 0x3f00, "[no symbols 0x2f00-0x3200]", NULL);
	give_symbol(fixture, 1, 0x4100, 0x3f00, "[no symbols 0x2f00-0x3200]", NULL);
	stack = add_stack(fixture, STACK_USER, STACK_TRUNCATED, pcs, 100);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "[truncated: no frame pointers];[no symbols 0x2f00-0x3200];"
			    "[no symbols 0x2f00-0x3200]");
}

/* A capture with stacks, none of which has a frame. */
static void test_no_frames_at_all(void **state)
{
	Fixture *fixture = *state;
	uint32_t user = add_stack(fixture, STACK_USER, STACK_FAULT, NULL, 0);
	uint32_t kernel = add_stack(fixture, 0, STACK_COMPLETE, NULL, 0);

	assert_string_equal(resolve(fixture, 50, user, kernel, false),
			    "[truncated: unreadable stack]");
	assert_string_equal(resolve(fixture, 50, STACK_NONE, kernel, true), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_user_stack),
		WITH_FIXTURE(test_inlined_calls),
		WITH_FIXTURE(test_code_made_at_run_time),
		WITH_FIXTURE(test_unknown_names),
		WITH_FIXTURE(test_memory_without_a_file),
		WITH_FIXTURE(test_generations),
		WITH_FIXTURE(test_interned_once),
		WITH_FIXTURE(test_pseudo),
		WITH_FIXTURE(test_kernel_stack),
		WITH_FIXTURE(test_tracing_is_stripped),
		WITH_FIXTURE(test_broken_stacks),
		WITH_FIXTURE(test_ends_of_walks),
		WITH_FIXTURE(test_roots_without_names),
		WITH_FIXTURE(test_no_frames_at_all),
		WITH_FIXTURE(test_loops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
