/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One member of a JSON object that comes in pieces. */
#include "profile_libs.h"
#include "util.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct Pieces {
	const char *text;
	size_t size; /* of one */
	int error;   /* in place of the end */
} Pieces;

static ssize_t more(void *user, char *buffer, size_t size)
{
	Pieces *pieces = user;
	size_t length = MIN(MIN(strlen(pieces->text), pieces->size), size);

	if (length == 0)
		return pieces->error;
	memcpy(buffer, pieces->text, length);
	pieces->text += length;
	return length;
}

static const size_t sizes[] = {1, 2, 7, 1000};

static void expect(const char *text, const char *name, size_t limit, int error, const char *wanted)
{
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		Pieces pieces = {.text = text, .size = sizes[i]};
		_cleanup_free_ char *value = NULL;

		assert_int_equal(profile_libs_member(name, limit, more, &pieces, &value), error);
		if (wanted)
			assert_string_equal(value, wanted);
		else
			assert_null(value);
	}
}

static void test_found(void **state)
{
	static const struct {
		const char *text, *wanted;
	} cases[] = {
		{"{\"libs\":[]}", "[]"},
		{"{\"libs\":1,\"a\":2}", "1"},
		{" \n{ \"a\" : 1 , \"libs\" : [ 1 , 2 ] , \"b\" : 3 }", " [ 1 , 2 ] "},
		{"{\"a\":{\"libs\":0},\"libs\":7}", "7"},
		{"{\"a\":[{\"libs\":0},\"libs\",{}],\"libs\":{\"libs\":[8]}}", "{\"libs\":[8]}"},
		{"{\"a\":\"libs\",\"libs\":\"x\"}", "\"x\""},
		{"{\"a\":\"\\\"libs\\\":3,\",\"libs\":4}", "4"},
		{"{\"libs\":\"}],:\\\"{[\\\\\",\"a\":1}", "\"}],:\\\"{[\\\\\""},
		{"{\"liba\":1,\"libss\":2,\"lib\":3,\"libs\":4}", "4"},
		{"{\"libs\":1,\"libs\":2}", "1"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		expect(cases[i].text, "libs", 1000, 0, cases[i].wanted);
}

static void test_absent(void **state)
{
	static const struct {
		const char *text;
		int error;
	} cases[] = {
		{"{}", -ENOENT},
		{"{\"a\":{\"libs\":1}}", -ENOENT},
		{"{\"a\":[\"libs\",1]}", -ENOENT},
		{"{\"a\":\"libs\"}", -ENOENT},
		{"", -EBADMSG},
		{"  ", -EBADMSG},
		{"[{\"libs\":1}]", -EBADMSG},
		{"\"libs\"", -EBADMSG},
		{"x{\"libs\":1}", -EBADMSG},
		{"}", -EBADMSG},
		{"{\"libs\":[1,2", -EBADMSG},
		{"{\"libs\":\"1,2}", -EBADMSG},
		{"{\"libs\"", -EBADMSG},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		expect(cases[i].text, "libs", 1000, cases[i].error, NULL);
}

/* A name longer than what is kept of a key is no other's beginning. */
static void test_long_names(void **state)
{
	char name[101], text[300];

	(void)state;
	memset(name, 'n', 100);
	name[100] = '\0';
	sprintf(text, "{\"%s\":1,\"n\":2}", name);
	expect(text, "n", 10, 0, "2");
	expect(text, name, 10, -ENOENT, NULL);
}

static void test_limit(void **state)
{
	(void)state;
	expect("{\"libs\":12345}", "libs", 5, 0, "12345");
	expect("{\"libs\":12345}", "libs", 4, -EFBIG, NULL);
}

static void test_source_fails(void **state)
{
	Pieces pieces = {.text = "{\"libs\":[", .size = 3, .error = -EIO};
	char *value = NULL;

	(void)state;
	assert_int_equal(profile_libs_member("libs", 100, more, &pieces, &value), -EIO);
	assert_null(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),	     cmocka_unit_test(test_absent),
		cmocka_unit_test(test_long_names),   cmocka_unit_test(test_limit),
		cmocka_unit_test(test_source_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
