/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows of timelines made by hand are held against the ledger: what the viewer sums
 * (weights) and what it paints.
 */
#include "profile_reader.h"
#include "random_timeline.h"
#include "sample_rows.h"
#include "test_tools.h"
#include "wait_fields.h"

/* ---- rows --------------------------------------------------------------------------- */

static size_t total_samples(const Profile *profile)
{
	size_t count = 0;

	for (size_t i = 0; i < thread_count(profile); i++)
		count += sample_count(thread_at(profile, i));
	return count;
}

/* Weights are the ledger to the nanosecond, per state. */
static void check_weights(const Profile *profile, const Timeline *timeline)
{
	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];
		Sums sums = sum_weights(profile, thread_of(profile, thread));

		for (size_t s = 0; s < STATE_COUNT; s++)
			assert_int_equal(sums.states[s], thread->ledger[s]);
	}
}

static void check_paint_to(const Profile *profile, const Timeline *timeline, bool exact)
{
	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];
		const Node *node = thread_of(profile, thread);
		Sums weights = sum_weights(profile, node);
		Sums paint = sum_paint(profile, node, thread->start_ns - timeline->start_ns,
				       thread->end_ns - timeline->start_ns);

		for (size_t s = 0; s < STATE_COUNT; s++)
			assert_true(distance(paint.states[s], 2 * thread->ledger[s]) <=
				    (exact ? 0 : 2 * MAX(thread->ledger[s] / 200, MS)));
		assert_true(distance(paint.user, 2 * weights.user) <=
			    (exact ? 0 : 2 * MAX(weights.user / 200, MS)));
		assert_true(distance(paint.kernel, 2 * weights.kernel) <=
			    (exact ? 0 : 2 * MAX(weights.kernel / 200, MS)));
	}
}

/* The track has the time by state of the ledger, and running by mode that of the weights; to the
 * nanosecond. */
static void check_paint(const Profile *profile, const Timeline *timeline)
{
	check_paint_to(profile, timeline, /* exact= */ true);
}

/* The same with folded intervals: to 0.5 % or 1 ms. */
static void check_folded_paint(const Profile *profile, const Timeline *timeline)
{
	check_paint_to(profile, timeline, /* exact= */ false);
}

static uint64_t weight_of_leaf(const Profile *profile, const char *leaf, long long category)
{
	uint64_t sum = 0;

	for (size_t t = 0; t < thread_count(profile); t++) {
		const Node *thread = thread_at(profile, t);

		for (size_t i = 0, count = sample_count(thread); i < count; i++) {
			Sample sample = sample_at(profile, thread, i);

			if (sample.category == category && strcmp(sample.leaf, leaf) == 0)
				sum += sample.weight_ns;
		}
	}
	return sum;
}

static void test_weights_and_paint_are_the_ledger(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 20; seed++) {
		Timeline *t = random_timeline(seed, 2000 * MS, 1);
		Profile profile = make_profile(t, NULL);

		check_weights(&profile, t);
		check_paint(&profile, t);
		profile_done(&profile, t);
	}
}

