/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks that were walked by unwind tables: marks in frames, results, tables out of date. */
#include "frames_fixture.h"
#include "labels.h"
#include "make_record.h"

#define TABLES_NS 20 /* the walks knew what was mapped until then */
#define OTHER	  2  /* a file that is mapped over the first one, later */

/* Names at 0x2000, 0x3000, … of the first file, leaf first. */
static void give_names(const Fixture *fixture)
{
	static const char *const names[] = {"leaf", "callee", "caller", "entry", "main"};

	for (uint64_t i = 0; i < ARRAY_LEN(names); i++)
		give_symbol(fixture, 1, 0x2000 + 0x1000 * i, 0x2000 + 0x1000 * i, names[i], NULL);
}

static uint32_t add_walked(Fixture *fixture, int flags, int result, const uint64_t *pcs,
			   uint16_t count)
{
	uint32_t stack = add_stack(fixture, STACK_USER | flags, result, pcs, count);

	fixture->timeline.stacks.items[stack].tables_ns = TABLES_NS;
	return stack;
}

static StackEnd end_of(const Fixture *fixture, uint64_t ns, uint32_t stack)
{
	return frames_stack_end(fixture->frames, &fixture->timeline, PROCESS, ns, stack);
}

/* The leaf, four return addresses. */
static const uint64_t whole[] = {AVMA + 0x2000, AVMA + 0x3001, AVMA + 0x4001, AVMA + 0x5001,
				 AVMA + 0x6001};

static void test_whole(void **state)
{
	static const int results[] = {STACK_COMPLETE, STACK_END_ZERO};
	Fixture *fixture = *state;
	const Library *library;
	StackEnd end;

	give_names(fixture);
	for (size_t i = 0; i < ARRAY_LEN(results); i++) {
		uint32_t stack = add_walked(fixture, 0, results[i], whole, 5);

		assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
				    "main;entry;caller;callee;leaf");
		end = end_of(fixture, 50, stack);
		assert_int_equal(end.reason, STACK_COMPLETE);
		assert_false(end.guessed);
		assert_false(end.from_copy);
		library = &fixture->frames->libraries.items[end.lib];
		assert_string_equal(library->name, "libfoo.so.1");
	}
	end = end_of(fixture, 50, add_walked(fixture, STACK_FROM_COPY, STACK_COMPLETE, whole, 5));
	assert_true(end.from_copy);
}

/* It is an end where threads begin, and in functions that no stack has a caller of. */
static void test_no_return_address(void **state)
{
	Fixture *fixture = *state;
	uint32_t stack;

	give_names(fixture);
	add_walked(fixture, 0, STACK_COMPLETE, whole, 5);
	stack = add_walked(fixture, 0, STACK_END_ZERO, whole, 4);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "[truncated: return address is 0];entry;caller;callee;leaf");
	assert_int_equal(end_of(fixture, 50, stack).reason, STACK_END_ZERO);
	/* What the table says is the outermost frame is that, whatever its name. */
	stack = add_walked(fixture, 0, STACK_COMPLETE, whole, 4);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "entry;caller;callee;leaf");
}

static void test_fiber(void **state)
{
	Fixture *fixture = *state;
	uint32_t stack;

	give_names(fixture);
	/* The other stack has callers of its callee alone. */
	add_walked(fixture, 0, STACK_COMPLETE, whole, 3);
	stack = add_walked(fixture, 0, STACK_END_ZERO, whole, 4);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "entry;caller;callee;leaf");
	assert_int_equal(end_of(fixture, 50, stack).reason, STACK_COMPLETE);
	/* A leaf has called nothing. */
	stack = add_walked(fixture, 0, STACK_END_ZERO, whole, 1);
	assert_int_equal(end_of(fixture, 50, stack).reason, STACK_END_ZERO);
}

/* libgcc's unwinder overwrites its own return address. */
static void test_unwinder(void **state)
{
	Fixture *fixture = *state;
	uint32_t stack;

	give_symbol(fixture, 1, 0x2000, 0x2000, "leaf", NULL);
	give_symbol(fixture, 1, 0x3000, 0x3000, "_Unwind_RaiseException", NULL);
	stack = add_walked(fixture, 0, STACK_END_ZERO, whole, 2);
	assert_int_equal(end_of(fixture, 50, stack).reason, STACK_END_ZERO);
}

