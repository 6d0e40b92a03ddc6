/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Profiles of timelines made by hand are read back and held against the ledger:
 * what the viewer sums (weights) and what it paints.
 */
#include "firefox.h"
#include "hand_timeline.h"
#include "json_reader.h"
#include <errno.h>

#define MS NSEC_PER_MSEC

/* ---- a profile, read back --------------------------------------------------------- */

typedef struct Sample {
	uint64_t ns, weight_ns;
	const char *leaf;
	long long category;
} Sample;

typedef struct Profile {
	Node *root;
	const Node *meta, *threads, *shared, *strings;
	Sample **samples; /* by thread */
} Profile;

static const Node *column(const Node *table, const char *name)
{
	const Node *items = node_get(table, name);

	assert_int_equal(items->count, node_int(node_get(table, "length")));
	return items;
}

/* Every index of a column is inside the table it refers to; nulls are allowed or not. */
static void check_indexes(const Node *items, size_t count, bool nulls)
{
	for (size_t i = 0; i < items->count; i++) {
		if (node_at(items, i)->type == 'n')
			assert_true(nulls);
		else
			assert_in_range(node_int(node_at(items, i)), 0, count - 1);
	}
}

static size_t table_length(const Profile *profile, const char *name)
{
	return node_int(node_get(node_get(profile->shared, name), "length"));
}

static const Node *shared(const Profile *profile, const char *table, const char *name)
{
	return column(node_get(profile->shared, table), name);
}

static void check_shared(const Profile *profile)
{
	size_t strings = profile->strings->count, libs = node_get(profile->root, "libs")->count;
	size_t categories = node_get(profile->meta, "categories")->count;
	const Node *prefix = shared(profile, "stackTable", "prefix");

	check_indexes(shared(profile, "stackTable", "frame"), table_length(profile, "frameTable"),
		      false);
	for (size_t i = 0; i < prefix->count; i++)
		if (node_at(prefix, i)->type != 'n')
			assert_true(node_int(node_at(prefix, i)) < (long long)i);
	check_indexes(shared(profile, "frameTable", "func"), table_length(profile, "funcTable"),
		      false);
	check_indexes(shared(profile, "frameTable", "category"), categories, false);
	check_indexes(shared(profile, "frameTable", "nativeSymbol"),
		      table_length(profile, "nativeSymbols"), true);
	check_indexes(shared(profile, "funcTable", "name"), strings, false);
	check_indexes(shared(profile, "funcTable", "source"), table_length(profile, "sources"),
		      true);
	check_indexes(shared(profile, "resourceTable", "name"), strings, false);
	check_indexes(shared(profile, "resourceTable", "lib"), libs, true);
	check_indexes(shared(profile, "nativeSymbols", "libIndex"), libs, false);
	check_indexes(shared(profile, "sources", "filename"), strings, false);
	for (size_t i = 0; i < strings; i++)
		for (size_t k = 0; strings < 1000 && k < i; k++)
			assert_string_not_equal(node_string(node_at(profile->strings, i)),
						node_string(node_at(profile->strings, k)));
}

static const Node *thread_at(const Profile *profile, size_t i)
{
	return node_at(profile->threads, i);
}

static size_t thread_count(const Profile *profile)
{
	return profile->threads->count;
}

static void check_thread(const Profile *profile, const Node *thread)
{
	const Node *samples = node_get(thread, "samples"), *markers = node_get(thread, "markers");
	const Node *time = column(samples, "time"), *phase = column(markers, "phase");

	assert_string_equal(node_string(node_get(samples, "weightType")), "tracing-ms");
	check_indexes(column(samples, "stack"), table_length(profile, "stackTable"), false);
	column(samples, "weight");
	for (size_t i = 1; i < time->count; i++)
		assert_true(node_ns(node_at(time, i - 1)) <= node_ns(node_at(time, i)));
	check_indexes(column(markers, "name"), profile->strings->count, false);
	check_indexes(column(markers, "category"), node_get(profile->meta, "categories")->count,
		      false);
	for (size_t i = 0; i < phase->count; i++) {
		uint64_t start = node_ns(node_at(column(markers, "startTime"), i));
		uint64_t end = node_ns(node_at(column(markers, "endTime"), i));

		assert_in_range(node_int(node_at(phase, i)), 0, 1);
		assert_true(node_int(node_at(phase, i)) == 1 ? end >= start : end == 0);
		assert_non_null(node_find(node_at(column(markers, "data"), i), "type"));
	}
	for (size_t i = 0; i < thread_count(profile); i++) {
		const Node *other = thread_at(profile, i);

		assert_true(other == thread || strcmp(node_get(other, "tid")->text,
						      node_get(thread, "tid")->text) != 0);
	}
}

static const char *string_at(const Profile *profile, const Node *items, size_t i)
{
	return node_string(node_at(profile->strings, node_int(node_at(items, i))));
}

static size_t sample_count(const Node *thread)
{
	return node_int(node_get(node_get(thread, "samples"), "length"));
}

static Sample *read_samples(const Profile *profile, const Node *thread)
{
	const Node *samples = node_get(thread, "samples");
	const Node *stacks = column(samples, "stack"), *times = column(samples, "time");
	const Node *weights = column(samples, "weight");
	const Node *frames = shared(profile, "stackTable", "frame");
	const Node *funcs = shared(profile, "frameTable", "func");
	const Node *categories = shared(profile, "frameTable", "category");
	const Node *names = shared(profile, "funcTable", "name");
	Sample *list = xcalloc(sample_count(thread), sizeof(*list));

	for (size_t i = 0; i < sample_count(thread); i++) {
		size_t frame = node_int(node_at(frames, node_int(node_at(stacks, i))));

		list[i] = (Sample){
			.ns = node_ns(node_at(times, i)),
			.weight_ns = node_ns(node_at(weights, i)),
			.leaf = string_at(profile, names, node_int(node_at(funcs, frame))),
			.category = node_int(node_at(categories, frame)),
		};
	}
	return list;
}