static void test_tiny_intervals(void **state)
{
	Timeline *t = fixture_new(1000);
	uint32_t process = fixture_process(t, 1, "tiny", 0, 1000);
	uint32_t thread = fixture_thread(t, process, 1, "tiny", 0, 1000);
	static const uint64_t starts[] = {0, 1, 3, 6, 6, 10, 500, 999};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(starts); i++)
		fixture_interval(t, thread, starts[i], i % 2 ? STATE_RUNNING : STATE_BLOCKED,
				 REASON_MUTEX);
	fixture_tick(t, thread, 2, true);
	fixture_tick(t, thread, 999, true);
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	check_weights(&profile, t);
	profile_done(&profile, t);
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
		Timeline *t = fixture_new(window);
		uint32_t thread =
			fixture_thread(t, fixture_process(t, 1, "a", 0, window), 1, "a", 0, window);

		fixture_interval(t, thread, 0, STATE_RUNNING, REASON_NONE);
		fixture_interval(t, thread, MS, STATE_BLOCKED, REASON_DISK_READ);
		fixture_interval(t, thread, wait_end, STATE_RUNNING, REASON_NONE);
		fixture_finish(t);
		Profile profile = make_profile(t, NULL);
		const Node *node = find_thread(&profile, "1");
		size_t rows = sample_count(node);
		assert_uint_in_range(rows, 4 + 26, 4 + 102);
		assert_int_equal(sample_at(&profile, node, 2).ns, MS + 500);
		assert_int_equal(sample_at(&profile, node, rows - 3).ns, wait_end - 500);
		for (size_t k = 0; k < 500; k++) {
			uint64_t from = MS + random_number(lengths[i] - lengths[i] / 20);
			uint64_t to = from + lengths[i] / 20;
			bool found = false;

			for (size_t r = 0; r < rows && !found; r++)
				found = sample_at(&profile, node, r).ns >= from &&
					sample_at(&profile, node, r).ns <= to;
			assert_true(found);
		}
		profile_done(&profile, t);
	}
}

/* A thread that was woken but not run waits on: the rows are as close all the way. */
static void test_fillers_until_it_runs(void **state)
{
	Timeline *t = fixture_new(20 * MS);
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 1, "a", 0, 20 * MS), 1, "a", 0, 20 * MS);
	size_t rows;

	(void)state;
	fixture_interval(t, thread, 0, STATE_RUNNING, REASON_NONE);
	fixture_interval(t, thread, 5 * MS, STATE_BLOCKED, REASON_SLEEP);
	fixture_interval(t, thread, 14 * MS, STATE_RUNNABLE, REASON_WOKEN);
	fixture_interval(t, thread, 15 * MS + 900000, STATE_RUNNING, REASON_NONE);
	fixture_finish(t);
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
	profile_done(&profile, t);
}

/* A running row of test_tick_weights. */
typedef struct RunningRow {
	uint64_t ns, weight_ns;
	enum category category;
} RunningRow;

/*
 * A tick weighs the running time since the one before, and that is what has its colour: from
 * the first tick on all is kernel, for the next one is. The last has the rest; edges weigh 0.
 */
static void test_tick_weights(void **state)
{
	static const RunningRow expected[] = {
		{500, 0, CATEGORY_USER},
		{MS - 500, MS, CATEGORY_USER},
		{MS - 500, 0, CATEGORY_USER},
		{MS + 500, 0, CATEGORY_KERNEL},
		{2 * MS - 500, 0, CATEGORY_KERNEL},
		{6 * MS + 500, 0, CATEGORY_KERNEL},
		{8 * MS, 5 * MS, CATEGORY_KERNEL},
		{10 * MS - 500, 0, CATEGORY_KERNEL},
	};
	Timeline *t = fixture_new(10 * MS);
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 1, "a", 0, 10 * MS), 1, "a", 0, 10 * MS);
	size_t found = 0;

	(void)state;
	fixture_interval(t, thread, 0, STATE_RUNNING, REASON_NONE);
	fixture_interval(t, thread, 2 * MS, STATE_BLOCKED, REASON_MUTEX);
	fixture_interval(t, thread, 6 * MS, STATE_RUNNING, REASON_NONE);
	fixture_tick(t, thread, MS, true);
	fixture_tick(t, thread, 8 * MS, false);
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	const Node *node = find_thread(&profile, "1");
	for (size_t i = 0; i < sample_count(node); i++) {
		Sample sample = sample_at(&profile, node, i);

		if (state_of(&sample) != STATE_RUNNING)
			continue;
		assert_true(found < ARRAY_LEN(expected));
		assert_int_equal(sample.ns, expected[found].ns);
		assert_int_equal(sample.weight_ns, expected[found].weight_ns);
		assert_int_equal(sample.category, expected[found].category);
		found++;
	}
	assert_int_equal(found, ARRAY_LEN(expected));
	check_paint(&profile, t);
	assert_string_equal(sample_at(&profile, node, sample_count(node) - 2).leaf, "[kernel]");
	profile_done(&profile, t);
}

