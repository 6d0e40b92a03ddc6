/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks counted by reference, as the report, its JSON and the profile show them. */
#include "firefox.h"
#include "json_reader.h"
#include "make_record.h"
#include "report.h"
#include "sample_rows.h"
#include "stack_stats.h"
#include "test_tools.h"
#include "timeline_fixture.h"
#include <inttypes.h>

#define MS    NSEC_PER_MSEC
#define PID   7
#define FOO   0x10000
#define BAR   0x20000
#define ANON  0x30000
#define WILD  0x90000
#define SIZE  0x1000
#define TICKS 3 /* in each run */

/* The kinds of stacks that there are; each is referred to as often as the truth says. */
enum kind {
	WHOLE,	 /* in libfoo */
	ZERO,	 /* in libbar, without a return address */
	COPIED,	 /* in libfoo, from a copy */
	GAP,	 /* in libbar */
	GUESSED, /* in memory without a file: by frame pointer, then no more */
	STALE,	 /* in libfoo, which was not there when the tables were made */
	NOWHERE, /* where nothing is mapped */
	LOST,
	KINDS
};

static void report_json_of_all(FILE *stream, const Timeline *timeline, Frames *frames)
{
	Output *output = output_for_stream(stream);

	report_json(output, timeline, frames, /* function= */ NULL);
	output_close(output);
}

static const struct {
	uint64_t frames[2];
	int flags, result;
	uint64_t tables_ns;
} stack_of[KINDS] = {
	[WHOLE] = {{BAR, FOO + 1}, 0, STACK_COMPLETE, FIXTURE_START},
	[ZERO] = {{FOO, BAR + 1}, 0, STACK_END_ZERO, FIXTURE_START},
	[COPIED] = {{BAR, FOO + 2}, STACK_FROM_COPY, STACK_COMPLETE, FIXTURE_START},
	[GAP] = {{FOO, BAR + 2}, 0, STACK_GAP, FIXTURE_START},
	[GUESSED] = {{FOO, FRAME_GUESSED | (ANON + 1)}, STACK_GUESSED, STACK_NO_CFI, FIXTURE_START},
	[STALE] = {{FOO, BAR + 3}, 0, STACK_COMPLETE, 5},
	[NOWHERE] = {{FOO, WILD}, 0, STACK_NO_MAPPING, FIXTURE_START},
};

typedef struct Truth {
	uint64_t references[KINDS];
} Truth;

typedef struct Fixture {
	Timeline *timeline;
	Frames *frames;
	uint32_t thread;
	Truth truth;
	uint64_t ns; /* where the next interval begins */
} Fixture;

static void give(const Fixture *fixture, struct record *record)
{
	frames_add(fixture->frames, record);
	free(record);
}

static void map(const Fixture *fixture, uint64_t ns, uint32_t file, uint64_t start)
{
	give(fixture, make_mapping(ns, 0, PID, file, start, start + SIZE, start));
}

/* Stack numbers are kinds. */
static int set_up(void **state)
{
	Fixture *fixture = xcalloc(1, sizeof(*fixture));
	Timeline *t = fixture->timeline = fixture_new(1000 * MS);

	fixture->frames = frames_new();
	give(fixture, make_file(1, 0, "/lib/libfoo.so", 0));
	give(fixture, make_file(2, 0, "/lib/libbar.so", 0));
	give(fixture, make_file(3, FILE_ANON, "//anon", 0));
	map(fixture, 1, 2, FOO);
	map(fixture, 1, 2, BAR);
	map(fixture, 1, 3, ANON);
	map(fixture, 10, 1, FOO);
	for (int kind = 0; kind < KINDS; kind++) {
		uint32_t stack = fixture_stack(t, stack_of[kind].frames[0], true);
		StackDef *def = &t->stacks.items[stack];

		*vec_push(&t->frames) = stack_of[kind].frames[1];
		def->count = 2;
		def->flags |= stack_of[kind].flags;
		def->result = stack_of[kind].result;
		def->tables_ns = stack_of[kind].tables_ns;
		def->defined = kind != LOST;
	}
	fixture->thread = fixture_thread(t, fixture_process(t, PID, "app", 0, 1000 * MS), PID,
					 "app", 0, 1000 * MS);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	timeline_free(fixture->timeline);
	frames_free(fixture->frames);
	free(fixture);
	return 0;
}

static void interval(Fixture *fixture, enum thread_state state, enum reason reason, uint32_t stack)
{
	fixture_interval(fixture->timeline, fixture->thread, fixture->ns, state, reason)
		->user_stack = stack;
	fixture->ns += MS / 100;
}

