/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "json_reader.h"
#include "json_writer.h"
#include "output.h"
#include "test_tools.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* What `write` writes, as text to be freed. */
static char *written(void (*write)(Json *json))
{
	char *text;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	Output *output = output_for_stream(stream);
	Json json = {.out = output};

	write(&json);
	assert_int_equal(output_close(output), 0);
	fclose(stream);
	return text;
}

static void check_written(void (*write)(Json *json), const char *expected)
{
	char *text = written(write);

	assert_string_equal(text, expected);
	free(text);
}

static void write_nested(Json *json)
{
	json_begin_object(json);
	json_key_array(json, "a");
	json_u64(json, 1);
	json_begin_array(json);
	json_end_array(json);
	json_begin_object(json);
	json_end_object(json);
	json_put_null(json);
	json_end_array(json);
	json_key_bool(json, "b", true);
	json_key_bool(json, "c", false);
	json_key_string(json, "d", "x");
	json_key_s64(json, "e", -5);
	json_end_object(json);
}

static void test_nesting_and_commas(void **state)
{
	(void)state;
	check_written(write_nested,
		      "{\"a\":[1,[],{},null],\"b\":true,\"c\":false,\"d\":\"x\",\"e\":-5}");
}

static void test_numbers(void **state)
{
	static const uint64_t values[] = {0, 9, 10, 99, 100, 12345, UINT32_MAX, UINT64_MAX};
	char text[FORMAT_MAX + 1], expected[FORMAT_MAX + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		*json_format_u64(text, values[i]) = '\0';
		snprintf(expected, sizeof(expected), "%llu", (unsigned long long)values[i]);
		assert_string_equal(text, expected);
	}
}

static void test_milliseconds(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{0, "0"},
		{1, "0.000001"},
		{10, "0.00001"},
		{100000, "0.1"},
		{123456, "0.123456"},
		{1000000, "1"},
		{1000001, "1.000001"},
		{90000000, "90"},
		{1795176000123456789, "1795176000123.456789"},
		{UINT64_MAX, "18446744073709.551615"},
	};
	char text[FORMAT_MAX + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		*json_format_ms(text, cases[i].ns) = '\0';
		assert_string_equal(text, cases[i].text);
	}
}

static void write_smallest(Json *json)
{
	json_s64(json, INT64_MIN);
}

static void test_signed(void **state)
{
	(void)state;
	check_written(write_smallest, "-9223372036854775808");
}

static void write_escapes(Json *json)
{
	json_put_string(json, "a\"b\\c\n\t\x01\x1f/\x7f\xc3\xa9");
}

static void test_escapes(void **state)
{
	(void)state;
	check_written(write_escapes, "\"a\\\"b\\\\c\\n\\t\\u0001\\u001f/\x7f\xc3\xa9\"");
}

#define BAD "\xef\xbf\xbd"

/* A NUL within is one byte more; what is cut off at the end does not reach beyond it. */
static void write_sized(Json *json)
{
	json_begin_array(json);
	json_text(json, "", 0);
	json_text(json, "a\0b", 3);
	json_text(json, "\xc3\xa9\xe2\x82", 4);
	json_text(json, "\0", 1);
	json_end_array(json);
}

static void test_text_of_a_size(void **state)
{
	(void)state;
	check_written(write_sized, "[\"\",\"a" BAD "b\",\"\xc3\xa9" BAD BAD "\",\"" BAD "\"]");
}

static void test_utf8(void **state)
{
	static const struct {
		const char *raw, *clean; /* clean NULL: well-formed */
	} cases[] = {
		{"", NULL},
		{"plain", NULL},
		{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80",
		 NULL},
		{"\x80", BAD},
		{"a\xff"
		 "b",
		 "a" BAD "b"},
		{"\xc0\xaf", BAD BAD},		       /* overlong */
		{"\xe0\x9f\xbf", BAD BAD BAD},	       /* overlong */
		{"\xf0\x8f\xbf\xbf", BAD BAD BAD BAD}, /* overlong */
		{"\xed\xa0\x80", BAD BAD BAD},	       /* surrogate */
		{"\xf4\x90\x80\x80", BAD BAD BAD BAD}, /* past U+10FFFF */
		{"\xe2\x82", BAD BAD},		       /* cut off */
		{"\xf0\x9f\x98", BAD BAD BAD},
		{"\xc3", BAD},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *clean = utf8_sanitize(cases[i].raw);

		if (cases[i].clean)
			assert_string_equal(clean, cases[i].clean);
		else
			assert_null(clean);
		free(clean);
	}
}