static Profile write_and_read(const Timeline *timeline, Frames *frames,
			      const FirefoxOptions *options)
{
	char *text;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	Output *output = output_for_stream(stream);
	Profile profile;

	assert_int_equal(firefox_write(output, timeline, frames, options), 0);
	assert_int_equal(output_close(output), 0);
	fclose(stream);
	profile.root = node_read(text);
	free(text);
	profile.meta = node_get(profile.root, "meta");
	profile.threads = node_get(profile.root, "threads");
	profile.shared = node_get(profile.root, "shared");
	profile.strings = node_get(profile.shared, "stringArray");
	check_shared(&profile);
	profile.samples = xcalloc(thread_count(&profile), sizeof(*profile.samples));
	for (size_t i = 0; i < thread_count(&profile); i++) {
		check_thread(&profile, thread_at(&profile, i));
		profile.samples[i] = read_samples(&profile, thread_at(&profile, i));
	}
	return profile;
}

/* The profile of a timeline without names for its stacks. */
static Profile make_profile(const Timeline *timeline, const FirefoxOptions *options)
{
	Frames *frames = frames_new();
	Profile profile = write_and_read(timeline, frames, options);

	frames_free(frames);
	return profile;
}

static Sample sample_at(const Profile *profile, const Node *thread, size_t i)
{
	return profile->samples[thread - profile->threads->items][i];
}

static size_t total_samples(const Profile *profile)
{
	size_t count = 0;

	for (size_t i = 0; i < thread_count(profile); i++)
		count += sample_count(thread_at(profile, i));
	return count;
}

static enum thread_state state_of(const Sample *sample)
{
	switch (sample->category) {
	case CATEGORY_USER:
	case CATEGORY_KERNEL:
		return STATE_RUNNING;
	case CATEGORY_RUNNABLE:
		return STATE_RUNNABLE;
	case CATEGORY_UNKNOWN:
		return STATE_UNKNOWN;
	default:
		return STATE_BLOCKED;
	}
}

static void sum_weights(const Profile *profile, const Node *thread, uint64_t sums[STATE_COUNT])
{
	for (size_t i = 0; i < sample_count(thread); i++) {
		Sample sample = sample_at(profile, thread, i);

		sums[state_of(&sample)] += sample.weight_ns;
	}
}

/* As the viewer paints: each sample from the middle to its neighbours; in half ns. */
static void sum_paint(const Profile *profile, const Node *thread, uint64_t born, uint64_t died,
		      uint64_t sums[STATE_COUNT])
{
	uint64_t left = 2 * born, count = sample_count(thread);

	for (size_t i = 0; i < count; i++) {
		Sample sample = sample_at(profile, thread, i);
		uint64_t right =
			i + 1 < count ? sample.ns + sample_at(profile, thread, i + 1).ns : 2 * died;

		sums[state_of(&sample)] += right - left;
		left = right;
	}
}

static const Node *find_thread(const Profile *profile, const char *tid)
{
	for (size_t i = 0; i < thread_count(profile); i++)
		if (strcmp(node_get(thread_at(profile, i), "tid")->text, tid) == 0)
			return thread_at(profile, i);
	fail_msg("no thread %s", tid);
	return NULL;
}

static const Node *thread_of(const Profile *profile, const Thread *thread)
{
	char tid[16];

	snprintf(tid, sizeof(tid), "%u", thread->ns_tid);
	return find_thread(profile, tid);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Weights are the ledger to the nanosecond, per state. */
static void check_weights(const Profile *profile, const Timeline *timeline)
{
	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];
		uint64_t sums[STATE_COUNT] = {};

		sum_weights(profile, thread_of(profile, thread), sums);
		for (size_t s = 0; s < STATE_COUNT; s++)
			assert_int_equal(sums[s], thread->ledger[s]);
	}
}

/* The strip is the ledger: off by half a microsecond at most at each change of state. */
static void check_paint(const Profile *profile, const Timeline *timeline)
{
	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];
		uint64_t sums[STATE_COUNT] = {};

		sum_paint(profile, thread_of(profile, thread),
			  thread->start_ns - timeline->start_ns,
			  thread->end_ns - timeline->start_ns, sums);
		for (size_t s = 0; s < STATE_COUNT; s++)
			assert_true(distance(sums[s] / 2, thread->ledger[s]) <=
				    thread->intervals.count * 500);
	}
}

/* ---- timelines ---------------------------------------------------------------------- */

static uint64_t random_below(uint64_t limit)
{
	return (((uint64_t)random() << 31) ^ random()) % limit;
}

/* From nanoseconds to most of a second, all sizes alike. */
static uint64_t random_duration(void)
{
	return random_below(1ULL << (1 + random_below(29))) + 1;
}

static void fill_thread(Timeline *t, uint32_t thread, uint64_t start, uint64_t end,
			uint64_t tick_ns, uint64_t scale)
{
	static const enum reason waits[] = {REASON_MUTEX, REASON_DISK_READ, REASON_SLEEP,
					    REASON_NETWORK_RECEIVE, REASON_IDLE_POLL};
	uint64_t next_tick = start + (tick_ns ? random_below(tick_ns) : 0);
	enum thread_state state = STATE_RUNNABLE;

	for (uint64_t ns = start; ns < end;) {
		uint64_t next = MIN(ns + random_duration() / scale + 1, end);
		Interval *interval = hand_interval(t, thread, ns, state,
						   state == STATE_BLOCKED ? waits[random_below(5)]
						   : state == STATE_RUNNABLE ? REASON_WOKEN
						   : state == STATE_UNKNOWN  ? REASON_LOST
									     : REASON_NONE);
		if (state != STATE_UNKNOWN && random_below(2))
			interval->user_stack = random_below(t->stacks.count);
		for (; tick_ns && next_tick < next; next_tick += tick_ns) {
			if (state != STATE_RUNNING || next_tick < ns)
				continue;
			Tick *tick = hand_tick(t, thread, next_tick, random_below(2));
			tick->user_stack = random_below(t->stacks.count);
		}
		state = state == STATE_RUNNING ? (random_below(9) ? STATE_BLOCKED : STATE_UNKNOWN)
			: state == STATE_RUNNABLE ? STATE_RUNNING
						  : STATE_RUNNABLE;
		ns = next;
	}
}

