/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "frames_fixture.h"
#include "recursion.h"

#define FRAMES_MAX 1000

typedef struct Chain {
	uint32_t frames[FRAMES_MAX];
	size_t count;
} Chain;

static uint32_t add_function(const Fixture *fixture, const char *name, uint8_t inline_depth)
{
	Frames *frames = fixture->frames;

	*vec_push(&frames->list) = (Frame){
		.function = strings_intern(&frames->strings, name),
		.lib = 0,
		.address = frames->list.count,
		.source = UINT32_MAX,
		.inline_depth = inline_depth,
		.named = true,
	};
	return frames->list.count - 1;
}

/* Each letter is a function; a digit behind it is the depth of an inlined call. */
static Chain chain_of(const Fixture *fixture, const char *letters, size_t times)
{
	Chain chain = {};

	for (size_t i = 0; i < times; i++) {
		for (const char *p = letters; *p; p++) {
			char name[2] = {*p, '\0'};
			bool is_inlined = p[1] >= '0' && p[1] <= '9';

			assert_true(chain.count < FRAMES_MAX);
			chain.frames[chain.count++] =
				add_function(fixture, name, is_inlined ? p[1] - '0' : 0);
			p += is_inlined;
		}
	}
	return chain;
}

static void append(Chain *chain, Chain more)
{
	for (size_t i = 0; i < more.count; i++)
		chain->frames[chain->count++] = more.frames[i];
}

static const char *name_of(const Frames *frames, uint32_t frame)
{
	return strings_get(&frames->strings, frames->list.items[frame].function);
}

/* Returns the names of the folded chain, until the next call. */
static const char *fold(const Fixture *fixture, Chain *chain)
{
	static char text[16384];

	*text = '\0';
	chain->count = recursion_fold(fixture->frames, chain->frames, chain->count);
	for (size_t i = 0; i < chain->count; i++)
		strcat(strcat(text, i ? ";" : ""), name_of(fixture->frames, chain->frames[i]));
	return text;
}

static void check_fold(const Fixture *fixture, const char *letters, size_t times,
		       const char *folded)
{
	Chain chain = chain_of(fixture, "mr", 1);

	append(&chain, chain_of(fixture, letters, times));
	append(&chain, chain_of(fixture, "x", 1));
	assert_string_equal(fold(fixture, &chain), folded);
}

static void test_one_function(void **state)
{
	const Fixture *fixture = *state;

	check_fold(fixture, "f", 1, "m;r;f;x");
	check_fold(fixture, "f", RECURSION_LEAST + 2, "m;r;f;[recursion: 16 or more frames];f;x");
	check_fold(fixture, "f", 33, "m;r;f;[recursion: 16 or more frames];f;x");
	check_fold(fixture, "f", 34, "m;r;f;[recursion: 32 or more frames];f;x");
	check_fold(fixture, "f", 258, "m;r;f;[recursion: 256 or more frames];f;x");
}

static void test_short_runs(void **state)
{
	Chain chain = chain_of(*state, "f", RECURSION_LEAST + 1);

	recursion_fold(((Fixture *)*state)->frames, chain.frames, chain.count);
	assert_int_equal(recursion_fold(((Fixture *)*state)->frames, chain.frames, chain.count),
			 RECURSION_LEAST + 1);
}

static void test_cycles(void **state)
{
	const Fixture *fixture = *state;

	check_fold(fixture, "fgh", 10, "m;r;f;g;h;[recursion: 16 or more frames];f;g;h;x");
	/* A cycle within a cycle is one of the outer one. */
	check_fold(fixture, "ffg", 10, "m;r;f;f;g;[recursion: 16 or more frames];f;f;g;x");
	/* The rest of a cycle remains. */
	check_fold(fixture, "fgfgfgfgfgfgfgfgfgfgf", 1,
		   "m;r;f;g;[recursion: 16 or more frames];f;g;f;x");
	/* Nothing repeats often enough. */
	check_fold(fixture, "fghfhgfggfhh", 1, "m;r;f;g;h;f;h;g;f;g;g;f;h;h;x");
}

