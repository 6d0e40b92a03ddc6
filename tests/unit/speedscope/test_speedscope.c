/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Speedscope profiles of timelines made by hand and at random, read back. */
#include "json_reader.h"
#include "random_timeline.h"
#include "speedscope.h"
#include "test_tools.h"
#include <time.h>

#define MS NSEC_PER_MSEC

static Node *written(const Timeline *timeline, uint64_t budget, uint32_t hidden)
{
	SpeedscopeOptions options = {.event_budget = budget, .hidden = hidden};
	Frames *frames = frames_new();
	char *text;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	Output *output = output_for_stream(stream);
	Node *root;

	assert_int_equal(speedscope_write(output, timeline, frames, &options), 0);
	assert_int_equal(output_close(output), 0);
	fclose(stream);
	frames_free(frames);
	root = node_read(text);
	free(text);
	return root;
}

/* The innermost frames are states: what is not a wait is running. */
static bool is_running(const char *leaf)
{
	return !strcmp(leaf, "[running]") || !strcmp(leaf, "[recording]");
}

typedef struct Times {
	uint64_t all, running;
} Times;

/* Events are in order, and each closes the frame that was opened last. */
static Times times_of(const Node *root, const Node *profile)
{
	const Node *events = node_get(profile, "events");
	const Node *frames = node_get(node_get(root, "shared"), "frames");
	int64_t open[256], last = 0;
	size_t depth = 0;
	Times times = {};

	for (size_t i = 0; i < events->count; i++) {
		const Node *event = node_at(events, i);
		int64_t at = node_int(node_get(event, "at")),
			frame = node_int(node_get(event, "frame"));

		assert_true(at >= last && at <= node_int(node_get(profile, "endValue")));
		assert_true(frame >= 0 && (size_t)frame < frames->count);
		if (depth > 0) {
			const Node *leaf = node_get(node_at(frames, open[depth - 1]), "name");

			times.all += at - last;
			if (is_running(node_string(leaf)))
				times.running += at - last;
		}
		last = at;
		if (*node_string(node_get(event, "type")) == 'O') {
			assert_true(depth < ARRAY_LEN(open));
			open[depth++] = frame;
		} else {
			assert_true(depth > 0 && open[depth - 1] == frame);
			depth--;
		}
	}
	assert_int_equal(depth, 0);
	return times;
}

static size_t check_sums(const Timeline *timeline, uint64_t budget, uint32_t hidden)
{
	Node *root = written(timeline, budget, hidden);
	const Node *profiles = node_get(root, "profiles");
	uint64_t all = 0, running = 0;
	size_t events = 0;

	assert_int_equal(profiles->count, timeline->threads.count);
	assert_true(!strstr(node_string(node_get(root, "name")), "added up") == !budget);
	for (size_t i = 0; i < profiles->count; i++) {
		Times times = times_of(root, node_at(profiles, i));

		all += times.all;
		running += times.running;
		events += node_get(node_at(profiles, i), "events")->count;
	}
	for (size_t i = 0; i < timeline->threads.count; i++)
		for (size_t s = 0; s < STATE_COUNT; s++) {
			uint64_t ns = hidden >> s & 1 ? 0 : timeline->threads.items[i].ledger[s];

			all -= ns;
			running -= s == STATE_RUNNING ? ns : 0;
		}
	assert_int_equal(all, 0);
	assert_int_equal(running, 0);
	node_free(root);
	return events;
}

static void test_sums(void **state)
{
	Timeline *timeline = random_timeline(time(NULL) % 100000, 300 * MS, 10);
	size_t events;

	(void)state;
	events = check_sums(timeline, 0, 0);
	/* Each span has more than one event, so this many spans would all be drawn. */
	assert_true(check_sums(timeline, events / 2, 0) <= events / 2);
	check_sums(timeline, 0, 1u << STATE_RUNNING);
	check_sums(timeline, 300, 1u << STATE_BLOCKED);
	timeline_free(timeline);
}

static void test_empty(void **state)
{
	Timeline *timeline = fixture_new(MS);
	Node *root = written(timeline, 0, 0);

	(void)state;
	assert_int_equal(node_get(root, "profiles")->count, 0);
	node_free(root);
	timeline_free(timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
