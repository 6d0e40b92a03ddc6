/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kept_rows.h"

/* A number of 64 bits takes at most so many bytes with 7 bits each. */
#define NUMBER_MAX  10
#define ROW_NUMBERS 4

static uint8_t *put(uint8_t *at, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		*at++ = number | 0x80;
	*at++ = number;
	return at;
}

static const uint8_t *get(const uint8_t *at, uint64_t *ret_number)
{
	uint64_t number = *at & 0x7f;

	for (unsigned int shift = 7; *at++ & 0x80; shift += 7)
		number |= (uint64_t)(*at & 0x7f) << shift;
	*ret_number = number;
	return at;
}

/* A difference of either sign, modulo 2^64, as a number that is small if the difference is. */
static uint64_t fold_sign(uint64_t difference)
{
	return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static uint64_t unfold_sign(uint64_t number)
{
	return number >> 1 ^ (number & 1 ? UINT64_MAX : 0);
}

void kept_rows_add(KeptRows *kept, const Row *row)
{
	uint8_t *begin, *at;

	vec_reserve(&kept->bytes, kept->bytes.count + ROW_NUMBERS * NUMBER_MAX);
	begin = at = kept->bytes.items + kept->bytes.count;
	at = put(at, fold_sign(row->ns - kept->last.ns));
	at = put(at, row->weight_ns);
	at = put(at, fold_sign(row->running_ns - kept->last.running_ns));
	at = put(at, row->stack);
	kept->bytes.count += at - begin;
	kept->last = *row;
}

void kept_rows_end_thread(KeptRows *kept)
{
	*vec_push(&kept->ends) = kept->bytes.count;
	kept->last = (Row){};
}

void kept_rows_visit(const KeptRows *kept, size_t thread, RowVisitor visit, void *user)
{
	size_t first = thread > 0 ? kept->ends.items[thread - 1] : 0;
	const uint8_t *at = vec_at(&kept->bytes, first);
	const uint8_t *end = vec_at(&kept->bytes, kept->ends.items[thread]);
	Row row = {};

	while (at < end) {
		uint64_t ns, running_ns, stack;

		at = get(at, &ns);
		at = get(at, &row.weight_ns);
		at = get(at, &running_ns);
		at = get(at, &stack);
		row.ns += unfold_sign(ns);
		row.running_ns += unfold_sign(running_ns);
		row.stack = stack;
		visit(user, &row);
	}
}

void kept_rows_free(KeptRows *kept)
{
	vec_free(&kept->bytes);
	vec_free(&kept->ends);
	kept->last = (Row){};
}