/* Short runs in the kernel, of which a tick hits one in a hundred, are not user code. */
static void test_runs_between_ticks(void **state)
{
	Timeline *t = fixture_new(100 * MS);
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 1, "a", 0, 100 * MS), 1, "a", 0, 100 * MS);
	uint32_t left = fixture_stack(t, 0x401000, true);

	(void)state;
	for (uint64_t ns = 0; ns < 100 * MS; ns += 20000) {
		Interval *run = fixture_interval(t, thread, ns, STATE_RUNNING, REASON_NONE);

		run->user_stack = left;
		fixture_interval(t, thread, ns + 10000, STATE_BLOCKED, REASON_DISK_READ);
		if (ns % (2 * MS) == 0)
			fixture_tick(t, thread, ns + 5000, ns == 40 * MS);
	}
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	Sums sums = sum_paint(&profile, find_thread(&profile, "1"), 0, 100 * MS);
	assert_int_equal(sums.kernel / 2, 49 * MS);
	assert_int_equal(sums.user / 2, MS);
	check_paint(&profile, t);
	profile_done(&profile, t);
}

/* Without any tick the user frames of the switch-outs are all that is known. */
static void test_thread_without_ticks(void **state)
{
	Timeline *t = fixture_new(10 * MS);
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 1, "a", 0, 10 * MS), 1, "a", 0, 10 * MS);

	(void)state;
	fixture_interval(t, thread, 0, STATE_RUNNING, REASON_NONE)->user_stack =
		fixture_stack(t, 0x401000, true);
	fixture_interval(t, thread, 5 * MS, STATE_BLOCKED, REASON_MUTEX);
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	assert_string_equal(sample_at(&profile, find_thread(&profile, "1"), 0).leaf, "0x401000");
	assert_int_equal(sum_weights(&profile, find_thread(&profile, "1")).user, 5 * MS);
	check_paint(&profile, t);
	profile_done(&profile, t);
}

/* Many intervals of 50 ns to 20 us: borders do not move, so errors do not add up. */
static void test_short_intervals(void **state)
{
	static const enum thread_state states[] = {STATE_RUNNABLE, STATE_RUNNING, STATE_BLOCKED};
	Timeline *t = fixture_new(2000 * MS);
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 1, "a", 0, 2000 * MS), 1, "a", 0, 2000 * MS);
	uint64_t ns = 0, next_tick = 0;

	(void)state;
	srandom(7);
	for (size_t i = 0; i < 100000; i++) {
		static const uint64_t limits[] = {300, 5000, 20000};
		uint64_t end = ns + 50 + random_number(limits[i % 3]);

		fixture_interval(t, thread, ns, states[i % 3],
				 i % 3 == 0   ? REASON_WOKEN
				 : i % 3 == 1 ? REASON_NONE
					      : REASON_PIPE_READ);
		for (; next_tick < end; next_tick += MS)
			if (i % 3 == 1 && next_tick >= ns)
				fixture_tick(t, thread, next_tick, random_number(3) == 0);
		ns = end;
	}
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	check_weights(&profile, t);
	check_paint(&profile, t);
	profile_free(&profile);
	profile = make_profile(t, &(FirefoxOptions){.row_budget = 20000});
	assert_true(total_samples(&profile) <= 20000);
	check_weights(&profile, t);
	check_folded_paint(&profile, t);
	profile_done(&profile, t);
}