static void test_planted(void **state)
{
	static const uint64_t pcs[] = {AVMA + 0x2000, AVMA + 0x3001, AVMA + 0x7001, AVMA + 0x4001,
				       AVMA + 0x5001};
	uint64_t signal[ARRAY_LEN(pcs)];
	Fixture *fixture = *state;
	uint32_t stack;

	give_names(fixture);
	give_record(fixture, make_symbol(SYMBOL_PLANTED, 1, 0x7000, 0x7001, "begin", NULL));
	stack = add_walked(fixture, 0, STACK_BAD_PC, pcs, 5);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false), "begin;callee;leaf");
	assert_int_equal(end_of(fixture, 50, stack).reason, STACK_COMPLETE);
	stack = add_walked(fixture, 0, STACK_BAD_PC, pcs, 3);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false), "begin;callee;leaf");
	/* A handler returns there, and what it interrupted is a frame. */
	memcpy(signal, pcs, sizeof(signal));
	signal[3] |= FRAME_EXACT;
	stack = add_walked(fixture, 0, STACK_BAD_PC, signal, 5);
	assert_int_equal(end_of(fixture, 50, stack).reason, STACK_BAD_PC);
}

/* The function that others were planted to calls one itself, and the stack has no caller of it. */
static void test_planted_function(void **state)
{
	static const uint64_t pcs[] = {AVMA + 0x2000, AVMA + 0x3001, AVMA + 0x7011, 0x1234560};
	Fixture *fixture = *state;
	uint32_t stack;

	give_names(fixture);
	give_symbol(fixture, 1, 0x7010, 0x7001, "begin", NULL);
	give_symbol(fixture, 1, 0x7020, 0x7001, "begin", NULL);
	give_record(fixture, make_symbol(SYMBOL_PLANTED, 1, 0x7000, 0x7001, "begin", NULL));
	stack = add_walked(fixture, 0, STACK_BAD_PC, pcs, 4);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false), "begin;callee;leaf");
	assert_int_equal(end_of(fixture, 50, stack).reason, STACK_COMPLETE);
	stack = add_walked(fixture, 0, STACK_BAD_PC, pcs, 3);
	assert_int_equal(end_of(fixture, 50, stack).reason, STACK_COMPLETE);
	/* Another reason, code above it, or another function. */
	stack = add_walked(fixture, 0, STACK_FAULT, pcs, 3);
	assert_int_equal(end_of(fixture, 50, stack).reason, STACK_FAULT);
	stack = add_walked(fixture, 0, STACK_BAD_PC,
			   (const uint64_t[]){AVMA + 0x7020, AVMA + 0x3001}, 2);
	assert_int_equal(end_of(fixture, 50, stack).reason, STACK_BAD_PC);
	stack = add_walked(fixture, 0, STACK_BAD_PC, pcs, 2);
	assert_int_equal(end_of(fixture, 50, stack).reason, STACK_BAD_PC);
}

static void test_interrupted_frames(void **state)
{
	/* A signal came at the first byte of callee, whose frame is no return address. */
	static const uint64_t pcs[] = {AVMA + 0x2000, FRAME_EXACT | (AVMA + 0x3000), AVMA + 0x4001};
	uint64_t unmarked[3];
	Fixture *fixture = *state;
	uint32_t stack;

	give_names(fixture);
	stack = add_walked(fixture, 0, STACK_COMPLETE, pcs, 3);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false), "caller;callee;leaf");
	/* Without the mark it is what is before; as what frame pointers found, it is no address. */
	memcpy(unmarked, pcs, sizeof(pcs));
	unmarked[1] &= FRAME_ADDRESS;
	stack = add_walked(fixture, 0, STACK_COMPLETE, unmarked, 3);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "caller;0x1fff (libfoo.so.1);leaf");
	stack = add_stack(fixture, STACK_USER, STACK_FRAME_POINTERS, pcs, 3);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "[truncated: no frame pointers];leaf");
	/* A leaf in a system call is a return address, also if it has the other mark. */
	unmarked[0] = FRAME_GUESSED | (AVMA + 0x2001);
	stack = add_walked(fixture, STACK_SYSCALL_PC, STACK_COMPLETE, unmarked, 1);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false), "[guessed];leaf");
}

