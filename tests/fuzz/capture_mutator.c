/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture_mutator.c - changes the records inside of a capture's compressed frames, where a
 * changed byte would else only break a checksum. What it makes is a capture file again, so
 * that an input that was kept can be given to wallprof itself.
 */
#include "capture_format.h"
#include "fuzz.h"
#include <zstd.h>

#define PLAIN_MAX  (256u << 10)
#define FRAMES_MAX 4

typedef VEC(size_t) Places;

/* ---- to records and back ------------------------------------------------------ */

/* What is in the whole frames. Returns false if there is nothing. */
static bool unpack(const uint8_t *data, size_t size, FuzzBytes *ret_plain)
{
	ZSTD_inBuffer in = {data, size, 0};
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	ZSTD_outBuffer out;
	size_t left;

	vec_reserve(ret_plain, PLAIN_MAX);
	out = (ZSTD_outBuffer){ret_plain->items, PLAIN_MAX, 0};
	do {
		left = ZSTD_decompressStream(zstd, &out, &in);
	} while (!ZSTD_isError(left) && in.pos < in.size && out.pos < out.size);
	ZSTD_freeDCtx(zstd);
	ret_plain->count = out.pos;
	return out.pos > 0;
}

/* Offsets of the records, and the end of the last one; the bytes behind it are dropped. */
static Places find_records(const FuzzBytes *plain)
{
	Places places = {};
	struct record record;
	size_t at = 0;

	*vec_push(&places) = 0;
	while (plain->count - at >= sizeof(record)) {
		memcpy(&record, plain->items + at, sizeof(record));
		if (record.len < sizeof(record) || record.len > plain->count - at)
			break;
		at += record.len;
		*vec_push(&places) = at;
	}
	return places;
}

static size_t add_frame(ZSTD_CCtx *zstd, const uint8_t *plain, size_t size, uint8_t *out,
			size_t room)
{
	size_t n = ZSTD_compress2(zstd, out, room, plain, size);

	return ZSTD_isError(n) ? 0 : n;
}

/* Some frames of whole records. Returns the file's size, or 0 if it does not fit. */
static size_t pack(const FuzzBytes *plain, unsigned int *seed, uint8_t *out, size_t max_size)
{
	struct capture_header header = {
		.magic = CAPTURE_SKIPPABLE_MAGIC,
		.size = sizeof(header) - CAPTURE_SKIPPABLE_LEN,
		.name = CAPTURE_NAME,
		.version = *seed % 4 ? CAPTURE_VERSION : CAPTURE_VERSION_OLDEST,
	};
	Places places = find_records(plain);
	size_t used = sizeof(header), from = 0, added = 1;
	ZSTD_CCtx *zstd = ZSTD_createCCtx();

	ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, -1);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
	if (max_size < sizeof(header))
		added = 0;
	else
		memcpy(out, &header, sizeof(header));
	for (int frame = 0; frame < FRAMES_MAX && from < plain->count && added; frame++) {
		size_t to = places.items[fuzz_random(seed, places.count)];

		if (to <= from || frame == FRAMES_MAX - 1)
			to = plain->count;
		added = add_frame(zstd, plain->items + from, to - from, out + used,
				  max_size - used);
		used += added;
		from = to;
	}
	ZSTD_freeCCtx(zstd);
	vec_free(&places);
	return added ? used : 0;
}

/* ---- changes -------------------------------------------------------------------- */

static void replace(FuzzBytes *plain, size_t from, size_t to, const uint8_t *data, size_t size)
{
	FuzzBytes changed = {};

	vec_reserve(&changed, plain->count + size + 1);
	vec_append(&changed, plain->items, from);
	if (size)
		vec_append(&changed, data, size);
	vec_append(&changed, plain->items + to, plain->count - to);
	vec_free(plain);
	*plain = changed;
}

/* Its length is made to fit again, but for one time in sixteen. */
static void change_record(FuzzBytes *plain, size_t from, size_t to, unsigned int *seed)
{
	size_t size = to - from, room = size + 64;
	_cleanup_free_ uint8_t *record = xcalloc(1, room);
	uint32_t len;

	memcpy(record, plain->items + from, size);
	size = LLVMFuzzerMutate(record, size, fuzz_random(seed, 2) ? size : room - 8);
	size = MAX(size, sizeof(struct record));
	len = (size + 7) & ~(size_t)7;
	if (fuzz_random(seed, 16))
		memcpy(record, &len, sizeof(len));
	replace(plain, from, to, record, len);
}

/* One of its numbers of 4 bytes becomes that of another record: they refer to each other. */
static void copy_number(FuzzBytes *plain, const Places *places, unsigned int *seed)
{
	size_t records = places->count - 1;
	size_t a = fuzz_random(seed, records), b = fuzz_random(seed, records);
	size_t words_a = (places->items[a + 1] - places->items[a]) / 4;
	size_t words_b = (places->items[b + 1] - places->items[b]) / 4;
	size_t to = places->items[a] + 4 * (1 + fuzz_random(seed, words_a - 1));
	size_t from = places->items[b] + 4 * (1 + fuzz_random(seed, words_b - 1));

	memmove(plain->items + to, plain->items + from, 4);
}

static void change_one(FuzzBytes *plain, unsigned int *seed)
{
	Places places = find_records(plain);
	size_t records = places.count - 1, which = records ? fuzz_random(seed, records) : 0;
	size_t from = places.items[which], to = records ? places.items[which + 1] : 0;
	_cleanup_free_ uint8_t *copy = records ? fuzz_copy(plain->items + from, to - from) : NULL;
	size_t behind = places.items[fuzz_random(seed, places.count)];
	uint32_t choice = records ? fuzz_random(seed, 12) : 0;

	if (choice == 0) {
		vec_reserve(plain, plain->count + 64);
		plain->count = LLVMFuzzerMutate(plain->items, plain->count, plain->count + 64);
	} else if (choice == 1) {
		replace(plain, from, to, NULL, 0);
	} else if (choice == 2) {
		replace(plain, behind, behind, copy, to - from);
	} else if (choice <= 4) {
		copy_number(plain, &places, seed);
	} else {
		change_record(plain, from, to, seed);
	}
	vec_free(&places);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	FuzzBytes plain = {};
	size_t made = 0;

	/* The file's own layout: its header, frames and what is between them. */
	if (fuzz_random(&seed, 8) && unpack(data, size, &plain)) {
		for (uint32_t times = 1 + fuzz_random(&seed, 3); times > 0; times--)
			change_one(&plain, &seed);
		made = pack(&plain, &seed, data, max_size);
	}
	vec_free(&plain);
	return made ? made : LLVMFuzzerMutate(data, size, max_size);
}

/* Some records of the second among those of the first. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
				 size_t size2, uint8_t *out, size_t max_out_size, unsigned int seed)
{
	FuzzBytes first = {}, second = {};
	size_t made = 0;

	if (unpack(data1, size1, &first) && unpack(data2, size2, &second)) {
		Places ours = find_records(&first), theirs = find_records(&second);
		size_t at = ours.items[fuzz_random(&seed, ours.count)];
		size_t from = fuzz_random(&seed, theirs.count);
		size_t to = from + fuzz_random(&seed, theirs.count - from);

		replace(&first, at, at, second.items + theirs.items[from],
			theirs.items[to] - theirs.items[from]);
		made = pack(&first, &seed, out, max_out_size);
		vec_free(&ours);
		vec_free(&theirs);
	}
	vec_free(&first);
	vec_free(&second);
	return made;
}