/* Threads with and without ticks; scale divides the length of intervals. */
static Timeline *random_timeline(unsigned int seed, uint64_t window, uint64_t scale)
{
	Timeline *t = hand_new(window);
	uint32_t process;

	srandom(seed);
	for (size_t i = 0; i < 20; i++)
		hand_stack(t, 0x400000 + 16 * i, true);
	process = hand_process(t, 100, "app", 0, window);
	for (size_t i = 0; i < 6; i++) {
		uint64_t start = i == 0 ? 0 : random_below(window / 2);
		uint64_t end = i < 2 ? window : start + 1 + random_below(window - start);
		uint32_t thread = hand_thread(t, process, 100 + i, "worker", start, end);

		fill_thread(t, thread, start, end, i % 3 == 2 ? 0 : MS, scale);
	}
	hand_finish(t);
	return t;
}

static void profile_free(Profile *profile)
{
	for (size_t i = 0; i < thread_count(profile); i++)
		free(profile->samples[i]);
	free(profile->samples);
	node_free(profile->root);
}

static void done(Profile *profile, Timeline *timeline)
{
	profile_free(profile);
	timeline_free(timeline);
}

/* ---- rows --------------------------------------------------------------------------- */

static void test_weights_and_paint_are_the_ledger(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 20; seed++) {
		Timeline *t = random_timeline(seed, 2000 * MS, 1);
		Profile profile = make_profile(t, NULL);

		check_weights(&profile, t);
		check_paint(&profile, t);
		done(&profile, t);
	}
}

static void test_tiny_intervals(void **state)
{
	Timeline *t = hand_new(1000);
	uint32_t process = hand_process(t, 1, "tiny", 0, 1000);
	uint32_t thread = hand_thread(t, process, 1, "tiny", 0, 1000);
	static const uint64_t starts[] = {0, 1, 3, 6, 6, 10, 500, 999};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(starts); i++)
		hand_interval(t, thread, starts[i], i % 2 ? STATE_RUNNING : STATE_BLOCKED,
			      REASON_MUTEX);
	hand_tick(t, thread, 2, true);
	hand_tick(t, thread, 999, true);
	hand_finish(t);
	Profile profile = make_profile(t, NULL);
	check_weights(&profile, t);
	done(&profile, t);
}

/* A row lies in any 5 % of a wait of 10 ms or more, and the first 0.5 us inside its ends. */
static void test_fillers(void **state)
{
	static const uint64_t lengths[] = {10 * MS, 10 * MS + 1, 17 * MS + 333, 100 * MS,
					   12345678901ULL};

	(void)state;
	srandom(5);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		uint64_t window = lengths[i] + 2 * MS, wait_end = MS + lengths[i];
		Timeline *t = hand_new(window);
		uint32_t thread =
			hand_thread(t, hand_process(t, 1, "a", 0, window), 1, "a", 0, window);

		hand_interval(t, thread, 0, STATE_RUNNING, REASON_NONE);
		hand_interval(t, thread, MS, STATE_BLOCKED, REASON_DISK_READ);
		hand_interval(t, thread, wait_end, STATE_RUNNING, REASON_NONE);
		hand_finish(t);
		Profile profile = make_profile(t, NULL);
		const Node *node = find_thread(&profile, "1");
		size_t rows = sample_count(node);
		assert_in_range(rows, 4 + 26, 4 + 102);
		assert_int_equal(sample_at(&profile, node, 2).ns, MS + 500);
		assert_int_equal(sample_at(&profile, node, rows - 3).ns, wait_end - 500);
		for (size_t k = 0; k < 500; k++) {
			uint64_t from = MS + random_below(lengths[i] - lengths[i] / 20);
			uint64_t to = from + lengths[i] / 20;
			bool found = false;

			for (size_t r = 0; r < rows && !found; r++)
				found = sample_at(&profile, node, r).ns >= from &&
					sample_at(&profile, node, r).ns <= to;
			assert_true(found);
		}
		done(&profile, t);
	}
}

/* A thread that was woken but not run waits on: the rows are as close all the way. */
static void test_fillers_until_it_runs(void **state)
{
	Timeline *t = hand_new(20 * MS);
	uint32_t thread = hand_thread(t, hand_process(t, 1, "a", 0, 20 * MS), 1, "a", 0, 20 * MS);
	size_t rows;

	(void)state;
	hand_interval(t, thread, 0, STATE_RUNNING, REASON_NONE);
	hand_interval(t, thread, 5 * MS, STATE_BLOCKED, REASON_SLEEP);
	hand_interval(t, thread, 14 * MS, STATE_RUNNABLE, REASON_WOKEN);
	hand_interval(t, thread, 15 * MS + 900000, STATE_RUNNING, REASON_NONE);
	hand_finish(t);
	Profile profile = make_profile(t, NULL);
	const Node *node = find_thread(&profile, "1");
	rows = sample_count(node);
	for (size_t i = 1; i + 2 < rows - 1; i++) {
		uint64_t gap =
			sample_at(&profile, node, i + 1).ns - sample_at(&profile, node, i).ns;

		assert_true(gap <= (10 * MS + 900000) / 20);
	}
	check_weights(&profile, t);
	check_paint(&profile, t);
	done(&profile, t);
}