/* What frame pointers led to, however that ended, may have these bits by chance. */
static void test_frame_pointers_have_no_marks(void **state)
{
	static const uint64_t pcs[] = {AVMA + 0x2000, FRAME_GUESSED | (AVMA + 0x3001)};
	Fixture *fixture = *state;
	uint32_t stack;

	give_names(fixture);
	stack = add_stack(fixture, STACK_USER, STACK_FAULT, pcs, 2);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "[truncated: unreadable stack];0x40007f0000003000;leaf");
	assert_false(end_of(fixture, 50, stack).guessed);
}

static void test_kernel_frames_have_no_marks(void **state)
{
	static const uint64_t pcs[] = {0xffffffff81000100, 0xffffffff81000201};
	Fixture *fixture = *state;
	uint32_t stack = add_stack(fixture, 0, STACK_COMPLETE, pcs, 2);

	fixture->timeline.stacks.items[stack].tables_ns = TABLES_NS;
	give_symbol(fixture, 0, 0xffffffff81000100, 0xffffffff81000100, "exact", NULL);
	give_symbol(fixture, 0, 0xffffffff81000200, 0xffffffff81000200, "vfs_read", NULL);
	assert_string_equal(resolve(fixture, 50, STACK_NONE, stack, true), "vfs_read;exact");
}

/* One pseudo frame before the outermost guess: the same wherever in that code the leaf is. */
static void test_guessed_frames(void **state)
{
	static const uint64_t outer[] = {AVMA + 0x4000, FRAME_GUESSED | (AVMA + 0x5001),
					 AVMA + 0x6001};
	uint64_t pcs[5];
	Fixture *fixture = *state;
	uint32_t stack;

	give_names(fixture);
	memcpy(pcs, whole, sizeof(pcs));
	pcs[1] |= FRAME_GUESSED;
	pcs[3] |= FRAME_GUESSED;
	stack = add_walked(fixture, STACK_GUESSED, STACK_COMPLETE, pcs, 5);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "main;[guessed];entry;caller;callee;leaf");
	assert_true(end_of(fixture, 50, stack).guessed);
	/* The leaf is further out, in the same code. */
	stack = add_walked(fixture, STACK_GUESSED, STACK_COMPLETE, outer, 3);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "main;[guessed];entry;caller");
	/* To the end: no table there, and no frame pointer any more. */
	stack = add_walked(fixture, STACK_GUESSED, STACK_NO_CFI, pcs, 4);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "[truncated: no unwind table];[guessed];"
			    "entry;caller;callee;leaf");
	/* The walk's word counts, not the flag of the stack. */
	stack = add_walked(fixture, STACK_GUESSED, STACK_COMPLETE, whole, 5);
	assert_false(end_of(fixture, 50, stack).guessed);
}

/* A word that leads to no code is no frame; code that a program has made has a name. */
static void test_ends_in_data(void **state)
{
	static const enum stack_result results[] = {STACK_BAD_PC, STACK_NO_MAPPING};
	const uint64_t data[] = {whole[0], whole[1], 0x7ffe12345678};
	const uint64_t interrupted[] = {whole[0], whole[1], FRAME_EXACT | 0x7ffe12345678};
	Fixture *fixture = *state;
	uint32_t stack;

	give_names(fixture);
	for (size_t i = 0; i < ARRAY_LEN(results); i++) {
		char text[128];

		snprintf(text, sizeof(text), "[truncated: %s];callee;leaf",
			 stack_end_words((enum stack_end)results[i]));
		stack = add_walked(fixture, 0, results[i], data, 3);
		assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false), text);
		assert_int_equal(end_of(fixture, 50, stack).lib, LIBRARY_NONE);
		assert_int_equal(end_of(fixture, 50, stack).code, CODE_NOWHERE);
		/* A jump into nothing, which a signal reports, did happen. */
		snprintf(text, sizeof(text), "[truncated: %s];0x7ffe12345678;callee;leaf",
			 stack_end_words((enum stack_end)results[i]));
		stack = add_walked(fixture, 0, results[i], interrupted, 3);
		assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false), text);
	}
	/* Another end says nothing of the address. */
	stack = add_walked(fixture, 0, STACK_FAULT, data, 3);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "[truncated: unreadable stack];0x7ffe12345677;callee;leaf");
}