static void write_random_bytes(Json *json)
{
	char bytes[200];

	srand(7);
	json_begin_array(json);
	for (size_t i = 0; i < 2000; i++) {
		for (size_t k = 0; k < sizeof(bytes) - 1; k++)
			bytes[k] = 1 + rand() % 255;
		bytes[sizeof(bytes) - 1] = '\0';
		json_put_string(json, bytes);
	}
	json_end_array(json);
}

/* Bigger than the buffer, too. */
static void test_any_bytes_are_json(void **state)
{
	char *text = written(write_random_bytes);
	Node *node = node_read(text);

	(void)state;
	assert_int_equal(node->count, 2000);
	node_free(node);
	free(text);
}

/* ---- output -------------------------------------------------------------------- */

static char folder[] = "/tmp/wallprof-test-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(folder) ? chdir(folder) : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return chdir("/") || rmdir(folder);
}

static char *read_file(const char *path)
{
	char *text = xcalloc(1, 1 << 20);
	gzFile file = gzopen(path, "rb"); /* reads plain files as they are */

	assert_non_null(file);
	assert_true(gzread(file, text, (1 << 20) - 1) >= 0);
	assert_int_equal(gzclose(file), Z_OK);
	return text;
}

static void check_file(const char *path, bool gzip)
{
	Output *output;
	struct stat st;
	mode_t mask = umask(022);
	unsigned char magic[2];
	int fd;

	assert_int_equal(output_open(path, 0, NULL, &output), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(output_temp_path(output), F_OK), 0);
	for (size_t i = 0; i < 100000; i++)
		output_write(output, "abcdefgh\n", 9);
	assert_int_equal(output_close(output), 0);
	umask(mask);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	char *text = read_file(path);
	assert_int_equal(strlen(text), 900000);
	assert_memory_equal(text + 899991, "abcdefgh\n", 9);
	free(text);
	fd = open(path, O_RDONLY);
	assert_int_equal(read(fd, magic, 2), 2);
	assert_int_equal(magic[0] == 0x1f && magic[1] == 0x8b, gzip);
	close(fd);
	assert_int_equal(unlink(path), 0);
}

static void test_suffix(void **state)
{
	(void)state;
	check_file("x.json", false);
	check_file("x.json.gz", true);
}

static void test_replaces_when_whole(void **state)
{
	Output *output;
	char *text;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(output_open("y", 0, NULL, &output), 0);
		output_write(output, "first\n", 6);
		assert_int_equal(output_close(output), 0);
	}
	assert_int_equal(symlink("y", "link"), 0);
	assert_int_equal(output_open("link", 0, NULL, &output), 0);
	output_write(output, "second\n", 7);
	text = read_file("y");
	assert_string_equal(text, "first\n");
	free(text);
	output_discard(output);
	text = read_file("y");
	assert_string_equal(text, "first\n");
	free(text);
	assert_int_equal(output_open("link", 0, NULL, &output), 0);
	output_write(output, "third\n", 6);
	assert_int_equal(output_close(output), 0);
	text = read_file("y");
	assert_string_equal(text, "third\n");
	free(text);
	assert_int_equal(unlink("y"), 0);
	assert_int_equal(unlink("link"), 0); /* still a link; and nothing else is left */
}

static void test_bad_paths(void **state)
{
	Output *output;

	(void)state;
	assert_int_equal(output_open("missing/x", 0, NULL, &output), -ENOENT);
	assert_int_equal(output_open(".", 0, NULL, &output), -EISDIR);
	assert_int_equal(output_open("", 0, NULL, &output), -ENOENT);
}

/* /dev/full is written in place and is always full. */
static void test_full_disk(void **state)
{
	static const char *const names[] = {"full", "full.gz"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		Output *output;

		assert_int_equal(symlink("/dev/full", names[i]), 0);
		assert_int_equal(output_open(names[i], 0, NULL, &output), 0);
		assert_null(output_temp_path(output));
		for (size_t k = 0; k < 100000; k++)
			output_write(output, "abcdefgh\n", 9);
		assert_int_equal(output_close(output), -ENOSPC);
		assert_int_equal(unlink(names[i]), 0);
	}
}

/* A file that may not grow on: the temporary one is gone and nothing took its place. */
static void test_no_half_file(void **state)
{
	struct rlimit before, limit;
	Output *output;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 300000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(output_open("z", 0, NULL, &output), 0);
	for (size_t k = 0; k < 100000; k++)
		output_write(output, "abcdefgh\n", 9);
	assert_int_equal(output->error, -EFBIG);
	assert_int_equal(output_close(output), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(access("z", F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nesting_and_commas),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_milliseconds),
		cmocka_unit_test(test_signed),
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_text_of_a_size),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_any_bytes_are_json),
		cmocka_unit_test(test_suffix),
		cmocka_unit_test(test_replaces_when_whole),
		cmocka_unit_test(test_bad_paths),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_no_half_file),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
