/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* What a shell would take apart, or for something else, is in quotes. */
static void test_shell_word(void **state)
{
	static const char *const words[][2] = {
		{"a", "a"},
		{"", "''"},
		{"/usr/bin/tar", "/usr/bin/tar"},
		{"--x=1,2", "--x=1,2"},
		{"a b", "'a b'"},
		{"a'b", "'a'\\''b'"},
		{"'", "''\\'''"},
		{"$HOME", "'$HOME'"},
		{"*", "'*'"},
		{"a;b", "'a;b'"},
		{"\"", "'\"'"},
		{"~", "'~'"},
		{"gr\xc3\xb6\xc3\x9f", "gr\xc3\xb6\xc3\x9f"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		_cleanup_free_ char *text = shell_word(words[i][0]);

		assert_string_equal(text, words[i][1]);
	}
}

/* All places in lists of all lengths: the same as counted one by one, in few questions. */
static void test_partition_point(void **state)
{
	(void)state;
	for (size_t count = 0; count <= 70; count++) {
		for (size_t wanted = 0; wanted <= count; wanted++) {
			size_t asked = 0;
			size_t found = partition_point(i, count, (asked++, i < wanted));

			assert_int_equal(found, wanted);
			assert_true(asked <= 7); /* 70 < 2^7 */
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shell_word),
		cmocka_unit_test(test_partition_point),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