/* A tick weighs the running time since the one before; the last has the rest; edges 0. */
static void test_tick_weights(void **state)
{
	Timeline *t = hand_new(10 * MS);
	uint32_t thread = hand_thread(t, hand_process(t, 1, "a", 0, 10 * MS), 1, "a", 0, 10 * MS);
	static const uint64_t expected[][2] = {
		{500, 0},
		{MS, MS},
		{2 * MS - 500, 0},
		{2 * MS + 500, 2 * MS},
		{6 * MS - 500, 2 * MS},
		{6 * MS + 500, 0},
		{8 * MS, 5 * MS},
		{10 * MS - 500, 0},
	};

	(void)state;
	hand_interval(t, thread, 0, STATE_RUNNING, REASON_NONE);
	hand_interval(t, thread, 2 * MS, STATE_BLOCKED, REASON_MUTEX);
	hand_interval(t, thread, 6 * MS, STATE_RUNNING, REASON_NONE);
	hand_tick(t, thread, MS, true);
	hand_tick(t, thread, 3 * MS, true); /* not running: not shown */
	hand_tick(t, thread, 8 * MS, false);
	hand_finish(t);
	Profile profile = make_profile(t, NULL);
	const Node *node = find_thread(&profile, "1");
	for (size_t i = 0, k = 0; i < sample_count(node); i++) {
		Sample sample = sample_at(&profile, node, i);

		if (sample.ns > 2 * MS + 500 && sample.ns < 6 * MS - 500)
			continue; /* the wait's fillers */
		assert_int_equal(sample.ns, expected[k][0]);
		if (state_of(&sample) == STATE_RUNNING) {
			assert_int_equal(sample.weight_ns, expected[k][1]);
			assert_int_equal(sample.category,
					 sample.ns < 6 * MS ? CATEGORY_USER : CATEGORY_KERNEL);
		}
		k++;
	}
	assert_string_equal(sample_at(&profile, node, sample_count(node) - 2).leaf, "[kernel]");
	done(&profile, t);
}

/* Ticks out of order, at the ends, outside of everything: no row out of order, sums exact. */
static void test_odd_ticks(void **state)
{
	static const uint64_t ticks[] = {3 * MS, MS, 0, 1, 4 * MS - 1, 4 * MS, 20 * MS, 2 * MS};
	Timeline *t = hand_new(10 * MS);
	uint32_t thread = hand_thread(t, hand_process(t, 1, "a", 0, 10 * MS), 1, "a", 0, 10 * MS);

	(void)state;
	hand_interval(t, thread, 0, STATE_RUNNING, REASON_NONE);
	hand_interval(t, thread, 4 * MS, STATE_BLOCKED, REASON_MUTEX);
	hand_interval(t, thread, 9 * MS, STATE_RUNNING, REASON_NONE);
	for (size_t i = 0; i < ARRAY_LEN(ticks); i++)
		hand_tick(t, thread, ticks[i], true);
	hand_finish(t);
	Profile profile = make_profile(t, NULL);
	check_weights(&profile, t);
	done(&profile, t);
}

/* ---- the budget --------------------------------------------------------------------- */

static uint64_t weight_of_leaf(const Profile *profile, const char *leaf, long long category)
{
	uint64_t sum = 0;

	for (size_t t = 0; t < thread_count(profile); t++) {
		for (size_t i = 0; i < sample_count(thread_at(profile, t)); i++) {
			Sample sample = sample_at(profile, thread_at(profile, t), i);

			if (sample.category == category && strcmp(sample.leaf, leaf) == 0)
				sum += sample.weight_ns;
		}
	}
	return sum;
}

static const Node *extra(const Profile *profile, const char *label)
{
	const Node *sections = node_get(profile->meta, "extra");

	for (size_t i = 0; i < sections->count; i++) {
		const Node *entries = node_get(node_at(sections, i), "entries");

		for (size_t k = 0; k < entries->count; k++)
			if (strcmp(node_string(node_get(node_at(entries, k), "label")), label) == 0)
				return node_get(node_at(entries, k), "value");
	}
	fail_msg("no \"%s\" in meta.extra", label);
	return NULL;
}

/* The strip of a thread with folded intervals is the ledger to 0.5 % or 1 ms. */
static void check_folded_paint(const Profile *profile, const Timeline *timeline)
{
	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];
		uint64_t sums[STATE_COUNT] = {};

		sum_paint(profile, thread_of(profile, thread),
			  thread->start_ns - timeline->start_ns,
			  thread->end_ns - timeline->start_ns, sums);
		for (size_t s = 0; s < STATE_COUNT; s++)
			assert_true(distance(sums[s] / 2, thread->ledger[s]) <=
				    MAX(thread->ledger[s] / 200, MS));
	}
}

static void test_budget(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 4; seed++) {
		Timeline *t = random_timeline(seed, 1000 * MS, 200);
		Profile all = make_profile(t, NULL);
		FirefoxOptions options = {.row_budget = total_samples(&all) / 3};
		Profile few = make_profile(t, &options);
		Sample sample;

		assert_true(total_samples(&few) <= options.row_budget);
		assert_true(total_samples(&few) >= options.row_budget / 4);
		check_weights(&few, t);
		check_folded_paint(&few, t);
		for (size_t i = 0; i < REASON_COUNT; i++)
			assert_int_equal(
				weight_of_leaf(&all, reason_info[i].leaf, reason_info[i].category),
				weight_of_leaf(&few, reason_info[i].leaf, reason_info[i].category));
		sample = sample_at(&all, thread_at(&all, 0), 0);
		assert_int_equal(weight_of_leaf(&all, sample.leaf, sample.category),
				 weight_of_leaf(&few, sample.leaf, sample.category));
		assert_int_equal(node_int(extra(&all, "intervals added up")), 0);
		assert_true(node_int(extra(&few, "intervals added up")) > 0);
		profile_free(&all);
		done(&few, t);
	}
}

