/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Spans and trees of timelines made at random are compared with the ledger. */
#include "random_timeline.h"
#include "stack_spans.h"
#include "stack_tree.h"
#include "test_tools.h"
#include <time.h>

#define MS NSEC_PER_MSEC

typedef struct Seen {
	uint64_t states[STATE_COUNT];
	uint64_t end_ns; /* of the span before; 0: there was none */
	bool gaps;	 /* they are allowed */
} Seen;

static void see_span(void *user, const Thread *thread, const StackSpan *span)
{
	Seen *seen = user;

	assert_true(span->end_ns > span->start_ns);
	assert_true(span->recording_ns <= span->end_ns - span->start_ns);
	if (seen->end_ns)
		assert_true(seen->gaps ? span->start_ns >= seen->end_ns
				       : span->start_ns == seen->end_ns);
	seen->end_ns = span->end_ns;
	seen->states[stack_span_state(thread, span)] += span->end_ns - span->start_ns;
}

static void check_spans(const Timeline *timeline, StackTable *tables, uint32_t hidden)
{
	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];
		Seen seen = {.gaps = hidden != 0};

		stack_spans_walk(tables, thread, hidden, see_span, &seen);
		for (size_t s = 0; s < STATE_COUNT; s++)
			assert_int_equal(seen.states[s], hidden >> s & 1 ? 0 : thread->ledger[s]);
	}
}

/* Returns the time of all nodes, or of those of one name. */
static uint64_t time_of(const StackTree *tree, const char *name)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < tree->nodes.count; i++)
		if (!name || !strcmp(stack_tree_name(tree, i), name))
			ns += tree->nodes.items[i].self_ns;
	return ns;
}

static uint64_t ledger_of(const Timeline *timeline, uint32_t hidden)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < timeline->threads.count; i++)
		for (size_t s = 0; s < STATE_COUNT; s++)
			if (!(hidden >> s & 1))
				ns += timeline->threads.items[i].ledger[s];
	return ns;
}

static void test_sums(void **state)
{
	unsigned int seed = time(NULL) % 100000;
	Timeline *timeline = random_timeline(seed, 300 * MS, 10);
	Frames *frames = frames_new();
	StackTable *tables = stack_table_new(timeline, frames);

	(void)state;
	for (uint32_t hidden = 0; hidden < 1u << STATE_COUNT; hidden++) {
		StackTree tree;

		check_spans(timeline, tables, hidden);
		for (int root = STACK_TREE_BY_THREAD; root <= STACK_TREE_BY_PROCESS; root++) {
			stack_tree_init(&tree, tables, root, hidden);
			assert_int_equal(time_of(&tree, NULL), ledger_of(timeline, hidden));
			stack_tree_free(&tree);
		}
	}
	stack_table_free(tables);
	frames_free(frames);
	timeline_free(timeline);
}

/* Two threads of one name are one node; their states are leaves of their own. */
static void test_tree(void **state)
{
	Timeline *t = fixture_new(10 * MS);
	uint32_t process = fixture_process(t, 100, "server", 0, 10 * MS);
	Frames *frames = frames_new();
	StackTable *tables;
	StackTree tree;
	StackPath path = {};

	(void)state;
	for (uint32_t tid = 100; tid < 102; tid++) {
		uint32_t thread = fixture_thread(t, process, tid, "worker", 0, 10 * MS);

		fixture_interval(t, thread, 0, STATE_RUNNING, REASON_NONE);
		fixture_interval(t, thread, 4 * MS, STATE_BLOCKED, REASON_MUTEX);
	}
	fixture_finish(t);
	tables = stack_table_new(t, frames);
	stack_tree_init(&tree, tables, STACK_TREE_BY_THREAD, 0);
	assert_int_equal(time_of(&tree, STACK_TREE_RUNNING), 8 * MS);
	assert_int_equal(time_of(&tree, reason_info[REASON_MUTEX].leaf), 12 * MS);
	stack_tree_path(&tree, tree.nodes.count - 1, &path);
	assert_true(path.count >= 3);
	assert_string_equal(stack_tree_name(&tree, path.items[1]), "worker");
	for (size_t i = 0; i < path.count; i++)
		assert_int_equal(tree.nodes.items[path.items[i]].parent,
				 i ? path.items[i - 1] : STACK_TREE_NONE);
	vec_free(&path);
	stack_tree_free(&tree);
	stack_table_free(tables);
	frames_free(frames);
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
