/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much work is put into a capture's compression. */
#include "capture.h"
#include "make_record.h"
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <unistd.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#include "record_counter.h"

/* 40,000 wake-ups, each a little later than the one before. Returns the bytes that they take. */
static uint64_t write_wakings(const char *path, int level, unsigned int threads)
{
	CaptureWriter *writer;
	uint64_t bytes;

	assert_int_equal(capture_writer_new(open(path, O_RDWR | O_TRUNC), level, threads, &writer),
			 0);
	srandom(1);
	for (uint64_t i = 0, ns = 0; i < 40000; i++) {
		struct record *record = make_waking(ns += random() % 5000, random() % 30, 7);

		/* Without any part, as most are. */
		((struct rec_waking *)record)->parts = 0;
		record->len = WAKING_SHORT_LEN;
		assert_int_equal(capture_write(writer, record), 0);
		free(record);
	}
	assert_int_equal(capture_flush(writer), 0);
	bytes = capture_writer_file_bytes(writer);
	assert_int_equal(capture_writer_close(writer), 0);
	return bytes;
}

/* More work makes it smaller; whichever way it was made, it holds the same. */
static void test_levels(void **state)
{
	char *path;
	int fd;
	uint64_t fast, slow;

	(void)state;
	path = make_temporary(&fd);
	close(fd);
	fast = write_wakings(path, 1, 1);
	assert_int_equal(count_records(path), 40000);
	slow = write_wakings(path, 19, 1);
	assert_int_equal(count_records(path), 40000);
	print_message("%" PRIu64 " and %" PRIu64 " bytes\n", fast, slow);
	assert_true(slow < fast);
	write_wakings(path, 3, 4);
	assert_int_equal(count_records(path), 40000);
	unlink(path);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