static void test_every_result(void **state)
{
	static const char *const expected[STACK_RESULTS] = {
		[STACK_TRUNCATED] = "too deep",
		[STACK_FAULT] = "unreadable stack",
		[STACK_NO_MAPPING] = "no mapping known",
		[STACK_NO_TABLE] = "unwind table not ready",
		[STACK_NO_CFI] = "no unwind table",
		[STACK_GAP] = "gap in unwind table",
		[STACK_UNSUPPORTED] = "unsupported unwind rule",
		[STACK_REGISTER] = "register not known",
		[STACK_BAD_CFA] = "frame below its caller",
		[STACK_BAD_PC] = "bad return address",
		[STACK_COMPAT] = "32-bit code",
		[STACK_EXEC] = "in exec",
		[STACK_COPY_SHORT] = "copy of stack too short",
		[STACK_NO_MM] = "process is ending",
	};
	Fixture *fixture = *state;
	char text[128];
	uint32_t stack;

	give_names(fixture);
	for (int result = 0; result < STACK_RESULTS; result++) {
		if (!expected[result])
			continue;
		snprintf(text, sizeof(text), "[truncated: %s];callee;leaf", expected[result]);
		stack = add_walked(fixture, 0, result, whole, 2);
		assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false), text);
		assert_int_equal(end_of(fixture, 50, stack).reason, result);
		*strchr(text, ';') = '\0';
		stack = add_walked(fixture, 0, result, NULL, 0);
		assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false), text);
		assert_int_equal(end_of(fixture, 50, stack).lib, LIBRARY_NONE);
	}
	/* A result of a newer wallprof; 256 must not look like 0. */
	for (int result = STACK_RESULTS; result <= 256; result += 256 - STACK_RESULTS) {
		stack = add_walked(fixture, 0, result, whole, 2);
		assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
				    "[truncated: unknown reason];callee;leaf");
		assert_int_equal(end_of(fixture, 50, stack).reason, STACK_END_UNKNOWN);
	}
}

/* In walks by tables every frame lies above the one before, so a deep recursion is genuine. */
static void test_deep_recursion(void **state)
{
	Fixture *fixture = *state;
	uint64_t pcs[100];
	const uint32_t *indexes;
	uint32_t stack;

	for (size_t i = 0; i < ARRAY_LEN(pcs); i++)
		pcs[i] = AVMA + 0x3001;
	pcs[0] = AVMA + 0x2000;
	give_names(fixture);
	fixture->frames->unfolded = true;
	stack = add_walked(fixture, 0, STACK_TRUNCATED, pcs, 100);
	assert_int_equal(frames_resolve(fixture->frames, &fixture->timeline, PROCESS, 50, stack,
					STACK_NONE, false, &indexes),
			 101);
}

/* ---- tables out of date ------------------------------------------------------ */

/* Maps another file over callee's page at ns. */
static void replace_callee(const Fixture *fixture, uint64_t ns)
{
	give_record(fixture,
		    make_mapping(ns, 0, PROCESS, OTHER, AVMA + 0x3000, AVMA + 0x4000, AVMA));
	give_symbol(fixture, OTHER, 0x3000, 0x3000, "foreign_fn", NULL);
}