/* Ticks out of order, at the ends, outside of everything: no row out of order, sums exact. */
static void test_odd_ticks(void **state)
{
	static const uint64_t ticks[] = {3 * MS, MS, 0, 1, 4 * MS - 1, 4 * MS, 20 * MS, 2 * MS};
	Timeline *t = fixture_new(10 * MS);
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 1, "a", 0, 10 * MS), 1, "a", 0, 10 * MS);

	(void)state;
	fixture_interval(t, thread, 0, STATE_RUNNING, REASON_NONE);
	fixture_interval(t, thread, 4 * MS, STATE_BLOCKED, REASON_MUTEX);
	fixture_interval(t, thread, 9 * MS, STATE_RUNNING, REASON_NONE);
	for (size_t i = 0; i < ARRAY_LEN(ticks); i++)
		fixture_tick(t, thread, ticks[i], true);
	fixture_finish(t);
	Profile profile = make_profile(t, NULL);
	check_weights(&profile, t);
	profile_done(&profile, t);
}

/* ---- the budget --------------------------------------------------------------------- */

static void test_budget(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 2; seed++) {
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
		assert_int_equal(node_int(profile_extra(&all, "intervals added up")), 0);
		assert_true(node_int(profile_extra(&few, "intervals added up")) > 0);
		profile_free(&all);
		profile_done(&few, t);
	}
}

/* Fillers go first; nothing is folded if that is enough, and long waits keep theirs. */
static void test_budget_takes_fillers_first(void **state)
{
	Timeline *t = fixture_new(10000 * MS);
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 1, "a", 0, 10000 * MS), 1, "a", 0, 10000 * MS);
	FirefoxOptions options = {.row_budget = 15000};

	(void)state;
	for (uint64_t ns = 0; ns < 10000 * MS; ns += 9 * MS)
		fixture_interval(t, thread, ns, STATE_BLOCKED,
				 ns % 2 ? REASON_MUTEX : REASON_SLEEP);
	fixture_finish(t);
	Profile all = make_profile(t, NULL), few;
	options.row_budget = total_samples(&all) / 2;
	few = make_profile(t, &options);
	assert_true(total_samples(&few) <= options.row_budget);
	assert_int_equal(node_int(profile_extra(&few, "intervals added up")), 0);
	assert_true(node_ns(profile_extra(&few, "rows of short waits at least apart")) > MS);
	check_weights(&few, t);
	check_paint(&few, t);
	profile_free(&all);
	profile_done(&few, t);
}

/* A woken thread has the stack of when it went to sleep: mappings may have changed since. */
static void test_when_stacks_were_taken(void **state)
{
	Timeline *t = fixture_new(100 * MS);
	uint32_t thread =
		fixture_thread(t, fixture_process(t, 1, "a", 0, 100 * MS), 1, "a", 0, 100 * MS);
	static const struct {
		enum thread_state state;
		enum reason reason;
		uint32_t stack;
		uint64_t taken_ms;
	} parts[] = {
		{STATE_RUNNABLE, REASON_WOKEN, 0, 0},  {STATE_BLOCKED, REASON_SLEEP, 0, 10},
		{STATE_RUNNABLE, REASON_WOKEN, 0, 10}, {STATE_RUNNABLE, REASON_PREEMPTED, 0, 30},
		{STATE_RUNNABLE, REASON_WOKEN, 0, 40}, /* not after a wait that is known */
		{STATE_BLOCKED, REASON_SLEEP, 0, 50},  {STATE_RUNNABLE, REASON_WOKEN, 1, 60},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		fixture_interval(t, thread, i * 10 * MS, parts[i].state, parts[i].reason)
			->user_stack = parts[i].stack;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		assert_int_equal(wait_stack(t, &t->threads.items[thread], i).ns,
				 FIXTURE_START + parts[i].taken_ms * MS);
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_weights_and_paint_are_the_ledger),
		cmocka_unit_test(test_tiny_intervals),
		cmocka_unit_test(test_when_stacks_were_taken),
		cmocka_unit_test(test_fillers),
		cmocka_unit_test(test_fillers_until_it_runs),
		cmocka_unit_test(test_tick_weights),
		cmocka_unit_test(test_runs_between_ticks),
		cmocka_unit_test(test_thread_without_ticks),
		cmocka_unit_test(test_short_intervals),
		cmocka_unit_test(test_odd_ticks),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_budget_takes_fillers_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
