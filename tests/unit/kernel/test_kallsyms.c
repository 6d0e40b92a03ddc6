/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kallsyms.h"
#include "make_record.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* Out of order, with data, modules, BPF, aliases, and lines that are not symbols. */
static const char text[] = "ffffffff81000400 t local_twin\n"
			   "ffffffff81000000 T _text\n"
			   "ffffffff81000100 T first_function\n"
			   "ffffffff81000180 D data_ends_it\n"
			   "ffffffff81000200 t second_function\n"
			   "ffffffff81000300 W weak_function\n"
			   "ffffffff81000400 T global_twin\n"
			   "ffffffff81000400 D data_twin\n"
			   "ffffffff81000500 T before_the_hole\n"
			   "not an address\n"
			   "\n"
			   "ffffffff81000580\n"
			   "ffffffffc0001000 t ext4_readdir\t[ext4]\n"
			   "ffffffffc0001080 d ext4_data\t[ext4]\n"
			   "ffffffffc0002000 t bpf_prog_6deef7357e7b4530_sched\t[bpf]\n"
			   "ffffffffc0002100 t last_one\t[bpf]\n";

static Kallsyms *load(const char *content, int expected)
{
	Kallsyms *kallsyms = NULL;
	int fd;
	_cleanup_free_ char *path = make_temporary(&fd);

	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	close(fd);
	assert_int_equal(kallsyms_load(path, UINT64_MAX, &kallsyms), expected);
	assert_int_equal(kallsyms_check(path), expected);
	unlink(path);
	return kallsyms;
}

static void expect(const Kallsyms *kallsyms, uint64_t avma, const char *name, uint64_t start,
		   uint32_t size, const char *module)
{
	KernelSymbol symbol;

	assert_true(kallsyms_find(kallsyms, avma, &symbol));
	assert_string_equal(symbol.name, name);
	assert_int_equal(symbol.start, start);
	assert_int_equal(symbol.size, size);
	if (module)
		assert_string_equal(symbol.module, module);
	else
		assert_null(symbol.module);
}

static void test_find(void **state)
{
	Kallsyms *kallsyms = load(text, 0);

	(void)state;
	expect(kallsyms, 0xffffffff81000000, "_text", 0xffffffff81000000, 0x100, NULL);
	expect(kallsyms, 0xffffffff81000100, "first_function", 0xffffffff81000100, 0x80, NULL);
	expect(kallsyms, 0xffffffff8100017f, "first_function", 0xffffffff81000100, 0x80, NULL);
	expect(kallsyms, 0xffffffff810002ff, "second_function", 0xffffffff81000200, 0x100, NULL);
	expect(kallsyms, 0xffffffff81000350, "weak_function", 0xffffffff81000300, 0x100, NULL);
	expect(kallsyms, 0xffffffff81000400, "global_twin", 0xffffffff81000400, 0x100, NULL);
	expect(kallsyms, 0xffffffffc0001010, "ext4_readdir", 0xffffffffc0001000, 0x80, "[ext4]");
	expect(kallsyms, 0xffffffffc0002000, "bpf_prog_6deef7357e7b4530_sched", 0xffffffffc0002000,
	       0x100, "[bpf]");
	kallsyms_free(kallsyms);
}

static void test_not_found(void **state)
{
	Kallsyms *kallsyms = load(text, 0);
	KernelSymbol symbol;

	(void)state;
	assert_false(kallsyms_find(kallsyms, 0, &symbol));
	assert_false(kallsyms_find(kallsyms, 0xffffffff80ffffff, &symbol));
	assert_false(kallsyms_find(kallsyms, 0xffffffff81000180, &symbol));
	assert_false(kallsyms_find(kallsyms, 0xffffffffc0001090, &symbol));
	/* Where no end is known, near is believed and far is not. */
	expect(kallsyms, 0xffffffff81000510, "before_the_hole", 0xffffffff81000500, 0, NULL);
	assert_false(kallsyms_find(kallsyms, 0xffffffffa0000000, &symbol));
	expect(kallsyms, 0xffffffffc0002110, "last_one", 0xffffffffc0002100, 0, "[bpf]");
	assert_false(kallsyms_find(kallsyms, UINT64_MAX, &symbol));
	kallsyms_free(kallsyms);
}

static void test_hidden(void **state)
{
	(void)state;
	assert_null(load("0000000000000000 T _text\n0000000000000000 t second\n", -EPERM));
}

static void test_nothing_there(void **state)
{
	Kallsyms *kallsyms;

	(void)state;
	assert_null(load("", -ENODATA));
	assert_null(load("no symbol\n", -ENODATA));
	assert_int_equal(kallsyms_load("/nonexistent", 0, &kallsyms), -ENOENT);
	assert_int_equal(kallsyms_load("/", 0, &kallsyms), -EISDIR);
}

/* What follows the kernel's own code is read only if an address lies there. */
static void test_highest(void **state)
{
	static const char content[] = "0000000000000000 A fixed\n"
				      "ffffffff81000000 T first\n"
				      "ffffffff81000100 T last\n"
				      "ffffffff81000180 T _etext\n"
				      "ffffffff81000200 D data\n"
				      "ffffffffc0000100 t late\t[mod]\n"
				      "ffffffffc0000000 t early\t[mod]\n";
	int fd;
	_cleanup_free_ char *path = make_temporary(&fd);
	Kallsyms *kallsyms;
	KernelSymbol symbol;

	(void)state;
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	close(fd);
	assert_int_equal(kallsyms_load(path, 0xffffffff8100017f, &kallsyms), 0);
	expect(kallsyms, 0xffffffff8100017f, "last", 0xffffffff81000100, 0x80, NULL);
	assert_false(kallsyms_find(kallsyms, 0xffffffffc0000110, &symbol));
	kallsyms_free(kallsyms);
	assert_int_equal(kallsyms_load(path, 0xffffffffc0000000, &kallsyms), 0);
	expect(kallsyms, 0xffffffff8100017f, "last", 0xffffffff81000100, 0x80, NULL);
	expect(kallsyms, 0xffffffffc0000010, "early", 0xffffffffc0000000, 0x100, "[mod]");
	expect(kallsyms, 0xffffffffc0000110, "late", 0xffffffffc0000100, 0, "[mod]");
	kallsyms_free(kallsyms);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),	cmocka_unit_test(test_not_found),
		cmocka_unit_test(test_hidden),	cmocka_unit_test(test_nothing_there),
		cmocka_unit_test(test_highest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
