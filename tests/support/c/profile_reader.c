/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile_reader.h"
#include "test_tools.h"

const Node *profile_column(const Node *table, const char *name)
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
			assert_uint_in_range(node_int(node_at(items, i)), 0, count - 1);
	}
}

size_t table_length(const Profile *profile, const char *name)
{
	return node_int(node_get(node_get(profile->shared, name), "length"));
}

const Node *profile_table(const Profile *profile, const char *table, const char *name)
{
	return profile_column(node_get(profile->shared, table), name);
}

static void check_shared(const Profile *profile)
{
	size_t strings = profile->strings->count, libs = node_get(profile->root, "libs")->count;
	size_t categories = node_get(profile->meta, "categories")->count;
	const Node *prefix = profile_table(profile, "stackTable", "prefix");

	check_indexes(profile_table(profile, "stackTable", "frame"),
		      table_length(profile, "frameTable"), false);
	for (size_t i = 0; i < prefix->count; i++)
		if (node_at(prefix, i)->type != 'n')
			assert_true(node_int(node_at(prefix, i)) < (long long)i);
	check_indexes(profile_table(profile, "frameTable", "func"),
		      table_length(profile, "funcTable"), false);
	check_indexes(profile_table(profile, "frameTable", "category"), categories, false);
	check_indexes(profile_table(profile, "frameTable", "nativeSymbol"),
		      table_length(profile, "nativeSymbols"), true);
	check_indexes(profile_table(profile, "funcTable", "name"), strings, false);
	check_indexes(profile_table(profile, "funcTable", "source"),
		      table_length(profile, "sources"), true);
	check_indexes(profile_table(profile, "resourceTable", "name"), strings, false);
	check_indexes(profile_table(profile, "resourceTable", "lib"), libs, true);
	check_indexes(profile_table(profile, "nativeSymbols", "libIndex"), libs, false);
	check_indexes(profile_table(profile, "sources", "filename"), strings, false);
	for (size_t i = 0; i < strings; i++)
		for (size_t k = 0; strings < 1000 && k < i; k++)
			assert_string_not_equal(node_string(node_at(profile->strings, i)),
						node_string(node_at(profile->strings, k)));
}

const Node *thread_at(const Profile *profile, size_t i)
{
	return node_at(profile->threads, i);
}

size_t thread_count(const Profile *profile)
{
	return profile->threads->count;
}

static void check_thread(const Profile *profile, const Node *thread)
{
	const Node *samples = node_get(thread, "samples"), *markers = node_get(thread, "markers");
	const Node *time = profile_column(samples, "time"),
		   *phase = profile_column(markers, "phase");

	assert_string_equal(node_string(node_get(samples, "weightType")), "tracing-ms");
	check_indexes(profile_column(samples, "stack"), table_length(profile, "stackTable"), false);
	profile_column(samples, "weight");
	for (size_t i = 1; i < time->count; i++)
		assert_true(node_ns(node_at(time, i - 1)) <= node_ns(node_at(time, i)));
	check_indexes(profile_column(markers, "name"), profile->strings->count, false);
	check_indexes(profile_column(markers, "category"),
		      node_get(profile->meta, "categories")->count, false);
	for (size_t i = 0; i < phase->count; i++) {
		uint64_t start = node_ns(node_at(profile_column(markers, "startTime"), i));
		uint64_t end = node_ns(node_at(profile_column(markers, "endTime"), i));

		assert_uint_in_range(node_int(node_at(phase, i)), 0, 1);
		assert_true(node_int(node_at(phase, i)) == 1 ? end >= start : end == 0);
		assert_non_null(node_find(node_at(profile_column(markers, "data"), i), "type"));
	}
	for (size_t i = 0; i < thread_count(profile); i++) {
		const Node *other = thread_at(profile, i);

		assert_true(other == thread || strcmp(node_get(other, "tid")->text,
						      node_get(thread, "tid")->text) != 0);
	}
}

const char *string_at(const Profile *profile, const Node *items, size_t i)
{
	return node_string(node_at(profile->strings, node_int(node_at(items, i))));
}

size_t sample_count(const Node *thread)
{
	return node_int(node_get(node_get(thread, "samples"), "length"));
}

static Sample *read_samples(const Profile *profile, const Node *thread)
{
	const Node *samples = node_get(thread, "samples");
	const Node *stacks = profile_column(samples, "stack"),
		   *times = profile_column(samples, "time");
	const Node *weights = profile_column(samples, "weight");
	const Node *frames = profile_table(profile, "stackTable", "frame");
	const Node *funcs = profile_table(profile, "frameTable", "func");
	const Node *categories = profile_table(profile, "frameTable", "category");
	const Node *names = profile_table(profile, "funcTable", "name");
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

Profile write_and_read(const Timeline *timeline, Frames *frames, const FirefoxOptions *options)
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

Profile make_profile(const Timeline *timeline, const FirefoxOptions *options)
{
	Frames *frames = frames_new();
	Profile profile = write_and_read(timeline, frames, options);

	frames_free(frames);
	return profile;
}

Sample sample_at(const Profile *profile, const Node *thread, size_t i)
{
	return profile->samples[thread - profile->threads->items][i];
}

enum thread_state state_of(const Sample *sample)
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

static void add_sample(Sums *sums, const Sample *sample, uint64_t value)
{
	sums->states[state_of(sample)] += value;
	if (sample->category == CATEGORY_USER)
		sums->user += value;
	else if (sample->category == CATEGORY_KERNEL)
		sums->kernel += value;
}

Sums sum_weights(const Profile *profile, const Node *thread)
{
	Sums sums = {};

	for (size_t i = 0, count = sample_count(thread); i < count; i++) {
		Sample sample = sample_at(profile, thread, i);

		add_sample(&sums, &sample, sample.weight_ns);
	}
	return sums;
}

Sums sum_paint(const Profile *profile, const Node *thread, uint64_t born, uint64_t died)
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

const Node *find_thread(const Profile *profile, const char *tid)
{
	for (size_t i = 0; i < thread_count(profile); i++)
		if (strcmp(node_get(thread_at(profile, i), "tid")->text, tid) == 0)
			return thread_at(profile, i);
	fail_msg("no thread %s", tid);
	return NULL;
}

const Node *thread_of(const Profile *profile, const Thread *thread)
{
	char tid[16];

	snprintf(tid, sizeof(tid), "%u", thread->ns_tid);
	return find_thread(profile, tid);
}

uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

void profile_free(Profile *profile)
{
	for (size_t i = 0; i < thread_count(profile); i++)
		free(profile->samples[i]);
	free(profile->samples);
	node_free(profile->root);
}

void profile_done(Profile *profile, Timeline *timeline)
{
	profile_free(profile);
	timeline_free(timeline);
}

const Node *profile_extra(const Profile *profile, const char *label)
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
