/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record_counter.h"
#include "capture.h"
#include "test_tools.h"

uint64_t count_records(const char *path)
{
	const struct record *record;
	CaptureReader *reader;
	const char *message;
	uint64_t count = 0;

	assert_int_equal(capture_reader_open(path, &reader, &message), 0);
	while (capture_read(reader, &record) > 0)
		count++;
	assert_null(capture_reader_damage(reader));
	capture_reader_free(reader);
	return count;
}