/* Fillers go first; nothing is folded if that is enough, and long waits keep theirs. */
static void test_budget_takes_fillers_first(void **state)
{
	Timeline *t = hand_new(10000 * MS);
	uint32_t thread =
		hand_thread(t, hand_process(t, 1, "a", 0, 10000 * MS), 1, "a", 0, 10000 * MS);
	FirefoxOptions options = {.row_budget = 15000};

	(void)state;
	for (uint64_t ns = 0; ns < 10000 * MS; ns += 9 * MS)
		hand_interval(t, thread, ns, STATE_BLOCKED, ns % 2 ? REASON_MUTEX : REASON_SLEEP);
	hand_finish(t);
	Profile all = make_profile(t, NULL), few;
	options.row_budget = total_samples(&all) / 2;
	few = make_profile(t, &options);
	assert_true(total_samples(&few) <= options.row_budget);
	assert_int_equal(node_int(extra(&few, "intervals added up")), 0);
	assert_true(node_ns(extra(&few, "rows of short waits at least apart")) > MS);
	check_weights(&few, t);
	check_paint(&few, t);
	profile_free(&all);
	done(&few, t);
}

/* ---- tracks ------------------------------------------------------------------------- */

static void add_simple_thread(Timeline *t, uint32_t process, uint32_t tid, const char *name,
			      enum thread_state state, enum reason reason)
{
	uint64_t end = t->end_ns - t->start_ns;
	uint32_t thread = hand_thread(t, process, tid, name, 0, end);

	hand_interval(t, thread, 0, state, reason);
}

static void test_order_and_first_screen(void **state)
{
	Timeline *t = hand_new(100 * MS);
	uint32_t command = hand_process(t, 10, "command", 0, 100 * MS);
	uint32_t server = hand_process(t, 20, "server", 0, 100 * MS);
	static const char *const tids[] = {"10", "20", "23", "22", "21"};

	(void)state;
	add_simple_thread(t, command, 10, "command", STATE_BLOCKED, REASON_CHILD);
	t->command_thread = 0;
	add_simple_thread(t, server, 20, "server", STATE_BLOCKED, REASON_IDLE_POLL);
	add_simple_thread(t, server, 21, "idle", STATE_BLOCKED, REASON_CONDVAR);
	uint32_t half = hand_thread(t, server, 22, "half", 0, 100 * MS);
	hand_interval(t, half, 0, STATE_BLOCKED, REASON_SLEEP);
	hand_interval(t, half, 50 * MS, STATE_RUNNING, REASON_NONE);
	add_simple_thread(t, server, 23, "locked", STATE_BLOCKED, REASON_MUTEX);
	uint32_t crowd = hand_process(t, 30, "crowd", 0, 100 * MS);
	for (uint32_t i = 0; i < 20; i++)
		add_simple_thread(t, crowd, 30 + i, "crowd", STATE_BLOCKED, REASON_SLEEP);
	hand_finish(t);
	Profile profile = make_profile(t, NULL);
	for (size_t i = 0; i < ARRAY_LEN(tids); i++)
		assert_string_equal(node_get(thread_at(&profile, i), "tid")->text, tids[i]);
	size_t last = thread_count(&profile) - 1;
	assert_string_equal(node_string(node_get(thread_at(&profile, last), "pid")), "0");
	assert_int_equal(sample_count(thread_at(&profile, last)), 0);
	const Node *visible = node_get(profile.meta, "initialVisibleThreads");
	assert_int_equal(visible->count, 12 + 1);
	assert_int_equal(node_int(node_at(visible, 0)), 0);
	assert_int_equal(node_int(node_at(visible, visible->count - 1)), last);
	const Node *selected = node_get(profile.meta, "initialSelectedThreads");
	assert_int_equal(node_int(node_at(selected, 0)), 2);
	assert_int_equal(node_get(profile.meta, "keepProfileThreadOrder")->type, 't');
	done(&profile, t);
}

/* The command's main thread is shown even if twelve others are busier. */
static void test_main_thread_is_visible(void **state)
{
	Timeline *t = hand_new(100 * MS);
	uint32_t busy = hand_process(t, 20, "busy", 0, 100 * MS);

	(void)state;
	for (uint32_t i = 0; i < 14; i++)
		add_simple_thread(t, busy, 20 + i, "busy", STATE_RUNNING, REASON_NONE);
	t->command_thread = t->threads.count;
	add_simple_thread(t, hand_process(t, 10, "command", 0, 100 * MS), 10, "command",
			  STATE_BLOCKED, REASON_CHILD);
	hand_finish(t);
	Profile profile = make_profile(t, NULL);
	const Node *visible = node_get(profile.meta, "initialVisibleThreads");
	assert_int_equal(visible->count, 12 + 2);
	assert_int_equal(node_int(node_at(visible, 0)), 0);
	assert_string_equal(node_get(thread_at(&profile, 0), "tid")->text, "10");
	done(&profile, t);
}

static void add_short(Timeline *t, uint32_t pid, const char *name, uint64_t start, uint64_t end)
{
	uint32_t thread =
		hand_thread(t, hand_process(t, pid, name, start, end), pid, name, start, end);

	hand_interval(t, thread, start, STATE_RUNNING, REASON_NONE);
}

