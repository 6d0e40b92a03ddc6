/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks counted by reference, as the report, its JSON and the profile tell it. */
#include "firefox.h"
#include "hand_timeline.h"
#include "json_reader.h"
#include "make_record.h"
#include "report.h"
#include "stack_sums.h"

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
	[WHOLE] = {{BAR, FOO + 1}, 0, STACK_COMPLETE, HAND_START},
	[ZERO] = {{FOO, BAR + 1}, 0, STACK_END_ZERO, HAND_START},
	[COPIED] = {{BAR, FOO + 2}, STACK_FROM_COPY, STACK_COMPLETE, HAND_START},
	[GAP] = {{FOO, BAR + 2}, 0, STACK_GAP, HAND_START},
	[GUESSED] = {{FOO, FRAME_GUESSED | (ANON + 1)}, STACK_GUESSED, STACK_NO_CFI, HAND_START},
	[STALE] = {{FOO, BAR + 3}, 0, STACK_COMPLETE, 5},
	[NOWHERE] = {{FOO, WILD}, 0, STACK_NO_MAPPING, HAND_START},
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
	Timeline *t = fixture->timeline = hand_new(1000 * MS);

	fixture->frames = frames_new();
	give(fixture, make_file(1, 0, "/lib/libfoo.so", 0));
	give(fixture, make_file(2, 0, "/lib/libbar.so", 0));
	give(fixture, make_file(3, FILE_ANON, "//anon", 0));
	map(fixture, 1, 2, FOO);
	map(fixture, 1, 2, BAR);
	map(fixture, 1, 3, ANON);
	map(fixture, 10, 1, FOO);
	for (int kind = 0; kind < KINDS; kind++) {
		uint32_t stack = hand_stack(t, stack_of[kind].frames[0], true);
		StackDef *def = &t->stacks.items[stack];

		*vec_push(&t->frames) = stack_of[kind].frames[1];
		def->count = 2;
		def->flags |= stack_of[kind].flags;
		def->result = stack_of[kind].result;
		def->tables_ns = stack_of[kind].tables_ns;
		def->defined = kind != LOST;
	}
	fixture->thread =
		hand_thread(t, hand_process(t, PID, "app", 0, 1000 * MS), PID, "app", 0, 1000 * MS);
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
	hand_interval(fixture->timeline, fixture->thread, fixture->ns, state, reason)->user_stack =
		stack;
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

		hand_tick(fixture->timeline, fixture->thread, fixture->ns + i, true)->user_stack =
			ticked;
		fixture->truth.references[ticked]++;
	}
	hand_tick(fixture->timeline, fixture->thread, fixture->ns + TICKS, false);
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
	hand_finish(fixture->timeline);
}

static char *print(const Fixture *fixture, bool json)
{
	char *text, *copy;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	(json ? report_json_of_all : report_print)(stream, fixture->timeline, fixture->frames);
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

static bool json_tells(const Fixture *fixture, const Truth *truth)
{
	char *text = print(fixture, true);
	Node *node = node_read(text);
	const Node *stacks = node_get(node, "stacks");
	uint64_t whole = truth->references[WHOLE] + truth->references[COPIED];
	bool told = is(stacks, "walked", all_of(truth)) && is(stacks, "whole", whole) &&
		    is(stacks, "guessed", truth->references[GUESSED]) &&
		    is(stacks, "stale", truth->references[STALE]) &&
		    is(stacks, "from_copy", truth->references[COPIED]) &&
		    results_are(stacks, truth) && objects_are(node_get(stacks, "objects"), truth);

	assert_int_equal(node_get(stacks, "results")->count, STACK_ENDS);
	node_free(node);
	free(text);
	return told;
}

static void test_json(void **state)
{
	Fixture *fixture = *state;

	live_long(fixture, 1);
	assert_true(json_tells(fixture, &fixture->truth));
	for (int kind = 0; kind < KINDS; kind++) {
		Truth altered = fixture->truth;

		altered.references[kind]++;
		altered.references[(kind + 1) % KINDS]--;
		assert_false(json_tells(fixture, &altered));
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
	hand_finish(fixture->timeline);
	check_contains(fixture, "\nstacks: 1001 walked, 98.60 % whole, "
				"4 guessed in part\n"
				"             6  gap in unwind table  libbar.so\n"
				"             4  no unwind table      [anon]\n"
				"             4  table out of date    libfoo.so\n"
				"\n");
}

static void test_all_whole(void **state)
{
	Fixture *fixture = *state;

	check_contains(fixture, "\nstacks: none walked\n\n");
	add_switch_outs(fixture, WHOLE, 20001);
	check_contains(fixture, "\nstacks: 20001 walked, 100 % whole\n\n");
	/* Not even nearly all is all. */
	add_switch_outs(fixture, LOST, 1);
	check_contains(fixture, "\nstacks: 20002 walked, 99.99 % whole\n"
				"             1  stack lost  [unknown]\n");
}

static void test_frame_pointers(void **state)
{
	Fixture *fixture = *state;

	fixture->timeline->stacks.items[WHOLE].result = STACK_FRAME_POINTERS;
	fixture->timeline->stacks.items[WHOLE].tables_ns = 0;
	add_switch_outs(fixture, WHOLE, 5);
	check_contains(fixture, "stacks: 5 walked, 0.00 % whole, "
				"5 by frame pointers alone: may be short or wrong\n\n");
	hand_meta(fixture->timeline, "stacks", "fp");
	check_contains(fixture, "stacks: 5 walked by frame pointers, may be short or wrong\n\n");
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
	check_contains(fixture, "stacks: 5 walked, 60.00 % whole\n");
	intervals[0].flags = INTERVAL_OPEN_START;
	intervals[count - 1].flags = INTERVAL_OPEN_END;
	check_contains(fixture, "stacks: 3 walked, 100 % whole\n");
}

/* A thread that is woken as the window begins has the stack of a switch-out before the window. */
static void test_woken_at_the_start(void **state)
{
	Fixture *fixture = *state;

	interval(fixture, STATE_RUNNABLE, REASON_WOKEN, GAP);
	add_switch_outs(fixture, WHOLE, 3);
	check_contains(fixture, "stacks: 3 walked, 100 % whole\n");
}

/* One that was preempted then was switched out in the window. */
static void test_preempted_at_the_start(void **state)
{
	Fixture *fixture = *state;

	interval(fixture, STATE_RUNNABLE, REASON_PREEMPTED, GAP);
	add_switch_outs(fixture, WHOLE, 3);
	check_contains(fixture, "stacks: 4 walked, 75.00 % whole\n");
}

static void test_profile(void **state)
{
	Fixture *fixture = *state;
	char *text, *expected;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	Output *output = output_for_stream(stream);
	StackSums sums;
	Node *node;
	bool found = false;

	live_long(fixture, 2);
	assert_int_equal(firefox_write(output, fixture->timeline, fixture->frames, NULL), 0);
	output_close(output);
	fclose(stream);
	stack_sums_init(&sums, fixture->timeline, fixture->frames);
	assert_int_equal(sums.walked, all_of(&fixture->truth));
	expected = stack_sums_line(&sums);
	stack_sums_free(&sums);
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
		WITH_FIXTURE(test_profile),
		cmocka_unit_test(test_words_are_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
