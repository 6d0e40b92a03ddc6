/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture_sort.c - the records of a capture in order of time.
 *
 * Events wait in file order in `pending`. When a REC_WATERMARK says that all rings were drained up
 * to a moment, events that are older than that moment less SLACK_NS move to `ready`, are sorted
 * there and returned. Watermarks that advance by less than BATCH_NS since the last move are
 * ignored, so that the cost per event does not depend on how often the recorder drains. The sort
 * merges ascending runs, of which a batch has few. If that takes too long, it is a radix sort on
 * the nanoseconds, which takes three passes for a batch of seconds. Both are stable: ties keep the
 * order of the file.
 *
 * Records are not copied: a frame stays in memory until its last event is returned.
 */
#include "capture.h"
#include "capture_format.h"
#include "record_info.h"
#include "util.h"
#include <string.h>

/* The longest time between a BPF program's time stamp and its record in the ring. */
#define SLACK_NS NSEC_PER_SEC
#define BATCH_NS (NSEC_PER_SEC / 4)
/* So much is held for a capture without watermarks; after that its order is not kept. */
#define HELD_MAX (112u << 20)
/* The memory of an event in all three lists, each of which may be half empty. */
#define ENTRY_COST (3 * sizeof(Entry) * 3 / 2)

#define RADIX_BITS	   11
#define RADIX_SIZE	   (1u << RADIX_BITS)
#define INSERTION_SORT_MAX 48

typedef struct Entry {
	uint64_t ns;
	const struct record *record;
	CaptureFrame *frame;
} Entry;

typedef VEC(Entry) Entries;

struct CaptureSorter {
	Entries pending; /* in file order */
	Entries ready;	 /* in order of time, valid from next on */
	Entries spare;	 /* the second buffer of both sorts */
	size_t next;
	size_t held; /* bytes that pending and ready keep in memory, including themselves */
	uint64_t released_ns;
	uint64_t last_ns;
	CaptureFrame *last_frame; /* of the record returned last */
	bool ended;
};

static void reserve(Entries *entries, size_t count)
{
	if (entries->capacity < count)
		vec_reserve(entries, count + count / 2);
}

static void insertion_sort(Entry *items, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		Entry entry = items[i];
		size_t k = i;

		for (; k > 0 && items[k - 1].ns > entry.ns; k--)
			items[k] = items[k - 1];
		items[k] = entry;
	}
}

static void radix_pass(const Entry *from, Entry *to, size_t count, uint64_t least, unsigned shift)
{
	size_t starts[RADIX_SIZE] = {};
	size_t sum = 0;

	for (size_t i = 0; i < count; i++)
		starts[((from[i].ns - least) >> shift) & (RADIX_SIZE - 1)]++;
	for (size_t i = 0; i < RADIX_SIZE; i++) {
		size_t bucket = starts[i];

		starts[i] = sum;
		sum += bucket;
	}
	for (size_t i = 0; i < count; i++)
		to[starts[((from[i].ns - least) >> shift) & (RADIX_SIZE - 1)]++] = from[i];
}

/* Merges the ascending items from `left` on with those from `right` to `end`; stable. */
static void merge_runs(Entry *items, size_t left, size_t right, size_t end, Entry *spare)
{
	size_t left_count = right - left, to = left;

	memcpy(spare, items + left, left_count * sizeof(Entry));
	for (size_t i = 0; i < left_count; to++) {
		if (right < end && items[right].ns < spare[i].ns)
			items[to] = items[right++];
		else
			items[to] = spare[i++];
	}
}

/*
 * Sorts by merging each ascending run with what overlaps it of those before; stable. The recorder
 * sorts what it drains in one round, so there are few runs, and only their ends overlap. Returns
 * false, with an order that may be sorted on, when more was moved than a pass of the radix sort
 * moves.
 */
static bool sort_runs(Entries *entries, Entries *spare)
{
	Entry *items = entries->items;
	size_t count = entries->count, moved = 0;

	for (size_t right = 1; right < count; right++) {
		size_t end = right + 1, left;
		uint64_t ns = items[right].ns;

		if (items[right - 1].ns <= ns)
			continue;
		left = partition_point(i, right, items[i].ns <= ns);
		while (end < count && items[end - 1].ns <= items[end].ns &&
		       items[end].ns < items[right - 1].ns)
			end++;
		moved += end - left;
		if (moved > count)
			return false;
		reserve(spare, right - left);
		merge_runs(items, left, right, end, spare->items);
		right = end - 1;
	}
	return true;
}

/* Sorts by ns, stable; `spare` is a buffer. */
static void sort_entries(Entries *entries, Entries *spare)
{
	uint64_t least = UINT64_MAX, most = 0;

	if (entries->count <= INSERTION_SORT_MAX) {
		insertion_sort(entries->items, entries->count);
		return;
	}
	if (sort_runs(entries, spare))
		return;
	for (size_t i = 0; i < entries->count; i++) {
		least = MIN(least, entries->items[i].ns);
		most = MAX(most, entries->items[i].ns);
	}
	reserve(spare, entries->count);
	for (unsigned shift = 0; shift < 64 && (most - least) >> shift; shift += RADIX_BITS) {
		Entries swap = *entries;

		radix_pass(entries->items, spare->items, entries->count, least, shift);
		spare->count = entries->count;
		*entries = *spare;
		*spare = swap;
	}
}

