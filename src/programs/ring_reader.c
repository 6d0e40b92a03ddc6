/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ring_reader.h"
#include "util.h"
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Space is returned to the writers after this part of a ring, and at the end of a drain. */
#define RELEASE_PART 16
/* Data is mapped in pieces of this size. */
#define MAPPED_PIECE (256u << 10)

typedef struct Ring {
	int fd;
	uint64_t size;
	uint64_t *consumer;		 /* a mapped page: the reader's position */
	const uint64_t *producers;	 /* a mapped page: the writers' position */
	uint8_t *data;			 /* addresses for all data; some pieces of it are mapped: */
	uint64_t mapped_from, mapped_to; /* positions, multiples of a piece */
	uint64_t position;		 /* up to which records were read */
	uint64_t released;		 /* the part of it that the writers know */
	uint64_t end;			 /* where this drain ends, */
	uint64_t end_ns;		 /* and before which time */
	uint32_t length;		 /* of the record at `position`, with its time in ns */
	uint64_t ns;
	uint64_t most_used;
} Ring;

struct RingReader {
	uint32_t groups;
	uint64_t watermark_ns;
	bool behind;
	void *wrapped; /* a copy of a record that wraps around the end of its ring */
	size_t wrapped_size;
	Ring (*rings)[RINGS]; /* by group */
	Ring **heap;	      /* the rings that have a record, the one with the oldest first */
};

/* ---- mapping ------------------------------------------------------------------------------ */

RingReader *ring_reader_new(uint32_t groups)
{
	RingReader *reader = xcalloc(1, sizeof(*reader));

	reader->groups = groups;
	reader->rings = xcalloc(groups, sizeof(*reader->rings));
	reader->heap = xcalloc(groups, sizeof(*reader->heap));
	return reader;
}

static void *map(void *address, size_t size, int protection, int flags, int fd, uint64_t offset)
{
	void *memory = mmap(address, size, protection, flags, fd, offset);

	return memory == MAP_FAILED ? NULL : memory;
}

