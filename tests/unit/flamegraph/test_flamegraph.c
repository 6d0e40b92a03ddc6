/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The places of frames in flame graphs of timelines made at random, and the text of one. */
#include "flamegraph.h"
#include "flamegraph_layout.h"
#include "random_timeline.h"
#include "test_tools.h"
#include <time.h>

#define MS NSEC_PER_MSEC

/* Frames lie on the one below them, and are as wide as their own time and the frames on them. */
static void test_layout(void **state)
{
	Timeline *timeline = random_timeline(time(NULL) % 100000, 300 * MS, 10);
	Frames *frames = frames_new();
	StackTable *tables = stack_table_new(timeline, frames);
	StackTree tree;
	Layout layout;
	uint64_t *above, ns = 0;

	(void)state;
	stack_tree_init(&tree, tables, STACK_TREE_BY_THREAD, 0);
	flamegraph_layout_init(&layout, &tree);
	above = xcalloc(tree.nodes.count, sizeof(*above));
	for (size_t i = 0; i < tree.nodes.count; i++) {
		const Placed *place = &layout.places[i];
		uint32_t parent = tree.nodes.items[i].parent;

		assert_true(place->start_ns + place->total_ns <= layout.all_ns);
		if (parent == STACK_TREE_NONE)
			continue;
		assert_int_equal(place->depth, layout.places[parent].depth + 1);
		assert_true(place->start_ns >= layout.places[parent].start_ns);
		assert_true(place->start_ns + place->total_ns <=
			    layout.places[parent].start_ns + layout.places[parent].total_ns);
		above[parent] += place->total_ns;
	}
	for (size_t i = 0; i < tree.nodes.count; i++)
		assert_int_equal(layout.places[i].total_ns, above[i] + tree.nodes.items[i].self_ns);
	for (size_t i = 0; i < timeline->threads.count; i++)
		ns += timeline->threads.items[i].end_ns - timeline->threads.items[i].start_ns;
	assert_int_equal(layout.all_ns, ns);
	free(above);
	flamegraph_layout_free(&layout);
	stack_tree_free(&tree);
	stack_table_free(tables);
	frames_free(frames);
	timeline_free(timeline);
}

/* The caller frees it. */
static char *written(const Timeline *timeline)
{
	Frames *frames = frames_new();
	char *text;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	Output *output = output_for_stream(stream);

	assert_int_equal(flamegraph_write(output, timeline, frames, NULL), 0);
	assert_int_equal(output_close(output), 0);
	fclose(stream);
	frames_free(frames);
	return text;
}

static void test_names(void **state)
{
	Timeline *t = fixture_new(10 * MS);
	uint32_t process = fixture_process(t, 100, "a<b&c>\x01", 0, 10 * MS);
	char *text;

	(void)state;
	text = written(t);
	assert_non_null(strstr(text, "of 0 threads"));
	free(text);
	fixture_simple_thread(t, process, 100, "w\xef\xbf\xbf", STATE_BLOCKED, REASON_MUTEX);
	fixture_finish(t);
	text = written(t);
	assert_non_null(strstr(text, "<title>a&lt;b&amp;c&gt;  (10.000 ms, 100"));
	assert_non_null(strstr(text, "<title>w  (10.000 ms"));
	assert_non_null(strstr(text, "<title>[mutex wait] (10.000 ms"));
	assert_null(strstr(text, "href"));
	free(text);
	timeline_free(t);
}

/* Together these are more than 2^64 ns: a damaged capture may have any times. */
static void test_long_threads(void **state)
{
	const uint64_t length = 1ULL << 62;
	Timeline *t = fixture_new(length);
	const uint32_t processes[] = {fixture_process(t, 100, "three", 0, length),
				      fixture_process(t, 200, "two", 0, length)};
	char *text;

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		fixture_simple_thread(t, processes[i % 2], 100 + i, "long", STATE_BLOCKED,
				      REASON_MUTEX);
	fixture_finish(t);
	text = written(t);
	assert_non_null(strstr(text, "width=\"1180.000\""));
	for (const char *p = text; (p = strstr(p, " width=\"")); p++)
		assert_true(strtod(p + strlen(" width=\""), NULL) <= 1200);
	free(text);
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_long_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
