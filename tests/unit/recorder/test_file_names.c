/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "file_names.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

static bool add(FileNames *names, uint64_t inode, uint32_t generation, uint8_t flags)
{
	return file_names_add(names, &(struct rec_inode){.h = {.kind = REC_INODE, .flags = flags},
							 .device = 8 << 20 | 1,
							 .generation = generation,
							 .inode = inode});
}

static void test_kernel_alone(void **state)
{
	FileNames names = {};

	(void)state;
	assert_false(add(&names, 1, 1, INODE_KERNEL));
	assert_false(add(&names, 1, 1, INODE_KERNEL)); /* it was renamed */
	assert_false(add(&names, 2, 1, INODE_KERNEL | INODE_FULL_PATH));
	assert_int_equal(file_names_withheld(&names), 2);
	file_names_free(&names);
}

static void test_target(void **state)
{
	FileNames names = {};

	(void)state;
	assert_true(add(&names, 1, 1, INODE_MOUNT));
	assert_true(add(&names, 1, 1, INODE_MOUNT | INODE_KERNEL)); /* its new name */
	/* The number serves another file. */
	assert_false(add(&names, 1, 2, INODE_MOUNT | INODE_KERNEL));
	assert_int_equal(file_names_withheld(&names), 1);
	assert_true(add(&names, 1, 2, 0));
	assert_int_equal(file_names_withheld(&names), 0);
	assert_true(add(&names, 1, 2, INODE_KERNEL));
	file_names_free(&names);
}

static void test_options(void **state)
{
	(void)state;
	assert_true(file_names_are_withheld(&(RecordOptions){}));
	assert_false(file_names_are_withheld(&(RecordOptions){.all_files = true}));
	assert_false(file_names_are_withheld(&(RecordOptions){.whole_system = true}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel_alone),
		cmocka_unit_test(test_target),
		cmocka_unit_test(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