/* It runs, with ticks, and sleeps or is preempted. A stack is given to up to three intervals. */
static void live(Fixture *fixture, unsigned *random)
{
	static const enum kind weighted[] = {WHOLE, WHOLE, WHOLE, WHOLE, WHOLE,	  ZERO,	   COPIED,
					     GAP,   GAP,   GAP,	  STALE, GUESSED, NOWHERE, LOST};
	enum kind kind = weighted[rand_r(random) % ARRAY_LEN(weighted)];

	for (int i = 0; i < TICKS; i++) {
		enum kind ticked = weighted[rand_r(random) % ARRAY_LEN(weighted)];

		fixture_tick(fixture->timeline, fixture->thread, fixture->ns + i, true)
			->user_stack = ticked;
		fixture->truth.references[ticked]++;
	}
	fixture_tick(fixture->timeline, fixture->thread, fixture->ns + TICKS, false);
	interval(fixture, STATE_RUNNING, REASON_NONE, kind);
	if (rand_r(random) % 2) {
		interval(fixture, STATE_RUNNABLE, REASON_PREEMPTED, kind);
	} else {
		interval(fixture, STATE_BLOCKED, REASON_PIPE_READ, kind);
		interval(fixture, STATE_RUNNABLE, REASON_WOKEN, kind);
	}
	fixture->truth.references[kind]++;
}

static void live_long(Fixture *fixture, unsigned seed)
{
	for (int i = 0; i < 200; i++)
		live(fixture, &seed);
	fixture_finish(fixture->timeline);
}

static char *print(const Fixture *fixture, bool json)
{
	char *text, *copy;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	const Page page = {.file = stream};
	const ReportSelection whole = {.full = true, .timeline = THREAD_NONE};

	if (json)
		report_json_of_all(stream, fixture->timeline, fixture->frames);
	else
		report_print(&page, fixture->timeline, fixture->frames, &whole);
	fclose(stream);
	copy = xstrdup(text);
	free(text);
	return copy;
}

static uint64_t all_of(const Truth *truth)
{
	uint64_t sum = 0;

	for (int kind = 0; kind < KINDS; kind++)
		sum += truth->references[kind];
	return sum;
}

static bool is(const Node *node, const char *key, uint64_t expected)
{
	const Node *value = node_find(node, key);

	return (value ? (uint64_t)node_int(value) : 0) == expected;
}

static bool results_are(const Node *node, const Truth *truth)
{
	const Node *results = node_get(node, "results");

	return is(results, "complete", truth->references[WHOLE] + truth->references[COPIED]) &&
	       is(results, "end_zero", truth->references[ZERO]) &&
	       is(results, "gap", truth->references[GAP]) &&
	       is(results, "no_table", truth->references[GUESSED]) &&
	       is(results, "table_out_of_date", truth->references[STALE]) &&
	       is(results, "no_mapping", truth->references[NOWHERE]) &&
	       is(results, "lost", truth->references[LOST]);
}

static Truth only(const Truth *truth, unsigned kinds)
{
	Truth some = {};

	for (int kind = 0; kind < KINDS; kind++)
		if (kinds >> kind & 1)
			some.references[kind] = truth->references[kind];
	return some;
}

/* One object each, by name; what has none is the first. */
static bool objects_are(const Node *objects, const Truth *truth)
{
	static const struct {
		const char *name, *path;
		unsigned kinds;
	} expected[] = {
		{NULL, NULL, 1 << NOWHERE | 1 << LOST},
		{"[anon]", "//anon", 1 << GUESSED},
		{"libbar.so", "/lib/libbar.so", 1 << ZERO | 1 << GAP},
		{"libfoo.so", "/lib/libfoo.so", 1 << WHOLE | 1 << COPIED | 1 << STALE},
	};

	assert_int_equal(objects->count, ARRAY_LEN(expected));
	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		const Node *object = NULL;
		Truth some = only(truth, expected[i].kinds);

		for (size_t k = 0; k < objects->count; k++) {
			const Node *name = node_get(node_at(objects, k), "name");

			if (expected[i].name ? name->type != 'n' &&
						       !strcmp(node_string(name), expected[i].name)
					     : name->type == 'n')
				object = node_at(objects, k);
		}
		assert_non_null(object);
		if (expected[i].path)
			assert_string_equal(node_string(node_get(object, "path")),
					    expected[i].path);
		if (!results_are(object, &some))
			return false;
	}
	return true;
}

static bool code_is(const Node *stacks, const char *kind, uint64_t cut, uint64_t guessed)
{
	const Node *code = node_get(node_get(stacks, "code"), kind);

	return is(code, "cut", cut) && is(code, "guessed", guessed);
}

