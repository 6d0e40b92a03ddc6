/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "perf_map.h"
#include "util.h"
#include <errno.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct Seen {
	VEC(char) text; /* "start+size=name\n" of each piece */
	PerfMapSummary summary;
} Seen;

static void see(void *user, const PerfMapPiece *piece)
{
	Seen *seen = user;
	_cleanup_free_ char *line =
		xasprintf("%jx+%jx=%.*s\n", (uintmax_t)piece->start, (uintmax_t)piece->size,
			  (int)piece->name_size, piece->name);

	for (const char *p = line; *p; p++)
		*vec_push(&seen->text) = *p;
}

/* Parses a copy of just that size, so that ASan sees a step too far. */
static Seen parse(const char *text, size_t size)
{
	_cleanup_free_ char *copy = xmalloc(size ? size : 1);
	Seen seen = {};

	memcpy(copy, text, size);
	perf_map_parse(copy, size, see, &seen, &seen.summary);
	*vec_push(&seen.text) = '\0';
	return seen;
}

static void check_pieces(const char *text, const char *expected, uint64_t malformed)
{
	Seen seen = parse(text, strlen(text));

	assert_string_equal(seen.text.items, expected);
	assert_int_equal(seen.summary.malformed, malformed);
	assert_int_equal(seen.summary.torn_bytes, 0);
	vec_free(&seen.text);
}

static void test_pieces(void **state)
{
	(void)state;
	check_pieces("", "", 0);
	check_pieces("7f00 10 name\n", "7f00+10=name\n", 0);
	check_pieces("7F00 a LazyCompile:~f /a b.js:1:2\n\n0x10 0Xb x\n",
		     "7f00+a=LazyCompile:~f /a b.js:1:2\n10+b=x\n", 0);
	check_pieces("0 1 a\n0 1 a\n", "0+1=a\n0+1=a\n", 0);
	check_pieces("1 1  b \n", "1+1= b \n", 0);
	check_pieces("0 ffffffffffffffff a\n", "0+ffffffffffffffff=a\n", 0);
	check_pieces("000000000000000000001 1 a\n", "1+1=a\n", 0);
}

static void test_malformed(void **state)
{
	static const char *const lines[] = {
		"x\n",
		"10\n",
		"10 \n",
		"10 10\n",
		"10 10 \n",
		" 10 10 a\n",
		"10  10 a\n",
		"g0 1 a\n",
		"10 0 a\n",
		"0x 1 a\n",
		"-1 1 a\n",
		"10,10,a\n",
		"10 1g a\n",
		"10\t10 a\n",
		"1 ffffffffffffffff a\n",
		"10000000000000000 1 a\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		check_pieces(lines[i], "", 1);
}

static void test_torn_at_every_byte(void **state)
{
	static const char text[] = "1000 10 one\n2000 20 two words\nnonsense\n3000 30 three\n";

	(void)state;
	for (size_t size = 0; size < sizeof(text); size++) {
		Seen seen = parse(text, size);
		size_t whole = 0, lines = 0;

		for (size_t i = 0; i < size; i++)
			if (text[i] == '\n') {
				whole = i + 1;
				lines++;
			}
		assert_int_equal(seen.summary.pieces + seen.summary.malformed, lines);
		assert_int_equal(seen.summary.torn_bytes, size - whole);
		vec_free(&seen.text);
	}
}

/* The C library's regular expressions and numbers say what a line is. */
static bool oracle(const regex_t *pattern, const char *line, char *ret_text, size_t size)
{
	unsigned long long start, length;
	regmatch_t parts[6];

	if (regexec(pattern, line, ARRAY_LEN(parts), parts, 0))
		return false;
	errno = 0;
	start = strtoull(line + parts[1].rm_so, NULL, 16);
	length = strtoull(line + parts[3].rm_so, NULL, 16);
	if (errno || length == 0 || start + length < start)
		return false;
	snprintf(ret_text, size, "%llx+%llx=%s\n", start, length, line + parts[5].rm_so);
	return true;
}

static void test_random_lines(void **state)
{
	static const char alphabet[] = "0123456789abcdefABCDEF  xXg";
	unsigned random = 1, good = 0;
	regex_t pattern;

	(void)state;
	assert_int_equal(regcomp(&pattern, "^((0[xX])?[0-9a-fA-F]+) ((0[xX])?[0-9a-fA-F]+) (.+)$",
				 REG_EXTENDED),
			 0);
	for (int i = 0; i < 200000; i++) {
		char line[32], expected[64] = "";
		size_t length = rand_r(&random) % 24;
		Seen seen;
		bool is_piece;

		for (size_t k = 0; k < length; k++)
			line[k] = alphabet[rand_r(&random) % (sizeof(alphabet) - 1)];
		line[length] = '\0';
		is_piece = oracle(&pattern, line, expected, sizeof(expected));
		good += is_piece;
		line[length] = '\n';
		seen = parse(line, length + 1);
		assert_string_equal(seen.text.items, expected);
		assert_int_equal(seen.summary.malformed, !is_piece && length > 0);
		vec_free(&seen.text);
	}
	assert_uint_in_range(good, 5000, 195000);
	regfree(&pattern);
}

static void test_flipped_bits(void **state)
{
	static const char text[] = "1000 10 one\n0x2000 20 two words\n";

	(void)state;
	for (size_t bit = 0; bit < 8 * (sizeof(text) - 1); bit++) {
		char flipped[sizeof(text)];
		Seen seen;

		memcpy(flipped, text, sizeof(text));
		flipped[bit / 8] ^= 1 << bit % 8;
		seen = parse(flipped, sizeof(text) - 1);
		assert_uint_in_range(seen.summary.pieces + seen.summary.malformed, 1, 3);
		vec_free(&seen.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_torn_at_every_byte),
		cmocka_unit_test(test_random_lines),
		cmocka_unit_test(test_flipped_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