/* Moves events that are older than limit to ready, which must be empty. */
static void release_older(CaptureSorter *sorter, uint64_t limit)
{
	Entry *pending = sorter->pending.items;
	size_t kept = 0;

	sorter->ready.count = sorter->next = 0;
	reserve(&sorter->ready, sorter->pending.count);
	for (size_t i = 0; i < sorter->pending.count; i++) {
		if (pending[i].ns < limit)
			sorter->ready.items[sorter->ready.count++] = pending[i];
		else
			pending[kept++] = pending[i];
	}
	sorter->pending.count = kept;
	sort_entries(&sorter->ready, &sorter->spare);
}

static void release_all(CaptureSorter *sorter)
{
	Entries swap = sorter->ready;

	sorter->ready = sorter->pending;
	sorter->pending = swap;
	sorter->pending.count = sorter->next = 0;
	sort_entries(&sorter->ready, &sorter->spare);
}

/* Releases the older half, whatever the watermarks say: the other half limits the disorder. */
static void release_older_half(CaptureSorter *sorter)
{
	size_t half;

	sort_entries(&sorter->pending, &sorter->spare);
	half = (sorter->pending.count + 1) / 2;
	sorter->ready.count = sorter->next = 0;
	reserve(&sorter->ready, half);
	memcpy(sorter->ready.items, sorter->pending.items, half * sizeof(Entry));
	sorter->ready.count = half;
	sorter->pending.count -= half;
	memmove(sorter->pending.items, sorter->pending.items + half,
		sorter->pending.count * sizeof(Entry));
}

static void note_round(CaptureSorter *sorter, uint64_t ns)
{
	uint64_t limit = ns > SLACK_NS ? ns - SLACK_NS : 0;

	if (limit < sorter->released_ns || limit - sorter->released_ns < BATCH_NS)
		return;
	sorter->released_ns = limit;
	release_older(sorter, limit);
}

static void hold(CaptureSorter *sorter, const struct record *record, CaptureFrame *frame)
{
	if (frame->awaited++ == 0)
		sorter->held += frame->size;
	sorter->held += ENTRY_COST;
	*vec_push(&sorter->pending) = (Entry){.ns = record->ns, .record = record, .frame = frame};
}

static void let_go(CaptureSorter *sorter, CaptureFrame *frame)
{
	sorter->held -= ENTRY_COST;
	if (--frame->awaited > 0)
		return;
	sorter->held -= frame->size;
	if (!frame->current)
		free(frame);
}

static const struct record *take_ready(CaptureSorter *sorter, CaptureReader *reader)
{
	const Entry *entry = &sorter->ready.items[sorter->next++];

	sorter->last_frame = entry->frame;
	if (entry->ns < sorter->last_ns)
		capture_reader_count_late(reader);
	else
		sorter->last_ns = entry->ns;
	return entry->record;
}

int capture_read_sorted(CaptureReader *reader, const struct record **ret_record)
{
	CaptureSorter *sorter = capture_reader_sorter(reader);

	if (sorter->last_frame)
		let_go(sorter, sorter->last_frame);
	sorter->last_frame = NULL;
	for (;;) {
		const struct record *record;
		int r;

		if (sorter->next < sorter->ready.count) {
			*ret_record = take_ready(sorter, reader);
			return 1;
		}
		if (sorter->ended)
			return 0;
		r = capture_read(reader, &record);
		if (r < 0)
			return r;
		if (r == 0) {
			sorter->ended = true;
			release_all(sorter);
		} else if (record_is_event(record)) {
			hold(sorter, record, capture_reader_frame(reader));
			if (sorter->held > HELD_MAX)
				release_older_half(sorter);
		} else {
			if (record->kind == REC_WATERMARK)
				note_round(sorter, record->ns);
			*ret_record = record;
			return 1;
		}
	}
}

CaptureSorter *capture_sorter_new(void)
{
	return xcalloc(1, sizeof(CaptureSorter));
}

/* Frames that entries still refer to are freed with them. */
void capture_sorter_free(CaptureSorter *sorter)
{
	if (sorter->last_frame)
		let_go(sorter, sorter->last_frame);
	for (size_t i = sorter->next; i < sorter->ready.count; i++)
		let_go(sorter, sorter->ready.items[i].frame);
	for (size_t i = 0; i < sorter->pending.count; i++)
		let_go(sorter, sorter->pending.items[i].frame);
	vec_free(&sorter->pending);
	vec_free(&sorter->ready);
	vec_free(&sorter->spare);
	free(sorter);
}
