/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Folded stacks of timelines made by hand and at random, read back. */
#include "folded.h"
#include "random_timeline.h"
#include "test_tools.h"
#include <time.h>

#define MS NSEC_PER_MSEC

/* The caller frees it. */
static char *written(const Timeline *timeline, const FoldedOptions *options)
{
	Frames *frames = frames_new();
	char *text;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	Output *output = output_for_stream(stream);

	assert_int_equal(folded_write(output, timeline, frames, options), 0);
	assert_int_equal(output_close(output), 0);
	fclose(stream);
	frames_free(frames);
	return text;
}

/* Each line is frames, a space and a number. */
static uint64_t sum_of(const char *text)
{
	uint64_t sum = 0;

	while (*text) {
		const char *end = strchr(text, '\n'), *space;

		assert_non_null(end);
		space = memrchr(text, ' ', end - text);
		assert_non_null(space);
		assert_true(strtoull(space + 1, NULL, 10) > 0);
		sum += strtoull(space + 1, NULL, 10);
		text = end + 1;
	}
	return sum;
}

static void test_sum(void **state)
{
	Timeline *timeline = random_timeline(time(NULL) % 100000, 300 * MS, 10);
	char *text = written(timeline, NULL);
	uint64_t ns = 0;

	(void)state;
	for (size_t i = 0; i < timeline->threads.count; i++)
		ns += timeline->threads.items[i].end_ns - timeline->threads.items[i].start_ns;
	assert_int_equal(sum_of(text), ns / NSEC_PER_USEC);
	free(text);
	timeline_free(timeline);
}

/* Names are any bytes that a program has chosen. */
static void test_names(void **state)
{
	Timeline *t = fixture_new(10 * MS);
	uint32_t process = fixture_process(t, 100, "a;b\xe2\x80\xa8z", 0, 10 * MS);
	FoldedOptions by_process = {.root = STACK_TREE_BY_PROCESS};
	char *text;

	(void)state;
	fixture_simple_thread(t, process, 100, "x\ny;\xff", STATE_BLOCKED, REASON_MUTEX);
	fixture_finish(t);
	text = written(t, NULL);
	assert_string_equal(text, "a:b z;x y:\xef\xbf\xbd;[mutex wait] 10000\n");
	free(text);
	text = written(t, &by_process);
	assert_string_equal(text, "a:b z;[mutex wait] 10000\n");
	free(text);
	by_process.hidden = 1u << STATE_BLOCKED;
	text = written(t, &by_process);
	assert_string_equal(text, "");
	free(text);
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sum),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
