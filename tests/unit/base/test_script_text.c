/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text of interpreters becomes UTF-8. */
#include "script_text.h"
#include "test_tools.h"

static void expect(const void *bytes, size_t size, uint8_t kind, const char *wanted)
{
	_cleanup_free_ char *text = script_text(bytes, size, 16, kind);

	if (wanted)
		assert_string_equal(text, wanted);
	else
		assert_null(text);
}

static void test_kinds(void **state)
{
	static const uint16_t wide[] = {'a', 0x540d, 0xdc80 + 0x69, 0xd800};
	static const uint32_t widest[] = {0x1f40d, 0x110000};

	(void)state;
	expect("ab", 2, 1, "ab");
	expect("gr\xf6\xdf", 4, 1, "größ");
	expect(wide, sizeof(wide), 2, "a名\xe9�");
	expect(widest, sizeof(widest), 4, "🐍�");
	expect("0123456789abcdef", 16, 1, "0123456789abcdef…");
	expect("abc", 3, 3, NULL);
	expect("abc", 3, 0, NULL);
	expect("", 0, 1, NULL);
	expect("abc", 3, 2, "扡");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