/* Three one after another and one that overlaps: two lanes; two of another name: none. */
static void test_short_processes_share_lanes(void **state)
{
	Timeline *t = hand_new(1000 * MS);
	uint64_t sums[STATE_COUNT] = {};

	(void)state;
	add_simple_thread(t, hand_process(t, 1, "make", 0, 1000 * MS), 1, "make", STATE_BLOCKED,
			  REASON_CHILD);
	t->command_thread = 0;
	add_short(t, 50, "cc1", 10 * MS, 15 * MS);
	add_short(t, 51, "cc1", 12 * MS, 17 * MS);
	add_short(t, 52, "cc1", 15 * MS, 20 * MS);
	add_short(t, 53, "cc1", 500 * MS, 505 * MS);
	add_short(t, 60, "as", 20 * MS, 21 * MS);
	add_short(t, 61, "as", 30 * MS, 31 * MS);
	hand_finish(t);
	Profile profile = make_profile(t, NULL);
	assert_int_equal(thread_count(&profile), 1 + 2 + 2 + 1);
	const Node *first = find_thread(&profile, "50"), *second = find_thread(&profile, "51");
	find_thread(&profile, "60");
	find_thread(&profile, "61");
	assert_string_equal(node_string(node_get(first, "processName")), "cc1 ×4");
	assert_string_equal(node_string(node_get(first, "name")), "cc1 ×4");
	assert_string_equal(node_string(node_get(second, "pid")), "50");
	assert_int_equal(node_get(second, "isMainThread")->type, 'f');
	sum_weights(&profile, first, sums);
	assert_int_equal(sums[STATE_RUNNING], 15 * MS);
	/* The gap is painted as nothing, from end to start. */
	memset(sums, 0, sizeof(sums));
	sum_paint(&profile, first, 10 * MS, 505 * MS, sums);
	assert_int_equal(sums[STATE_RUNNING] / 2, 15 * MS);
	size_t gap = 0;
	for (size_t i = 0; i < sample_count(first); i++) {
		Sample sample = sample_at(&profile, first, i);

		if (strcmp(sample.leaf, "[not alive]"))
			continue;
		gap++;
		assert_int_equal(sample.category, CATEGORY_IDLE);
		assert_int_equal(sample.weight_ns, 0);
	}
	assert_int_equal(gap, 2);
	done(&profile, t);
}

/* The same numbers again, and none at all in the recorder's namespace: ids stay unique. */
static void test_reused_ids(void **state)
{
	Timeline *t = hand_new(100 * MS);

	(void)state;
	add_short(t, 7, "old", 0, 40 * MS);
	add_short(t, 7, "new", 50 * MS, 90 * MS);
	add_short(t, 8, "host", 0, 100 * MS);
	t->threads.items[2].ns_tid = t->processes.items[2].ns_tgid = 0;
	hand_finish(t);
	Profile profile = make_profile(t, NULL);
	assert_int_equal(node_get(find_thread(&profile, "7"), "tid")->type, '0');
	assert_string_equal(node_string(node_get(find_thread(&profile, "7.1"), "pid")), "7.1");
	assert_string_equal(node_string(node_get(find_thread(&profile, "host 100008"), "pid")),
			    "host 100008");
	done(&profile, t);
}

/* ---- markers ------------------------------------------------------------------------ */

static size_t count_markers(const Profile *profile, const char *name)
{
	size_t count = 0;

	for (size_t t = 0; t < thread_count(profile); t++) {
		const Node *names = node_get(node_get(thread_at(profile, t), "markers"), "name");

		for (size_t i = 0; i < names->count; i++)
			count += strcmp(string_at(profile, names, i), name) == 0;
	}
	return count;
}

static void test_wait_marker(void **state)
{
	Timeline *t = hand_new(100 * MS);
	uint32_t process = hand_process(t, 1, "a", 0, 100 * MS);
	uint32_t thread = hand_thread(t, process, 1, "a", 0, 100 * MS);
	Interval *wait;

	(void)state;
	hand_interval(t, thread, 0, STATE_RUNNING, REASON_NONE);
	wait = hand_interval(t, thread, 10 * MS, STATE_BLOCKED, REASON_MUTEX);
	wait->rule = RULE_ARGUMENTS;
	wait->syscall = 202;
	wait->waker = 1;
	hand_interval(t, thread, 60 * MS, STATE_RUNNABLE, REASON_WOKEN);
	hand_interval(t, thread, 61 * MS + 250000, STATE_RUNNING, REASON_NONE);
	add_simple_thread(t, process, 2, "waker", STATE_RUNNING, REASON_NONE);
	hand_finish(t);
	Profile profile = make_profile(t, NULL);
	assert_int_equal(count_markers(&profile, "Mutex wait"), 1);
	const Node *markers = node_get(find_thread(&profile, "1"), "markers");
	const Node *data = node_at(node_get(markers, "data"), 0);
	assert_int_equal(node_ns(node_at(node_get(markers, "startTime"), 0)), 10 * MS);
	assert_int_equal(node_ns(node_at(node_get(markers, "endTime"), 0)), 60 * MS);
	assert_int_equal(node_int(node_at(node_get(markers, "category"), 0)), CATEGORY_LOCK);
	assert_int_equal(node_int(node_get(data, "waker")), 2);
	assert_int_equal(node_ns(node_get(data, "runq")), MS + 250000);
	assert_string_equal(
		node_string(node_at(profile.strings, node_int(node_get(data, "wokenBy")))),
		"waker");
	assert_string_equal(
		node_string(node_at(profile.strings, node_int(node_get(data, "evidence")))),
		"system call and arguments: futex");
	assert_in_range(node_int(node_get(node_get(data, "cause"), "stack")), 0,
			table_length(&profile, "stackTable") - 1);
	done(&profile, t);
}

static void test_marker_budget(void **state)
{
	Timeline *t = hand_new(1000 * MS);
	uint32_t thread =
		hand_thread(t, hand_process(t, 1, "a", 0, 1000 * MS), 1, "a", 0, 1000 * MS);
	FirefoxOptions options = {.marker_budget = 50};
	size_t shown;

	(void)state;
	for (uint64_t ns = 0, k = 1; ns < 1000 * MS; ns += k++ * 20000)
		hand_interval(t, thread, ns, k % 2 ? STATE_RUNNING : STATE_BLOCKED, REASON_MUTEX);
	hand_finish(t);
	Profile all = make_profile(t, NULL), few = make_profile(t, &options);
	/* Room enough: all but the very short. */
	assert_in_range(count_markers(&all, "Mutex wait"),
			t->threads.items[0].intervals.count / 2 - 1,
			t->threads.items[0].intervals.count / 2 + 1);
	shown = count_markers(&few, "Mutex wait");
	assert_in_range(shown, 1, 50);
	assert_int_equal(node_int(extra(&few, "waits with a marker")), shown);
	assert_int_equal(node_int(extra(&few, "waits without a marker")) + shown,
			 t->threads.items[0].intervals.count / 2);
	profile_free(&all);
	done(&few, t);
}

