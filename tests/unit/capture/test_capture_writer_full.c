/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a capture holds when its file may not grow any more. */
#include "capture.h"
#include "make_record.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "record_counter.h"

/* Noise, so that frames are as large as their records. */
static struct record *make_noise(unsigned *seed)
{
	struct record *record = make_record(REC_WAKING, 0, 0, 4096, NULL, 0);

	for (size_t i = sizeof(*record); i < record->len; i++)
		((uint8_t *)record)[i] = rand_r(seed);
	return record;
}

/* Frames of ten records of 4 KiB each, until the file may not grow. Returns the records in it. */
static uint64_t fill_up(rlim_t most, bool squeeze)
{
	struct rlimit old, limit;
	CaptureWriter *writer;
	int fd, r = 0, after = 0;
	unsigned seed = 1;
	uint64_t count;
	struct stat st;
	char *path = make_temporary(&fd);

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = most;
	assert_int_equal(capture_writer_new(fd, 1, 1, &writer), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (int i = 0; i < 100 && r == 0; i++) {
		struct record *record = make_noise(&seed);

		assert_int_equal(capture_writer_error(writer), 0);
		r = capture_write(writer, record);
		if (r == 0 && i % 10 == 9)
			r = capture_flush(writer);
		if (r < 0)
			after = capture_write(writer, record);
		free(record);
	}
	if (squeeze)
		capture_writer_squeeze(writer);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(r, -EFBIG);
	assert_int_equal(after, -EFBIG);
	assert_int_equal(capture_writer_error(writer), -EFBIG);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(capture_writer_file_bytes(writer), st.st_size);
	assert_true(st.st_size <= (off_t)most);
	assert_int_equal(capture_writer_close(writer), -EFBIG);
	count = count_records(path);
	unlink(path);
	free(path);
	return count;
}

static void test_whole_frames(void **state)
{
	(void)state;
	assert_int_equal(fill_up(100000, /* squeeze= */ false), 20);
}

/* As many records are written as there is room for, for every size of frames. */
static void test_squeeze(void **state)
{
	(void)state;
	assert_int_equal(fill_up(100000, /* squeeze= */ true), 24);
	assert_int_equal(fill_up(10 * 4096, /* squeeze= */ true), 9);
	assert_int_equal(fill_up(4096, /* squeeze= */ true), 0);
}

static void test_no_room_at_all(void **state)
{
	CaptureWriter *writer;

	(void)state;
	assert_int_equal(capture_writer_new(open("/dev/full", O_WRONLY), 1, 1, &writer), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_frames),
		cmocka_unit_test(test_squeeze),
		cmocka_unit_test(test_no_room_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
