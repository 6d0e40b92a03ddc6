/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_processes.h"
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

/* No process has such an id (PID_MAX_LIMIT of Linux). */
#define GONE (1u << 30)
#define MANY 4096u

static const JitNote note = {.start = 0x1000, .end = 0x2000, .ns = 1};

static void add_gone(JitCodes *codes)
{
	for (uint32_t i = 0; i < MANY; i++)
		jit_processes_note(codes, GONE + i, &note);
}

/* Processes that have ended make room; if there is none all the same, that is counted. */
static void test_room(void **state)
{
	JitCodes *codes = jit_processes_new();

	(void)state;
	add_gone(codes);
	assert_int_equal(codes->processes.count, MANY);
	jit_processes_note(codes, getpid(), &note);
	assert_int_equal(codes->processes.count, 1);
	assert_int_equal(jit_processes_counts(codes).omitted, 0);
	add_gone(codes); /* they are not searched again so soon */
	assert_int_equal(codes->processes.count, MANY);
	assert_int_equal(jit_processes_counts(codes).omitted, 1);
	assert_true(codes->processes.items[0]->ns_tgid == (uint32_t)getpid());
	jit_processes_free(codes);
}

static void test_exit(void **state)
{
	JitCodes *codes = jit_processes_new();

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		jit_processes_note(codes, GONE + i, &note);
	jit_processes_on_exit(codes, GONE + 1);
	jit_processes_on_exit(codes, GONE + 7);
	assert_int_equal(codes->processes.count, 2);
	/* What has been read is still used. */
	codes->look.process = codes->processes.items[1];
	jit_processes_on_exit(codes, GONE + 2);
	assert_int_equal(codes->processes.count, 2);
	jit_processes_leave(codes);
	assert_int_equal(codes->processes.count, 1);
	assert_true(codes->processes.items[0]->ns_tgid == GONE && !codes->look.process);
	codes->look.process = codes->processes.items[0];
	jit_processes_leave(codes);
	assert_int_equal(codes->processes.count, 1);
	jit_processes_free(codes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_exit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