static void test_loss_and_exit_markers(void **state)
{
	Timeline *t = hand_new(100 * MS);
	const Node *markers;

	(void)state;
	add_short(t, 1, "gone", 0, 40 * MS);
	t->processes.items[0].exit_code = 11;
	t->processes.items[0].path = xstrdup("/bin/gone");
	*vec_push(&t->losses) = (LossSpan){REC_SWITCH, LOSS_RING_FULL,	     1,
					   17,	       HAND_START + 10 * MS, HAND_START + 30 * MS};
	*vec_push(&t->losses) = (LossSpan){999, 999, 0, 1, HAND_START - MS, HAND_START - MS};
	hand_finish(t);
	Profile profile = make_profile(t, NULL);
	markers = node_get(find_thread(&profile, "0"), "markers");
	assert_int_equal(count_markers(&profile, "Events lost"), 2);
	assert_int_equal(node_ns(node_at(node_get(markers, "startTime"), 0)), 10 * MS);
	assert_int_equal(node_ns(node_at(node_get(markers, "endTime"), 0)), 30 * MS);
	assert_int_equal(node_int(node_get(node_at(node_get(markers, "data"), 0), "count")), 17);
	markers = node_get(find_thread(&profile, "1"), "markers");
	assert_int_equal(node_ns(node_at(node_get(markers, "startTime"), 0)), 40 * MS);
	assert_string_equal(
		node_string(node_at(
			profile.strings,
			node_int(node_get(node_at(node_get(markers, "data"), 0), "status")))),
		"killed by signal 11");
	done(&profile, t);
}

/* ---- the rest ------------------------------------------------------------------------- */

static void test_empty(void **state)
{
	Timeline *t = hand_new(0);
	Profile profile = make_profile(t, NULL);

	(void)state;
	assert_int_equal(thread_count(&profile), 1);
	assert_int_equal(node_int(node_get(profile.meta, "preprocessedProfileVersion")), 65);
	done(&profile, t);
}

static void test_names_of_any_bytes(void **state)
{
	Timeline *t = hand_new(10 * MS);

	(void)state;
	hand_meta(t, "command", "/usr/bin/\xff\"x\" \x1b[31m");
	hand_meta(t, "frequency", "499");
	hand_meta(t, "cpus", "many");
	add_short(t, 1, "\xe2\x82 \\\n", 0, 10 * MS);
	hand_finish(t);
	Profile profile = make_profile(t, NULL);
	assert_string_equal(node_string(node_get(profile.meta, "product")),
			    "\xef\xbf\xbd\"x\" \x1b[31m (wallprof)");
	assert_null(node_find(profile.meta, "logicalCPUs"));
	assert_string_equal(node_get(profile.meta, "interval")->text, "2.004008");
	done(&profile, t);
}

static void test_cpu_graph(void **state)
{
	FirefoxOptions options = {.cpu_graph = true};

	(void)state;
	for (unsigned int seed = 1; seed <= 5; seed++) {
		Timeline *t = random_timeline(seed, 300 * MS, 1);
		Profile profile = make_profile(t, &options);

		for (size_t i = 0; i < t->threads.count; i++) {
			const Thread *thread = &t->threads.items[i];
			const Node *samples = node_get(thread_of(&profile, thread), "samples");
			const Node *deltas = column(samples, "threadCPUDelta");
			uint64_t sum = 0;

			for (size_t k = 0; k < deltas->count; k++)
				sum += node_int(node_at(deltas, k));
			assert_true(distance(sum, thread->ledger[STATE_RUNNING]) <= 500);
		}
		done(&profile, t);
	}
	Timeline *t = random_timeline(1, 10 * MS, 1);
	Profile profile = make_profile(t, NULL);
	assert_null(node_find(node_get(thread_at(&profile, 0), "samples"), "threadCPUDelta"));
	done(&profile, t);
}

static uint64_t counter_total(const Profile *profile, size_t i)
{
	const Node *samples = node_get(node_at(node_get(profile->root, "counters"), i), "samples");
	const Node *counts = column(samples, "count");
	uint64_t sum = 0;

	assert_int_equal(column(samples, "time")->count, counts->count);
	assert_int_equal(node_ns(node_at(counts, 0)), 0);
	for (size_t k = 1; k < counts->count; k++)
		sum += node_ns(node_at(counts, k));
	return sum;
}

static void test_cpu_counter(void **state)
{
	Timeline *t = random_timeline(3, 1234 * MS + 567, 1);
	Profile profile = make_profile(t, NULL);
	uint64_t running = 0;

	(void)state;
	for (size_t i = 0; i < t->threads.count; i++)
		running += t->threads.items[i].ledger[STATE_RUNNING];
	assert_int_equal(counter_total(&profile, 1), running);
	done(&profile, t);
}

static const char *lib_field(const Profile *profile, size_t i, const char *key)
{
	return node_string(node_get(node_at(node_get(profile->root, "libs"), i), key));
}

static void add_record(Frames *frames, struct record *record)
{
	frames_add(frames, record);
	free(record);
}

static struct record *new_record(enum record_kind kind, size_t fixed, const void *tail, size_t size)
{
	struct record *record = xcalloc(1, (fixed + size + 7) & ~7UL);

	record->kind = kind;
	record->len = (fixed + size + 7) & ~7UL;
	memcpy((char *)record + fixed, tail, size);
	return record;
}

