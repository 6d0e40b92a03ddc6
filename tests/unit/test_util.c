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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shell_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