/* Where stacks are cut, and where the first caller is guessed. */
static bool code_agrees(const Node *stacks, const Truth *truth)
{
	const uint64_t *counts = truth->references;

	return code_is(stacks, "file", counts[ZERO] + counts[GAP] + counts[STALE],
		       counts[GUESSED]) &&
	       code_is(stacks, "made_at_run_time", counts[GUESSED], 0) &&
	       code_is(stacks, "unread_file", 0, 0) && code_is(stacks, "code_32_bit", 0, 0) &&
	       code_is(stacks, "nowhere", counts[NOWHERE] + counts[LOST], 0);
}

static bool json_agrees(const Fixture *fixture, const Truth *truth)
{
	char *text = print(fixture, true);
	Node *node = node_read(text);
	const Node *stacks = node_get(node, "stacks");
	uint64_t whole = truth->references[WHOLE] + truth->references[COPIED];
	bool agrees = is(stacks, "walked", all_of(truth)) && is(stacks, "whole", whole) &&
		      is(stacks, "guessed", truth->references[GUESSED]) &&
		      is(stacks, "stale", truth->references[STALE]) &&
		      is(stacks, "from_copy", truth->references[COPIED]) &&
		      results_are(stacks, truth) && code_agrees(stacks, truth) &&
		      objects_are(node_get(stacks, "objects"), truth);

	assert_int_equal(node_get(stacks, "results")->count, STACK_ENDS);
	node_free(node);
	free(text);
	return agrees;
}

static void test_json(void **state)
{
	Fixture *fixture = *state;

	live_long(fixture, 1);
	assert_true(json_agrees(fixture, &fixture->truth));
	for (int kind = 0; kind < KINDS; kind++) {
		Truth altered = fixture->truth;

		altered.references[kind]++;
		altered.references[(kind + 1) % KINDS]--;
		assert_false(json_agrees(fixture, &altered));
	}
}

static void check_contains(const Fixture *fixture, const char *expected)
{
	char *text = print(fixture, false);

	if (!strstr(text, expected))
		fail_msg("no \"%s\" in:\n%s", expected, text);
	free(text);
}

static void add_switch_outs(Fixture *fixture, enum kind kind, int count)
{
	for (int i = 0; i < count; i++) {
		interval(fixture, STATE_RUNNING, REASON_NONE, kind);
		interval(fixture, STATE_BLOCKED, REASON_SLEEP, kind);
	}
}

static void test_text(void **state)
{
	Fixture *fixture = *state;

	add_switch_outs(fixture, WHOLE, 987);
	add_switch_outs(fixture, GAP, 6);
	add_switch_outs(fixture, GUESSED, 4);
	add_switch_outs(fixture, STALE, 4);
	fixture_finish(fixture->timeline);
	check_contains(fixture,
		       "\nstacks: 1001 walked, 98.6 % complete, 4 partly guessed; "
		       "stacks complete for 98.6 % of running time\n"
		       "\n"
		       "      stacks  why they are not complete, and where\n"
		       "           6  gap in unwind table  libbar.so\n"
		       "           4  no unwind table      [anon]\n"
		       "           4  table out of date    libfoo.so\n"
		       "\n"
		       "         cut      guessed  kind of code where stacks are cut, or the "
		       "caller is guessed\n"
		       "       1.0 %        0.4 %  programs and libraries\n"
		       "       0.4 %        0.0 %  code made at run time\n");
}

static void test_all_whole(void **state)
{
	Fixture *fixture = *state;

	check_contains(fixture, "\nstacks: none walked\n");
	add_switch_outs(fixture, WHOLE, 20001);
	check_contains(fixture, "\nstacks: 20001 walked, 100 % complete\n");
	/* Not even nearly all is all. */
	add_switch_outs(fixture, LOST, 1);
	check_contains(fixture, "\nstacks: 20002 walked, 99.9 % complete; "
				"stacks complete for 99.9 % of running time\n"
				"\n"
				"      stacks  why they are not complete, and where\n"
				"           1  stack lost  [unknown]\n");
}

static void test_frame_pointers(void **state)
{
	Fixture *fixture = *state;

	fixture->timeline->stacks.items[WHOLE].result = STACK_FRAME_POINTERS;
	fixture->timeline->stacks.items[WHOLE].tables_ns = 0;
	add_switch_outs(fixture, WHOLE, 5);
	check_contains(fixture, "stacks: 5 walked, 0.0 % complete, "
				"5 by frame pointers alone (may be truncated or wrong); "
				"stacks complete for 0.0 % of running time\n");
	fixture_meta(fixture->timeline, "stacks", "fp");
	check_contains(fixture, "stacks: 5 walked by frame pointers (may be truncated or wrong)\n");
}