static void add_file(Frames *frames, uint32_t id, const char *path, uint64_t start)
{
	static const uint8_t build_id[] = {0x51, 0x0d, 0x0a, 0x5c, 0x19, 0xea, 0xdf,
					   0x80, 0x43, 0xf2, 0x03, 0xb4, 0x52, 0x5b,
					   0xe9, 0xbe, 0x3d, 0xcb, 0x95, 0x54};
	struct rec_file *file = (struct rec_file *)new_record(
		REC_FILE, offsetof(struct rec_file, path), path, strlen(path) + 1);
	struct rec_mapping *mapping =
		(struct rec_mapping *)new_record(REC_MAPPING, sizeof(struct rec_mapping), "", 0);

	file->id = id;
	if (id == 1) {
		file->build_id_len = sizeof(build_id);
		memcpy(file->build_id, build_id, sizeof(build_id));
	}
	mapping->h.flags = MAPPING_EXEC | MAPPING_INITIAL;
	mapping->ns_tgid = 1;
	mapping->file = id;
	mapping->start = start;
	mapping->end = start + 0x10000;
	mapping->bias = start;
	add_record(frames, &file->h);
	add_record(frames, &mapping->h);
}

/* function() at 0x1000 with inlined() in it, both in source.c. */
static void add_symbol(Frames *frames, uint32_t file, uint64_t address)
{
	static const char text[] =
		"\x0a\0\0\0function\0/src/source.c\0\x14\0\0\0inlined\0/src/source.c";
	struct rec_symbol *symbol = (struct rec_symbol *)new_record(
		REC_SYMBOL, offsetof(struct rec_symbol, text), text, sizeof(text));

	symbol->file = file;
	symbol->count = 2;
	symbol->address = address;
	symbol->function = 0x1000;
	symbol->function_size = 0x100;
	add_record(frames, &symbol->h);
}

static void test_symbols_and_libraries(void **state)
{
	Timeline *t = hand_new(10 * MS);
	Frames *frames = frames_new();
	uint32_t thread = hand_thread(t, hand_process(t, 1, "a", 0, 10 * MS), 1, "a", 0, 10 * MS);

	(void)state;
	add_file(frames, 1, "/lib/one.so", 0x7f0000000000);
	add_file(frames, 2, "/a/two.so", 0x7f0000100000);
	add_file(frames, 3, "/b/two.so", 0x7f0000200000);
	add_symbol(frames, 1, 0x1010);
	hand_interval(t, thread, 0, STATE_RUNNING, REASON_NONE);
	hand_tick(t, thread, 1 * MS, true)->user_stack = hand_stack(t, 0x7f0000001010, true);
	hand_tick(t, thread, 2 * MS, true)->user_stack = hand_stack(t, 0x7f0000100004, true);
	hand_tick(t, thread, 3 * MS, true)->user_stack = hand_stack(t, 0x7f0000200004, true);
	hand_finish(t);
	Profile profile = write_and_read(t, frames, NULL);

	assert_int_equal(node_get(profile.root, "libs")->count, 3);
	assert_string_equal(lib_field(&profile, 0, "breakpadId"),
			    "5C0A0D51EA1980DF43F203B4525BE9BE0");
	assert_string_equal(lib_field(&profile, 0, "codeId"),
			    "510d0a5c19eadf8043f203b4525be9be3dcb9554");
	assert_string_equal(lib_field(&profile, 1, "debugName"), "two.so");
	assert_string_equal(lib_field(&profile, 2, "debugName"), "two.so");
	assert_string_not_equal(lib_field(&profile, 1, "breakpadId"),
				lib_field(&profile, 2, "breakpadId"));
	/* Both frames of the address have its native symbol, that of the outer function. */
	assert_int_equal(table_length(&profile, "nativeSymbols"), 1);
	assert_string_equal(string_at(&profile, shared(&profile, "nativeSymbols", "name"), 0),
			    "function");
	assert_int_equal(node_int(node_at(shared(&profile, "nativeSymbols", "address"), 0)),
			 0x1000);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(
			node_int(node_at(shared(&profile, "frameTable", "nativeSymbol"), i)), 0);
		assert_int_equal(
			node_int(node_at(shared(&profile, "frameTable", "inlineDepth"), i)), i);
		assert_int_equal(node_int(node_at(shared(&profile, "frameTable", "address"), i)),
				 0x1010);
		assert_int_equal(node_int(node_at(shared(&profile, "frameTable", "line"), i)),
				 10 + 10 * i);
	}
	assert_int_equal(table_length(&profile, "sources"), 1);
	assert_string_equal(sample_at(&profile, thread_at(&profile, 0), 1).leaf, "inlined");
	frames_free(frames);
	done(&profile, t);
}

static void test_output_error_is_returned(void **state)
{
	Timeline *t = random_timeline(1, 300 * MS, 10);
	Frames *frames = frames_new();
	Output *output;

	(void)state;
	assert_int_equal(output_open("/dev/full", &output), 0);
	assert_int_equal(firefox_write(output, t, frames, NULL), -ENOSPC);
	output_discard(output);
	frames_free(frames);
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_weights_and_paint_are_the_ledger),
		cmocka_unit_test(test_tiny_intervals),
		cmocka_unit_test(test_fillers),
		cmocka_unit_test(test_fillers_until_it_runs),
		cmocka_unit_test(test_tick_weights),
		cmocka_unit_test(test_odd_ticks),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_budget_takes_fillers_first),
		cmocka_unit_test(test_order_and_first_screen),
		cmocka_unit_test(test_main_thread_is_visible),
		cmocka_unit_test(test_short_processes_share_lanes),
		cmocka_unit_test(test_reused_ids),
		cmocka_unit_test(test_wait_marker),
		cmocka_unit_test(test_marker_budget),
		cmocka_unit_test(test_loss_and_exit_markers),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_names_of_any_bytes),
		cmocka_unit_test(test_cpu_graph),
		cmocka_unit_test(test_cpu_counter),
		cmocka_unit_test(test_symbols_and_libraries),
		cmocka_unit_test(test_output_error_is_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
