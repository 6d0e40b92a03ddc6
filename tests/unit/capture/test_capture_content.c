/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture.h"
#include "make_record.h"
#include "test_tools.h"
#include <fcntl.h>

/* Writes notes of random sizes, whose text compresses well, badly or not at all. Returns their
 * size. */
static uint64_t write_capture(const char *path, int level)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CaptureWriter *writer;
	uint64_t bytes = 0;

	assert_int_equal(capture_writer_new(fd, level, 0, &writer), 0);
	for (int i = 0; i < 300; i++) {
		size_t size = 1 + random_below(i % 10 ? 2000 : 300000);
		_cleanup_free_ char *text = xcalloc(1, size);
		struct record *record;

		for (size_t k = 0; i % 3 && k + 1 < size; k++)
			text[k] = i % 3 == 1 ? 'a' : (char)(1 + random_below(255));
		record = make_record(REC_NOTE, 0, 0, sizeof(struct rec_note), text, size);
		bytes += record->len;
		assert_int_equal(capture_write(writer, record), 0);
		free(record);
		if (random_below(20) == 0)
			assert_int_equal(capture_flush(writer), 0);
	}
	assert_int_equal(capture_writer_close(writer), 0);
	return bytes;
}

static uint64_t content_of(const char *path)
{
	_cleanup_(capture_reader_freep) CaptureReader *reader = NULL;
	const char *message;
	const struct record *record;
	uint64_t content;

	assert_int_equal(capture_reader_open(path, &reader, &message), 0);
	content = capture_reader_content(reader);
	assert_true(capture_reader_share(reader) <= 1);
	while (capture_read(reader, &record) > 0)
		;
	assert_true(capture_reader_damage(reader) || capture_reader_share(reader) == 1);
	return content;
}

static void test_content(void **state)
{
	static const int levels[] = {1, 3, 9};
	char *folder = make_folder();
	_cleanup_free_ char *path = xasprintf("%s/c", folder);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
		uint64_t bytes = write_capture(path, levels[i]);

		assert_int_equal(content_of(path), bytes);
	}
	remove_folder(folder);
}

/* Of a capture that was cut off, only whole frames count. */
static void test_cut(void **state)
{
	char *folder = make_folder();
	_cleanup_free_ char *path = xasprintf("%s/c", folder);

	(void)state;
	for (int i = 0; i < 20; i++) {
		uint64_t bytes = write_capture(path, 3);
		struct stat st;

		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(truncate(path, st.st_size - 1 - random_below(st.st_size / 2)), 0);
		assert_true(content_of(path) < bytes);
	}
	remove_folder(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_content),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