static void test_stale(void **state)
{
	static const char cut[] = "[truncated: table out of date];foreign_fn;leaf";
	Fixture *fixture = *state;
	uint32_t stack, known;
	StackEnd end;

	give_names(fixture);
	replace_callee(fixture, 30);
	stack = add_walked(fixture, 0, STACK_COMPLETE, whole, 5);
	known = add_walked(fixture, 0, STACK_COMPLETE, whole, 5);
	fixture->timeline.stacks.items[known].tables_ns = 30;
	/* Out of order: what was found out for one moment must not be used for another. */
	for (int i = 0; i < 2; i++) {
		assert_string_equal(resolve(fixture, 30, stack, STACK_NONE, false), cut);
		assert_string_equal(resolve(fixture, 29, stack, STACK_NONE, false),
				    "main;entry;caller;callee;leaf");
		assert_string_equal(resolve(fixture, 99, stack, STACK_NONE, false), cut);
	}
	end = end_of(fixture, 99, stack);
	assert_int_equal(end.reason, STACK_END_STALE);
	assert_string_equal(fixture->frames->libraries.items[end.lib].name, "libbar.so");
	assert_int_equal(end_of(fixture, 29, stack).reason, STACK_COMPLETE);
	/* The tables knew it. */
	assert_string_equal(resolve(fixture, 99, known, STACK_NONE, false),
			    "main;entry;caller;foreign_fn;leaf");
	/* A stack that does not go there, and one that asked no tables. */
	stack = add_walked(fixture, 0, STACK_COMPLETE, whole, 1);
	assert_string_equal(resolve(fixture, 99, stack, STACK_NONE, false), "leaf");
	stack = add_stack(fixture, STACK_USER, STACK_COMPLETE, whole, 5);
	assert_string_equal(resolve(fixture, 99, stack, STACK_NONE, false),
			    "main;entry;caller;foreign_fn;leaf");
}

/* The place of a return address is that of the call, of an interrupted frame its own. */
static void test_stale_at_the_border(void **state)
{
	static const uint64_t call[] = {AVMA + 0x2000, AVMA + 0x3000, AVMA + 0x6001};
	static const uint64_t exact[] = {AVMA + 0x2000, FRAME_EXACT | (AVMA + 0x3000),
					 AVMA + 0x6001};
	Fixture *fixture = *state;
	uint32_t stack;

	give_names(fixture);
	replace_callee(fixture, 30);
	stack = add_walked(fixture, 0, STACK_COMPLETE, call, 3);
	assert_int_equal(end_of(fixture, 50, stack).reason, STACK_COMPLETE);
	stack = add_walked(fixture, 0, STACK_COMPLETE, exact, 3);
	assert_int_equal(end_of(fixture, 50, stack).reason, STACK_END_STALE);
}

/* What is cut off cannot be why the rest is doubted. */
static void test_stale_and_guessed(void **state)
{
	uint64_t pcs[5];
	Fixture *fixture = *state;
	uint32_t stack;

	give_names(fixture);
	replace_callee(fixture, 30);
	memcpy(pcs, whole, sizeof(pcs));
	pcs[3] |= FRAME_GUESSED;
	stack = add_walked(fixture, STACK_GUESSED, STACK_NO_CFI, pcs, 5);
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "[truncated: table out of date];foreign_fn;leaf");
	assert_false(end_of(fixture, 50, stack).guessed);
}

static void test_stale_after_exec(void **state)
{
	Fixture *fixture = *state;
	uint32_t stack;

	give_names(fixture);
	give_record(fixture, make_space(30, SPACE_EXEC, PROCESS, 0));
	give_record(fixture, make_mapping(40, 0, PROCESS, 1, AVMA, AVMA + 0x10000, AVMA));
	stack = add_walked(fixture, 0, STACK_COMPLETE, whole, 5);
	assert_string_equal(resolve(fixture, 29, stack, STACK_NONE, false),
			    "main;entry;caller;callee;leaf");
	assert_string_equal(resolve(fixture, 50, stack, STACK_NONE, false),
			    "[truncated: table out of date];leaf");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_whole),
		WITH_FIXTURE(test_no_return_address),
		WITH_FIXTURE(test_fiber),
		WITH_FIXTURE(test_unwinder),
		WITH_FIXTURE(test_planted),
		WITH_FIXTURE(test_planted_function),
		WITH_FIXTURE(test_interrupted_frames),
		WITH_FIXTURE(test_frame_pointers_have_no_marks),
		WITH_FIXTURE(test_kernel_frames_have_no_marks),
		WITH_FIXTURE(test_guessed_frames),
		WITH_FIXTURE(test_ends_in_data),
		WITH_FIXTURE(test_every_result),
		WITH_FIXTURE(test_deep_recursion),
		WITH_FIXTURE(test_stale),
		WITH_FIXTURE(test_stale_at_the_border),
		WITH_FIXTURE(test_stale_and_guessed),
		WITH_FIXTURE(test_stale_after_exec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