/* Inlined calls stay below the function that they are in. */
static void test_inlined_calls(void **state)
{
	const Fixture *fixture = *state;
	Chain chain = chain_of(fixture, "a1f", 12);
	const Frames *frames = fixture->frames;

	assert_string_equal(fold(fixture, &chain), "a;f;a;[recursion: 16 or more frames];f;a;f");
	for (size_t i = 1; i < chain.count; i++)
		if (frames->list.items[chain.frames[i]].inline_depth > 0)
			assert_string_equal(name_of(frames, chain.frames[i - 1]), "f");
}

static void test_pseudo_frames(void **state)
{
	Fixture *fixture = *state;
	Chain chain = {};

	for (chain.count = 0; chain.count < 40; chain.count++)
		chain.frames[chain.count] = frames_pseudo(fixture->frames, "[guessed]");
	assert_int_equal(recursion_fold(fixture->frames, chain.frames, chain.count), 40);
	for (chain.count = 0; chain.count < 40; chain.count++)
		chain.frames[chain.count] = add_function(fixture, "[no symbols 0x2f00-0x3200]", 0);
	assert_int_equal(recursion_fold(fixture->frames, chain.frames, chain.count), 40);
}

/* Whatever is folded: ends, functions, and how many frames these stand for. */
static void check_same(const Fixture *fixture, const Chain *before, const Chain *after,
		       size_t functions)
{
	const Frames *frames = fixture->frames;
	size_t real = 0, least = 0;
	uint32_t seen[2] = {};

	assert_int_equal(before->frames[0], after->frames[0]);
	assert_string_equal(name_of(frames, before->frames[before->count - 1]),
			    name_of(frames, after->frames[after->count - 1]));
	for (size_t i = 0; i < before->count; i++)
		seen[0] |= 1u << (*name_of(frames, before->frames[i]) - 'a');
	for (size_t i = 0; i < after->count; i++) {
		const char *name = name_of(frames, after->frames[i]);
		unsigned stands_for;

		if (sscanf(name, "[recursion: %u or more frames]", &stands_for) == 1) {
			least += stands_for;
			continue;
		}
		real++;
		seen[1] |= 1u << (*name - 'a');
	}
	assert_int_equal(seen[0], seen[1]);
	assert_true(seen[0] < 1u << functions);
	assert_true(real + least <= before->count);
	assert_true(least == 0 ? real == before->count : real + 2 * least > before->count);
}

static void test_random(void **state)
{
	Fixture *fixture = *state;

	for (int round = 0; round < 300; round++) {
		Chain chain = {}, before;

		while (chain.count < FRAMES_MAX / 2) {
			char letters[6] = {};
			size_t length = 1 + random_below(5);

			for (size_t i = 0; i < length; i++)
				letters[i] = 'a' + random_below(4);
			append(&chain, chain_of(fixture, letters, 1 + random_below(60)));
		}
		before = chain;
		fold(fixture, &chain);
		check_same(fixture, &before, &chain, 4);
	}
}

static void test_gap(void **state)
{
	Frames *frames = ((Fixture *)*state)->frames;

	assert_string_equal(name_of(frames, recursion_gap(frames, 1, false)),
			    "[1 or more frames left out]");
	assert_string_equal(name_of(frames, recursion_gap(frames, 19745, true)),
			    "[16384 or more frames left out]");
	frames->unfolded = true;
	assert_string_equal(name_of(frames, recursion_gap(frames, 19745, false)),
			    "[19745 frames left out]");
	assert_string_equal(name_of(frames, recursion_gap(frames, 130, true)),
			    "[at least 130 frames left out]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_one_function),  WITH_FIXTURE(test_short_runs),
		WITH_FIXTURE(test_cycles),	  WITH_FIXTURE(test_inlined_calls),
		WITH_FIXTURE(test_pseudo_frames), WITH_FIXTURE(test_random),
		WITH_FIXTURE(test_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