/* What is not of the window: the switch-outs before it, and after it. */
static void test_borders_of_the_window(void **state)
{
	Fixture *fixture = *state;
	Interval *intervals;
	size_t count;

	interval(fixture, STATE_BLOCKED, REASON_SLEEP, GAP);
	interval(fixture, STATE_RUNNABLE, REASON_WOKEN, GAP);
	add_switch_outs(fixture, WHOLE, 3);
	interval(fixture, STATE_RUNNING, REASON_NONE, GAP);
	intervals = fixture->timeline->threads.items[0].intervals.items;
	count = fixture->timeline->threads.items[0].intervals.count;
	check_contains(fixture, "stacks: 5 walked, 60.0 % complete; "
				"stacks complete for 0.0 % of running time\n");
	intervals[0].flags = INTERVAL_OPEN_START;
	intervals[count - 1].flags = INTERVAL_OPEN_END;
	/* The last run goes on behind the window, and is weighed by the stack that it has there. */
	check_contains(fixture, "stacks: 3 walked, 100 % complete; "
				"stacks complete for 0.0 % of running time\n");
}

/* A thread that is woken as the window begins has the stack of a switch-out before the window. */
static void test_woken_at_the_start(void **state)
{
	Fixture *fixture = *state;

	interval(fixture, STATE_RUNNABLE, REASON_WOKEN, GAP);
	add_switch_outs(fixture, WHOLE, 3);
	check_contains(fixture, "stacks: 3 walked, 100 % complete\n");
}

/* One that was preempted then was switched out in the window. */
static void test_preempted_at_the_start(void **state)
{
	Fixture *fixture = *state;

	interval(fixture, STATE_RUNNABLE, REASON_PREEMPTED, GAP);
	add_switch_outs(fixture, WHOLE, 3);
	check_contains(fixture, "stacks: 4 walked, 75.0 % complete; "
				"stacks complete for 100.0 % of running time\n");
}

/* ---- running time ------------------------------------------------------------------------ */

static bool running_is(const Fixture *fixture, uint64_t ns, uint64_t whole_ns)
{
	StackStats sums;
	bool same;

	stack_stats_init(&sums, fixture->timeline, fixture->frames);
	same = sums.running_walked_ns == ns && sums.running_complete_ns == whole_ns;
	stack_stats_free(&sums);
	return same;
}

static uint32_t add_thread(const Fixture *fixture, uint32_t tid)
{
	return fixture_thread(fixture->timeline, 0, tid, "more", 0, 1000 * MS);
}

static void add_run(const Fixture *fixture, uint32_t thread, uint64_t from, uint64_t to,
		    uint32_t stack)
{
	fixture_interval(fixture->timeline, thread, from, STATE_RUNNING, REASON_NONE)->user_stack =
		stack;
	fixture_interval(fixture->timeline, thread, to, STATE_BLOCKED, REASON_SLEEP)->user_stack =
		stack;
}

static void add_tick(const Fixture *fixture, uint32_t thread, uint64_t ns, uint32_t stack)
{
	fixture_tick(fixture->timeline, thread, ns, true)->user_stack = stack;
}

/* A tick stands for the time since the one before, the last one for the rest as well. */
static void test_running_time(void **state)
{
	Fixture *fixture = *state;
	uint32_t thread;
	Node *node;
	char *text;

	add_run(fixture, fixture->thread, 0, 10 * MS, GAP);
	add_tick(fixture, fixture->thread, 4 * MS, WHOLE);
	add_tick(fixture, fixture->thread, 6 * MS, GAP);
	add_run(fixture, fixture->thread, 100 * MS, 110 * MS, GAP);
	add_tick(fixture, fixture->thread, 103 * MS, COPIED);
	assert_true(running_is(fixture, 20 * MS, 18 * MS));
	assert_false(running_is(fixture, 20 * MS, 18 * MS + 1));
	/* Without ticks: the switch-outs' stacks. */
	thread = add_thread(fixture, PID + 1);
	add_run(fixture, thread, 0, 30 * MS, GAP);
	add_run(fixture, thread, 40 * MS, 45 * MS, WHOLE);
	assert_true(running_is(fixture, 55 * MS, 23 * MS));
	/* A thread that has no user stack has no share in either. */
	thread = add_thread(fixture, PID + 2);
	add_run(fixture, thread, 0, 30 * MS, STACK_NONE);
	add_tick(fixture, thread, 10 * MS, STACK_NONE);
	assert_true(running_is(fixture, 55 * MS, 23 * MS));
	fixture_finish(fixture->timeline);
	check_contains(fixture, " % complete; stacks complete for 41.8 % of running time\n");
	text = print(fixture, true);
	node = node_read(text);
	assert_true(is(node_get(node, "stacks"), "running_walked_ns", 55 * MS));
	assert_true(is(node_get(node, "stacks"), "running_whole_ns", 23 * MS));
	node_free(node);
	free(text);
}