int ring_reader_add(RingReader *reader, uint32_t group, enum ring_index kind, int fd, uint64_t size)
{
	Ring *ring = &reader->rings[group][kind];
	size_t page = sysconf(_SC_PAGESIZE);

	ring->fd = fd;
	ring->size = size;
	ring->consumer = map(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!ring->consumer)
		return -errno;
	ring->producers = map(NULL, page, PROT_READ, MAP_SHARED, fd, page);
	if (!ring->producers)
		return -errno;
	/* The kernel offers the data twice, so that no record wraps; here it is needed once. */
	ring->data = map(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return ring->data ? 0 : -errno;
}

static uint64_t piece_size(const Ring *ring)
{
	return MIN(ring->size, (uint64_t)MAPPED_PIECE);
}

/* Maps the data up to `end`, where this drain ends. */
static int map_up_to_end(Ring *ring)
{
	size_t page = sysconf(_SC_PAGESIZE);

	while (ring->mapped_to < ring->end) {
		uint64_t offset = ring->mapped_to & (ring->size - 1);

		if (!map(ring->data + offset, piece_size(ring), PROT_READ, MAP_SHARED | MAP_FIXED,
			 ring->fd, 2 * page + offset))
			return -errno;
		ring->mapped_to += piece_size(ring);
	}
	return 0;
}

/*
 * Unmaps pieces that have been read, except one that is mapped for what follows around the end of
 * the ring. If that fails, the piece stays mapped.
 */
static void unmap_read(Ring *ring)
{
	uint64_t piece = piece_size(ring);

	for (; ring->mapped_from + piece <= ring->position; ring->mapped_from += piece) {
		if (ring->mapped_from + ring->size < ring->mapped_to)
			continue;
		map(ring->data + (ring->mapped_from & (ring->size - 1)), piece, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	}
}

static void free_ring(Ring *ring)
{
	size_t page = sysconf(_SC_PAGESIZE);

	if (ring->consumer)
		munmap(ring->consumer, page);
	if (ring->producers)
		munmap((void *)ring->producers, page);
	if (ring->data)
		munmap(ring->data, ring->size);
}

void ring_reader_free(RingReader *reader)
{
	if (!reader)
		return;
	for (size_t i = 0; i < reader->groups; i++)
		for (size_t kind = 0; kind < RINGS; kind++)
			free_ring(&reader->rings[i][kind]);
	free(reader->rings);
	free(reader->heap);
	free(reader->wrapped);
	free(reader);
}

/* ---- one ring ----------------------------------------------------------------------------- */

static const void *data_at(const Ring *ring, uint64_t position)
{
	return ring->data + (position & (ring->size - 1));
}

/*
 * Returns the record at the ring's position, or a copy, valid until the next call, if it wraps.
 */
static const struct record *record_at_position(RingReader *reader, const Ring *ring)
{
	uint64_t start = ring->position + BPF_RINGBUF_HDR_SZ;
	size_t before_end = ring->size - (start & (ring->size - 1));

	if (ring->length <= before_end)
		return data_at(ring, start);
	if (ring->length > reader->wrapped_size) {
		reader->wrapped_size = ring->length;
		reader->wrapped = xrealloc(reader->wrapped, ring->length);
	}
	memcpy(reader->wrapped, data_at(ring, start), before_end);
	memcpy((uint8_t *)reader->wrapped + before_end, data_at(ring, start + before_end),
	       ring->length - before_end);
	return reader->wrapped;
}

static void release(Ring *ring)
{
	__atomic_store_n(ring->consumer, ring->position, __ATOMIC_RELEASE);
	ring->released = ring->position;
}

static void pass_entry(Ring *ring, uint32_t length)
{
	ring->position += (BPF_RINGBUF_HDR_SZ + (uint64_t)length + 7) / 8 * 8;
	if (ring->position - ring->released > ring->size / RELEASE_PART)
		release(ring);
}

/*
 * wallprof's own programs wrote the records; nevertheless nothing is read beyond the end of one.
 */
static bool is_record(const Ring *ring, uint64_t start, uint32_t length)
{
	return length >= sizeof(struct record) && *(const uint32_t *)data_at(ring, start) <= length;
}

enum next { NEXT_READY, NEXT_BUSY, NEXT_NONE };

/*
 * Goes to the next record. Entries have multiples of 8 bytes, so each of a record's first two words
 * is in one piece even if the record wraps. A writer sets the busy bit before it moves the writers'
 * position, and clears it when the record is complete.
 */
static enum next find_next(Ring *ring)
{
	while (ring->position < ring->end) {
		const uint32_t *header = data_at(ring, ring->position);
		uint32_t word = __atomic_load_n(header, __ATOMIC_ACQUIRE);
		uint32_t length = word & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		uint64_t start = ring->position + BPF_RINGBUF_HDR_SZ;

		if (word & BPF_RINGBUF_BUSY_BIT)
			return NEXT_BUSY;
		if (!(word & BPF_RINGBUF_DISCARD_BIT) && is_record(ring, start, length)) {
			ring->length = length;
			ring->ns = *(const uint64_t *)data_at(ring,
							      start + offsetof(struct record, ns));
			return ring->ns < ring->end_ns ? NEXT_READY : NEXT_NONE;
		}
		pass_entry(ring, length);
	}
	return NEXT_NONE;
}

/* ---- all rings of a kind ------------------------------------------------------------------ */

/* Moves the ring at this index of the heap down to where it belongs. */
static void sift_down(Ring **heap, size_t count, size_t index)
{
	Ring *ring = heap[index];

	for (;;) {
		size_t child = 2 * index + 1;

		if (child + 1 < count && heap[child + 1]->ns < heap[child]->ns)
			child++;
		if (child >= count || heap[child]->ns >= ring->ns)
			break;
		heap[index] = heap[child];
		index = child;
	}
	heap[index] = ring;
}

/*
 * Reads the writers' positions: this drain ends there. They are read one after the other, so a ring
 * may have a record whose cause was written too late for this drain, into another ring that was
 * read before. The time of such a record is after begin_ns. Returns 0 or a negative errno.
 */
static int begin_drain(RingReader *reader, enum ring_index kind, uint64_t begin_ns)
{
	for (size_t i = 0; i < reader->groups; i++) {
		Ring *ring = &reader->rings[i][kind];
		int error;

		ring->end = __atomic_load_n(ring->producers, __ATOMIC_ACQUIRE);
		ring->end_ns = begin_ns;
		ring->most_used = MAX(ring->most_used, ring->end - ring->position);
		error = map_up_to_end(ring);
		if (error)
			return error;
	}
	return 0;
}

static void end_drain(RingReader *reader, enum ring_index kind)
{
	for (size_t i = 0; i < reader->groups; i++) {
		Ring *ring = &reader->rings[i][kind];
		uint64_t end = __atomic_load_n(ring->producers, __ATOMIC_RELAXED);

		release(ring);
		unmap_read(ring);
		reader->behind |= end - ring->position > ring->size / 4;
	}
}

/* Puts the rings that have a record into the heap. Returns their number. */
static size_t fill_heap(RingReader *reader, enum ring_index kind, bool *ret_busy)
{
	size_t count = 0;

	for (size_t i = 0; i < reader->groups; i++) {
		Ring *ring = &reader->rings[i][kind];
		enum next next = find_next(ring);

		*ret_busy |= next == NEXT_BUSY;
		if (next == NEXT_READY)
			reader->heap[count++] = ring;
	}
	for (size_t i = count / 2; i-- > 0;)
		sift_down(reader->heap, count, i);
	return count;
}

/*
 * Sets *ret_busy if it stopped before the end, at a record that was still being written: it is not
 * known which other records are older.
 */
static int merge(RingReader *reader, enum ring_index kind,
		 int (*on_record)(void *user, const struct record *record), void *user,
		 bool *ret_busy)
{
	size_t count = fill_heap(reader, kind, ret_busy);

	while (count > 0 && !*ret_busy) {
		Ring *ring = reader->heap[0];
		int error = on_record(user, record_at_position(reader, ring));
		enum next next;

		pass_entry(ring, ring->length);
		if (error)
			return error;
		next = find_next(ring);
		*ret_busy = next == NEXT_BUSY;
		if (next == NEXT_NONE)
			reader->heap[0] = reader->heap[--count];
		if (count > 0)
			sift_down(reader->heap, count, 0);
	}
	return 0;
}

int ring_reader_drain(RingReader *reader, int (*on_record)(void *user, const struct record *record),
		      void *user)
{
	uint64_t begin_ns = now_ns();
	bool whole = true;

	reader->behind = false;
	for (size_t kind = 0; kind < RINGS; kind++) {
		bool busy = false;
		int error = begin_drain(reader, kind, begin_ns);

		if (!error)
			error = merge(reader, kind, on_record, user, &busy);
		end_drain(reader, kind);
		if (error)
			return error;
		whole &= !busy;
	}
	if (whole)
		reader->watermark_ns = begin_ns;
	return 0;
}

uint64_t ring_reader_watermark_ns(const RingReader *reader)
{
	return reader->watermark_ns;
}

bool ring_reader_is_behind(const RingReader *reader)
{
	return reader->behind;
}

uint64_t ring_reader_most_used(const RingReader *reader, uint32_t group, enum ring_index kind)
{
	return reader->rings[group][kind].most_used;
}
