/* SPDX-License-Identifier: GPL-2.0-or-later */
/* profile_reader.h - profiles read back, and what the viewer makes of them. */
#ifndef WALLPROF_TEST_PROFILE_READER_H
#define WALLPROF_TEST_PROFILE_READER_H

#include "firefox.h"
#include "json_reader.h"
#include "timeline_fixture.h"

#define MS NSEC_PER_MSEC

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

static inline const Node *column(const Node *table, const char *name)
{
	const Node *items = node_get(table, name);

	assert_int_equal(items->count, node_int(node_get(table, "length")));
	return items;
}

/* Every index of a column is inside the table it refers to; nulls are allowed or not. */
static inline void check_indexes(const Node *items, size_t count, bool nulls)
{
	for (size_t i = 0; i < items->count; i++) {
		if (node_at(items, i)->type == 'n')
			assert_true(nulls);
		else
			assert_uint_in_range(node_int(node_at(items, i)), 0, count - 1);
	}
}

static inline size_t table_length(const Profile *profile, const char *name)
{
	return node_int(node_get(node_get(profile->shared, name), "length"));
}

static inline const Node *shared(const Profile *profile, const char *table, const char *name)
{
	return column(node_get(profile->shared, table), name);
}

static inline void check_shared(const Profile *profile)
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

static inline const Node *thread_at(const Profile *profile, size_t i)
{
	return node_at(profile->threads, i);
}

static inline size_t thread_count(const Profile *profile)
{
	return profile->threads->count;
}

static inline void check_thread(const Profile *profile, const Node *thread)
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

		assert_uint_in_range(node_int(node_at(phase, i)), 0, 1);
		assert_true(node_int(node_at(phase, i)) == 1 ? end >= start : end == 0);
		assert_non_null(node_find(node_at(column(markers, "data"), i), "type"));
	}
	for (size_t i = 0; i < thread_count(profile); i++) {
		const Node *other = thread_at(profile, i);

		assert_true(other == thread || strcmp(node_get(other, "tid")->text,
						      node_get(thread, "tid")->text) != 0);
	}
}

static inline const char *string_at(const Profile *profile, const Node *items, size_t i)
{
	return node_string(node_at(profile->strings, node_int(node_at(items, i))));
}

static inline size_t sample_count(const Node *thread)
{
	return node_int(node_get(node_get(thread, "samples"), "length"));
}

static inline Sample *read_samples(const Profile *profile, const Node *thread)
{
	const Node *samples = node_get(thread, "samples");
	const Node *stacks = column(samples, "stack"), *times = column(samples, "time");
	const Node *weights = column(samples, "weight");
	const Node *frames = shared(profile, "stackTable", "frame");
	const Node *funcs = shared(profile, "frameTable", "func");
	const Node *categories = shared(profile, "frameTable", "category");
	const Node *names = shared(profile, "funcTable", "name");
	Sample *list = xcalloc(sample_count(thread), sizeof(*list));

	for (size_t i = 0, count = sample_count(thread); i < count; i++) {
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

static inline Profile write_and_read(const Timeline *timeline, Frames *frames,
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
static inline Profile make_profile(const Timeline *timeline, const FirefoxOptions *options)
{
	Frames *frames = frames_new();
	Profile profile = write_and_read(timeline, frames, options);

	frames_free(frames);
	return profile;
}

static inline Sample sample_at(const Profile *profile, const Node *thread, size_t i)
{
	return profile->samples[thread - profile->threads->items][i];
}

static inline size_t total_samples(const Profile *profile)
{
	size_t count = 0;

	for (size_t i = 0; i < thread_count(profile); i++)
		count += sample_count(thread_at(profile, i));
	return count;
}

/* What a thread did, as its track and its weights distinguish it; running is split by mode. */
typedef struct Sums {
	uint64_t states[STATE_COUNT], user, kernel;
} Sums;

static inline enum thread_state state_of(const Sample *sample)
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

static inline void add_sample(Sums *sums, const Sample *sample, uint64_t value)
{
	sums->states[state_of(sample)] += value;
	if (sample->category == CATEGORY_USER)
		sums->user += value;
	else if (sample->category == CATEGORY_KERNEL)
		sums->kernel += value;
}

static inline Sums sum_weights(const Profile *profile, const Node *thread)
{
	Sums sums = {};

	for (size_t i = 0, count = sample_count(thread); i < count; i++) {
		Sample sample = sample_at(profile, thread, i);

		add_sample(&sums, &sample, sample.weight_ns);
	}
	return sums;
}

/* The viewer paints each sample from the middle to its neighbours; times are in half ns. */
static inline Sums sum_paint(const Profile *profile, const Node *thread, uint64_t born,
			     uint64_t died)
{
	uint64_t left = 2 * born, count = sample_count(thread);
	Sums sums = {};

	for (size_t i = 0; i < count; i++) {
		Sample sample = sample_at(profile, thread, i);
		uint64_t right =
			i + 1 < count ? sample.ns + sample_at(profile, thread, i + 1).ns : 2 * died;

		add_sample(&sums, &sample, right - left);
		left = right;
	}
	return sums;
}

static inline const Node *find_thread(const Profile *profile, const char *tid)
{
	for (size_t i = 0; i < thread_count(profile); i++)
		if (strcmp(node_get(thread_at(profile, i), "tid")->text, tid) == 0)
			return thread_at(profile, i);
	fail_msg("no thread %s", tid);
	return NULL;
}

static inline const Node *thread_of(const Profile *profile, const Thread *thread)
{
	char tid[16];

	snprintf(tid, sizeof(tid), "%u", thread->ns_tid);
	return find_thread(profile, tid);
}

static inline uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Weights are the ledger to the nanosecond, per state. */
static inline void check_weights(const Profile *profile, const Timeline *timeline)
{
	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];
		Sums sums = sum_weights(profile, thread_of(profile, thread));

		for (size_t s = 0; s < STATE_COUNT; s++)
			assert_int_equal(sums.states[s], thread->ledger[s]);
	}
}

static inline void check_paint_to(const Profile *profile, const Timeline *timeline, bool exact)
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
static inline void check_paint(const Profile *profile, const Timeline *timeline)
{
	check_paint_to(profile, timeline, /* exact= */ true);
}

/* The same with folded intervals: to 0.5 % or 1 ms. */
static inline void check_folded_paint(const Profile *profile, const Timeline *timeline)
{
	check_paint_to(profile, timeline, /* exact= */ false);
}

static inline void profile_free(Profile *profile)
{
	for (size_t i = 0; i < thread_count(profile); i++)
		free(profile->samples[i]);
	free(profile->samples);
	node_free(profile->root);
}

static inline void done(Profile *profile, Timeline *timeline)
{
	profile_free(profile);
	timeline_free(timeline);
}

static inline uint64_t weight_of_leaf(const Profile *profile, const char *leaf, long long category)
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

static inline const Node *extra(const Profile *profile, const char *label)
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

static inline size_t count_markers(const Profile *profile, const char *name)
{
	size_t count = 0;

	for (size_t t = 0; t < thread_count(profile); t++) {
		const Node *names = node_get(node_get(thread_at(profile, t), "markers"), "name");

		for (size_t i = 0; i < names->count; i++)
			count += strcmp(string_at(profile, names, i), name) == 0;
	}
	return count;
}

#endif