/* The same by the rows that the profile and the report's places have, and by their stacks' roots.
 */
typedef struct ByRows {
	StackTable *tables;
	uint64_t ns, whole_ns;
} ByRows;

static void add_row(void *user, const Row *row)
{
	ByRows *rows = user;
	enum category category = stack_table_leaf_category(rows->tables, row->stack);
	uint32_t root = row->stack, prefix;
	const char *name;

	while ((prefix = stack_table_stack_prefix(rows->tables, root)) != UINT32_MAX)
		root = prefix;
	name = stack_table_leaf_name(rows->tables, root);
	if ((category != CATEGORY_USER && category != CATEGORY_KERNEL) ||
	    !strcmp(name, "[kernel]") || !strcmp(name, "[no stack]"))
		return;
	rows->ns += row->weight_ns;
	if (strncmp(name, "[truncated", strlen("[truncated")) && strcmp(name, "[stack lost]"))
		rows->whole_ns += row->weight_ns;
}

static void test_running_time_is_that_of_the_rows(void **state)
{
	Fixture *fixture = *state;
	ByRows rows = {.tables = stack_table_new(fixture->timeline, fixture->frames)};
	uint32_t thread = add_thread(fixture, PID + 1);
	RowPlan plan;

	live_long(fixture, 3);
	for (int i = 0; i < 20; i++)
		add_run(fixture, thread, 10 * MS * i, 10 * MS * i + i * MS / 4,
			i % 3 ? WHOLE : GAP);
	row_plan_init(&plan, fixture->timeline, 0);
	for (uint32_t i = 0; i < fixture->timeline->threads.count; i++)
		sample_rows_walk(rows.tables, &plan, i, true, add_row, &rows);
	print_message("%" PRIu64 " of %" PRIu64 " ns\n", rows.whole_ns, rows.ns);
	assert_true(rows.whole_ns > 0 && rows.whole_ns < rows.ns);
	assert_true(running_is(fixture, rows.ns, rows.whole_ns));
	row_plan_free(&plan);
	stack_table_free(rows.tables);
}

static void test_profile(void **state)
{
	Fixture *fixture = *state;
	char *text, *expected;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	Output *output = output_for_stream(stream);
	StackStats sums;
	Node *node;
	bool found = false;

	live_long(fixture, 2);
	assert_int_equal(firefox_write(output, fixture->timeline, fixture->frames, NULL), 0);
	output_close(output);
	fclose(stream);
	stack_stats_init(&sums, fixture->timeline, fixture->frames);
	assert_int_equal(sums.walked, all_of(&fixture->truth));
	expected = stack_stats_line(&sums);
	stack_stats_free(&sums);
	node = node_read(text);
	const Node *extra = node_get(node_get(node, "meta"), "extra");
	for (size_t i = 0; i < extra->count; i++) {
		const Node *entries = node_get(node_at(extra, i), "entries");

		for (size_t k = 0; k < entries->count; k++) {
			const Node *entry = node_at(entries, k);

			if (strcmp(node_string(node_get(entry, "label")), "user stacks"))
				continue;
			assert_string_equal(node_string(node_get(entry, "value")), expected);
			found = true;
		}
	}
	assert_true(found);
	node_free(node);
	free(expected);
	free(text);
}

static void test_words_are_unique(void **state)
{
	(void)state;
	for (enum stack_end a = 0; a < STACK_ENDS; a++) {
		assert_non_null(stack_end_key(a));
		for (enum stack_end b = 0; b < a; b++) {
			assert_string_not_equal(stack_end_key(a), stack_end_key(b));
			if (stack_end_words(a) && stack_end_words(b))
				assert_string_not_equal(stack_end_words(a), stack_end_words(b));
		}
	}
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_json),
		WITH_FIXTURE(test_text),
		WITH_FIXTURE(test_all_whole),
		WITH_FIXTURE(test_frame_pointers),
		WITH_FIXTURE(test_borders_of_the_window),
		WITH_FIXTURE(test_woken_at_the_start),
		WITH_FIXTURE(test_preempted_at_the_start),
		WITH_FIXTURE(test_running_time),
		WITH_FIXTURE(test_running_time_is_that_of_the_rows),
		WITH_FIXTURE(test_profile),
		cmocka_unit_test(test_words_are_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
