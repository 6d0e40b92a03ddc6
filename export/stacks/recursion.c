/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recursion.h"
#include "symbol_record.h"
#include "util.h"
#include <inttypes.h>
#include <string.h>

static uint64_t power_of_two(uint64_t n)
{
	uint64_t power = 1;

	while (power <= n / 2)
		power *= 2;
	return power;
}

/*
 * Whether two frames are of one function. Pseudo frames are of none, and a piece of code without
 * symbols may have many functions in it.
 */
static bool is_same(const Frames *frames, uint32_t a, uint32_t b)
{
	const Frame *x = &frames->list.items[a], *y = &frames->list.items[b];

	return x->lib != LIBRARY_NONE && x->lib == y->lib && x->named &&
	       x->function == y->function && x->inline_depth == y->inline_depth &&
	       strncmp(strings_get(&frames->strings, x->function), SYMBOL_GAP_PREFIX,
		       strlen(SYMBOL_GAP_PREFIX)) != 0;
}

/* Returns how many frames from chain[0] on repeat the first `cycle` ones, these included. */
static size_t run_length(const Frames *frames, const uint32_t *chain, size_t count, size_t cycle)
{
	size_t length = cycle;

	while (length < count && is_same(frames, chain[length], chain[length - cycle]))
		length++;
	return length;
}

/*
 * Finds the shortest cycle that begins at chain[0] and repeats. Returns how many frames can be
 * folded after the first cycle, or 0.
 */
static size_t find_cycle(const Frames *frames, const uint32_t *chain, size_t count,
			 size_t *ret_cycle)
{
	/* A real function begins it, so that inlined calls stay below their caller. */
	if (frames->list.items[chain[0]].inline_depth > 0)
		return 0;
	for (size_t cycle = 1; cycle <= MIN((size_t)RECURSION_CYCLE, count / 3); cycle++) {
		size_t cycles = run_length(frames, chain, count, cycle) / cycle;
		size_t folded = cycles > 2 ? (cycles - 2) * cycle : 0;

		if (folded >= RECURSION_LEAST) {
			*ret_cycle = cycle;
			return folded;
		}
	}
	return 0;
}

size_t recursion_fold(Frames *frames, uint32_t *chain, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count;) {
		size_t cycle = 1, folded = find_cycle(frames, chain + i, count - i, &cycle);
		_cleanup_free_ char *name = NULL;

		for (size_t k = 0; k < cycle; k++)
			chain[kept++] = chain[i++];
		if (folded == 0)
			continue;
		name = xasprintf("[recursion: %" PRIu64 " or more frames]", power_of_two(folded));
		chain[kept++] = frames_pseudo(frames, name);
		i += folded;
	}
	return kept;
}

uint32_t recursion_gap(Frames *frames, uint32_t left_out, bool at_least)
{
	_cleanup_free_ char *name = NULL;

	if (frames->unfolded)
		name = xasprintf("[%s%" PRIu32 " frames left out]", at_least ? "at least " : "",
				 left_out);
	else
		name = xasprintf("[%" PRIu64 " or more frames left out]", power_of_two(left_out));
	return frames_pseudo(frames, name);
}
