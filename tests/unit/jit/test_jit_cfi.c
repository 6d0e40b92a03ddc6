/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_cfi.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void add(JitCfi *cfi, uint64_t pc, uint64_t end, bool shown)
{
	JitFde fde = {.pc = pc, .size = end - pc, .shown = shown, .hash = hash_mix(pc, end)};

	*vec_push(&cfi->fdes) = fde;
}

static void expect_kept(const JitCfi *cfi, size_t at, uint64_t pc)
{
	assert_true(at < cfi->fdes.count);
	assert_int_equal(cfi->fdes.items[at].pc, pc);
}

static void test_same_twice(void **state)
{
	_cleanup_(jit_cfi_free) JitCfi cfi = {};

	(void)state;
	add(&cfi, 0x100, 0x120, false);
	add(&cfi, 0x100, 0x120, true);
	jit_cfi_finalize(&cfi);
	assert_int_equal(cfi.fdes.count, 1);
	assert_true(cfi.fdes.items[0].shown);
	assert_int_equal(cfi.counts.disputed, 0);
}

static void test_shown_is_kept(void **state)
{
	_cleanup_(jit_cfi_free) JitCfi cfi = {};

	(void)state;
	add(&cfi, 0x100, 0x200, false);
	add(&cfi, 0x110, 0x150, true);
	add(&cfi, 0x190, 0x1a0, false);
	add(&cfi, 0x200, 0x210, false);
	jit_cfi_finalize(&cfi);
	assert_int_equal(cfi.fdes.count, 2);
	expect_kept(&cfi, 0, 0x110);
	expect_kept(&cfi, 1, 0x200);
	assert_int_equal(cfi.counts.disputed, 1); /* what the shown one overrules is not */
}

/* A longer one that is not shown reaches over both. */
static void test_shown_disputed(void **state)
{
	_cleanup_(jit_cfi_free) JitCfi cfi = {};

	(void)state;
	add(&cfi, 0x100, 0x200, false);
	add(&cfi, 0x110, 0x150, true);
	add(&cfi, 0x120, 0x160, true);
	add(&cfi, 0x170, 0x180, true);
	jit_cfi_finalize(&cfi);
	assert_int_equal(cfi.fdes.count, 1);
	expect_kept(&cfi, 0, 0x170);
	assert_int_equal(cfi.counts.disputed, 2);
}

/* One that is shown reaches farther than one that is not, and the next is in both. */
static void test_overruled(void **state)
{
	_cleanup_(jit_cfi_free) JitCfi cfi = {};

	(void)state;
	add(&cfi, 0x100, 0x130, true);
	add(&cfi, 0x110, 0x120, false);
	add(&cfi, 0x118, 0x11c, false);
	jit_cfi_finalize(&cfi);
	assert_int_equal(cfi.fdes.count, 1);
	expect_kept(&cfi, 0, 0x100);
	assert_int_equal(cfi.counts.disputed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_twice),
		cmocka_unit_test(test_shown_is_kept),
		cmocka_unit_test(test_shown_disputed),
		cmocka_unit_test(test_overruled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
