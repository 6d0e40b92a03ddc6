/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rings in files with the layout of the kernel's (kernel/bpf/ringbuf.c): the reader's position, the
 * writers' position, the data. What is written is in order of time, whatever ring it is in, and
 * nothing is passed on before what could be older.
 */
#include "ring_reader.h"
#include "test_tools.h"
#include "util.h"
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GROUPS	  3
#define SMALL	  4096ULL
#define LARGE	  (1ULL << 20) /* several of the pieces that are mapped */
#define ENTRY_MAX 4096

typedef struct FakeRing {
	int fd;
	size_t size;
	uint64_t *consumer, *producers;
	uint8_t *data;
} FakeRing;

typedef struct Rings {
	FakeRing rings[GROUPS][RINGS];
	RingReader *reader;
	uint64_t passed[256]; /* times of the records passed on */
	uint64_t sums[256];   /* of their bytes */
	size_t count;
	/* If set: written while the first record of the drain is passed on. */
	FakeRing *written_meanwhile;
	int result; /* what on_record returns */
} Rings;

static void make_ring(FakeRing *ring, size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);
	uint8_t *memory;

	ring->size = size;
	ring->fd = memfd_create("ring", MFD_CLOEXEC);
	assert_return_code(ring->fd, 0);
	assert_return_code(ftruncate(ring->fd, 2 * page + size), 0);
	memory = mmap(NULL, 2 * page + size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	ring->consumer = (uint64_t *)memory;
	ring->producers = (uint64_t *)(memory + page);
	ring->data = memory + 2 * page;
}

static void make_rings(Rings *rings, size_t size)
{
	*rings = (Rings){.reader = ring_reader_new(GROUPS)};
	for (size_t i = 0; i < GROUPS; i++) {
		for (size_t kind = 0; kind < RINGS; kind++) {
			FakeRing *ring = &rings->rings[i][kind];

			make_ring(ring, size);
			assert_int_equal(ring_reader_add(rings->reader, i, kind, ring->fd, size),
					 0);
		}
	}
}

static void free_rings(Rings *rings)
{
	size_t page = sysconf(_SC_PAGESIZE);

	ring_reader_free(rings->reader);
	for (size_t i = 0; i < GROUPS * RINGS; i++) {
		FakeRing *ring = &rings->rings[i / RINGS][i % RINGS];

		munmap(ring->consumer, 2 * page + ring->size);
		close(ring->fd);
	}
}

static void put(FakeRing *ring, uint64_t position, const void *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ring->data[(position + i) % ring->size] = ((const uint8_t *)bytes)[i];
}

/* Writes an entry as bpf_ringbuf_output() does; returns the position of its header. */
static uint64_t write_entry(FakeRing *ring, uint64_t ns, uint32_t length, uint32_t bits)
{
	uint64_t position = *ring->producers;
	uint8_t bytes[ENTRY_MAX] = {};
	struct record record = {.len = length, .kind = REC_SWITCH, .ns = ns};
	uint32_t header = length | bits;

	memset(bytes, (uint8_t)ns, length);
	memcpy(bytes, &record, sizeof(record));
	put(ring, position, &header, sizeof(header));
	put(ring, position + BPF_RINGBUF_HDR_SZ, bytes, length);
	__atomic_store_n(ring->producers, position + (BPF_RINGBUF_HDR_SZ + length + 7) / 8 * 8,
			 __ATOMIC_RELEASE);
	return position;
}

static void complete(FakeRing *ring, uint64_t position)
{
	uint32_t *header = (uint32_t *)(ring->data + position % ring->size);

	__atomic_and_fetch(header, ~BPF_RINGBUF_BUSY_BIT, __ATOMIC_RELEASE);
}

static int take(void *user, const struct record *record)
{
	Rings *rings = user;
	const uint8_t *bytes = (const uint8_t *)record;

	rings->sums[rings->count] = 0;
	for (size_t i = sizeof(*record); i < record->len; i++)
		rings->sums[rings->count] += bytes[i];
	rings->passed[rings->count++] = record->ns;
	if (rings->written_meanwhile)
		write_entry(rings->written_meanwhile, 1, 24, 0);
	rings->written_meanwhile = NULL;
	return rings->result;
}

static int drain(Rings *rings)
{
	rings->count = 0;
	return ring_reader_drain(rings->reader, take, rings);
}

#define assert_passed(rings, ...)                                                                  \
	do {                                                                                       \
		const uint64_t expected[] = {__VA_ARGS__};                                         \
		assert_int_equal((rings)->count, ARRAY_LEN(expected));                             \
		assert_memory_equal((rings)->passed, expected, sizeof(expected));                  \
	} while (0)

static void test_order(void **state)
{
	Rings rings;
	uint64_t before;

	(void)state;
	make_rings(&rings, SMALL);
	assert_int_equal(ring_reader_watermark_ns(rings.reader), 0);
	for (uint64_t ns = 10; ns < 22; ns++)
		write_entry(&rings.rings[ns * 7 % GROUPS][RING_SCHED], ns, 24 + 8 * (ns % 3), 0);
	write_entry(&rings.rings[2][RING_BULK], 5, 64, 0);
	write_entry(&rings.rings[0][RING_BULK], 3, 64, 0);
	write_entry(&rings.rings[1][RING_COPY], 1, 64, 0);
	before = now_ns();
	assert_int_equal(drain(&rings), 0);
	assert_passed(&rings, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 3, 5, 1);
	assert_true(ring_reader_watermark_ns(rings.reader) >= before);
	assert_true(ring_reader_watermark_ns(rings.reader) <= now_ns());
	assert_int_equal(ring_reader_most_used(rings.reader, 1, RING_COPY), 72);
	assert_int_equal(ring_reader_most_used(rings.reader, 0, RING_COPY), 0);
	assert_int_equal(*rings.rings[1][RING_COPY].consumer, 72);
	assert_int_equal(drain(&rings), 0);
	assert_int_equal(rings.count, 0);
	free_rings(&rings);
}

/* A writer may be interrupted. What follows in any ring waits, because the order is not known. */
static void test_busy(void **state)
{
	Rings rings;
	FakeRing *busy;
	uint64_t position, first;

	(void)state;
	make_rings(&rings, SMALL);
	busy = &rings.rings[1][RING_SCHED];
	assert_int_equal(drain(&rings), 0);
	first = ring_reader_watermark_ns(rings.reader);
	write_entry(&rings.rings[0][RING_SCHED], 10, 24, 0);
	write_entry(busy, 11, 24, 0);
	position = write_entry(busy, 12, 24, BPF_RINGBUF_BUSY_BIT);
	write_entry(&rings.rings[2][RING_SCHED], 13, 24, 0);
	write_entry(busy, 14, 24, 0);
	write_entry(&rings.rings[2][RING_BULK], 15, 24, 0);
	assert_int_equal(drain(&rings), 0);
	assert_passed(&rings, 10, 11, 15);
	assert_int_equal(ring_reader_watermark_ns(rings.reader), first);
	write_entry(&rings.rings[0][RING_SCHED], 16, 24, 0);
	assert_int_equal(drain(&rings), 0);
	assert_int_equal(rings.count, 0);
	assert_int_equal(ring_reader_watermark_ns(rings.reader), first);
	complete(busy, position);
	assert_int_equal(drain(&rings), 0);
	assert_passed(&rings, 12, 13, 14, 16);
	assert_true(ring_reader_watermark_ns(rings.reader) > first);
	free_rings(&rings);
}

/* Records of many lengths, so that they wrap around the end at all places. */
static void test_wrap(void **state)
{
	Rings rings;
	FakeRing *ring;
	bool wrapped = false;

	(void)state;
	make_rings(&rings, SMALL);
	ring = &rings.rings[0][RING_SCHED];
	for (uint64_t ns = 1; ns < 2000; ns++) {
		uint32_t length = 16 + ns * 8 % 1000;
		uint64_t position = *ring->producers;

		write_entry(ring, ns, length, 0);
		wrapped |= (position + BPF_RINGBUF_HDR_SZ) % SMALL + length > SMALL;
		if (ns % 3)
			write_entry(ring, 0, 40, BPF_RINGBUF_DISCARD_BIT);
		assert_int_equal(drain(&rings), 0);
		assert_passed(&rings, ns);
		assert_int_equal(rings.sums[0], (length - sizeof(struct record)) * (uint8_t)ns);
		assert_int_equal(*ring->consumer, *ring->producers);
	}
	assert_true(wrapped);
	free_rings(&rings);
}

/* Returns how many bytes of a ring's file are mapped for reading alone, with its writers' page. */
static uint64_t mapped_bytes(const FakeRing *ring)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/maps", "re");
	unsigned long start, end, inode;
	char line[512], protection[5];
	uint64_t bytes = 0;
	struct stat stat;

	assert_non_null(file);
	assert_return_code(fstat(ring->fd, &stat), 0);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%lx-%lx %4s %*x %*s %lu", &start, &end, protection, &inode) ==
			    4 &&
		    inode == stat.st_ino && protection[1] == '-')
			bytes += end - start;
	return bytes;
}

/* What has been read is not mapped any more, however the ring was filled. */
static void test_mapped(void **state)
{
	Rings rings;
	FakeRing *ring;
	uint64_t most = 0;

	(void)state;
	make_rings(&rings, LARGE);
	ring = &rings.rings[1][RING_BULK];
	for (uint64_t ns = 1; *ring->producers < 8 * LARGE;) {
		uint64_t first = ns, room = 1 + random_below(LARGE / ENTRY_MAX - 1);

		while (ns - first < room && ns - first < ARRAY_LEN(rings.passed))
			write_entry(ring, ns++, ENTRY_MAX - 8 * (1 + random_below(8)), 0);
		assert_int_equal(drain(&rings), 0);
		assert_int_equal(rings.count, ns - first);
		for (uint64_t i = 0; i < rings.count; i++)
			assert_int_equal(rings.passed[i], first + i);
		most = MAX(most, mapped_bytes(ring));
	}
	assert_uint_in_range(most, 1, LARGE / 2);
	free_rings(&rings);
}

/* A drain ends where the rings ended when it began, so that it ends. */
static void test_written_meanwhile(void **state)
{
	Rings rings;

	(void)state;
	make_rings(&rings, SMALL);
	write_entry(&rings.rings[0][RING_SCHED], 10, 24, 0);
	write_entry(&rings.rings[1][RING_SCHED], 11, 24, 0);
	rings.written_meanwhile = &rings.rings[0][RING_SCHED];
	assert_int_equal(drain(&rings), 0);
	assert_passed(&rings, 10, 11);
	assert_false(ring_reader_is_behind(rings.reader));
	assert_int_equal(drain(&rings), 0);
	assert_passed(&rings, 1);
	free_rings(&rings);
}

/* What was written while the positions were read may lack what precedes it in another ring. */
static void test_too_late(void **state)
{
	Rings rings;
	uint64_t late_ns = now_ns() + 20 * NSEC_PER_MSEC;

	(void)state;
	make_rings(&rings, SMALL);
	write_entry(&rings.rings[0][RING_SCHED], 10, 24, 0);
	write_entry(&rings.rings[0][RING_SCHED], late_ns, 24, 0);
	write_entry(&rings.rings[0][RING_SCHED], 12, 24, 0);
	write_entry(&rings.rings[1][RING_SCHED], 11, 24, 0);
	assert_int_equal(drain(&rings), 0);
	assert_passed(&rings, 10, 11);
	usleep(30000);
	assert_int_equal(drain(&rings), 0);
	assert_passed(&rings, late_ns, 12);
	free_rings(&rings);
}

static void test_behind(void **state)
{
	Rings rings;
	uint64_t position;

	(void)state;
	make_rings(&rings, SMALL);
	position = write_entry(&rings.rings[2][RING_BULK], 10, 24, BPF_RINGBUF_BUSY_BIT);
	write_entry(&rings.rings[2][RING_BULK], 11, SMALL / 4, 0);
	assert_int_equal(drain(&rings), 0);
	assert_true(ring_reader_is_behind(rings.reader));
	complete(&rings.rings[2][RING_BULK], position);
	assert_int_equal(drain(&rings), 0);
	assert_passed(&rings, 10, 11);
	assert_false(ring_reader_is_behind(rings.reader));
	free_rings(&rings);
}

/* Space is returned while a drain goes on, and an error ends it. */
static void test_release(void **state)
{
	Rings rings;
	FakeRing *ring;

	(void)state;
	make_rings(&rings, SMALL);
	ring = &rings.rings[0][RING_SCHED];
	write_entry(ring, 10, SMALL / 2, 0);
	write_entry(ring, 11, 24, 0);
	rings.result = -ENOSPC;
	assert_int_equal(drain(&rings), -ENOSPC);
	assert_passed(&rings, 10);
	assert_int_equal(*ring->consumer, SMALL / 2 + 8);
	rings.result = 0;
	assert_int_equal(drain(&rings), 0);
	assert_passed(&rings, 11);
	free_rings(&rings);
}

/* An entry that is no record is passed over. */
static void test_no_record(void **state)
{
	Rings rings;
	FakeRing *ring;
	uint32_t too_long = 4000;

	(void)state;
	make_rings(&rings, SMALL);
	ring = &rings.rings[0][RING_SCHED];
	put(ring, write_entry(ring, 10, 24, 0) + BPF_RINGBUF_HDR_SZ, &too_long, sizeof(too_long));
	write_entry(ring, 11, 8, 0);
	write_entry(ring, 12, 24, 0);
	assert_int_equal(drain(&rings), 0);
	assert_passed(&rings, 12);
	free_rings(&rings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	  cmocka_unit_test(test_busy),
		cmocka_unit_test(test_wrap),	  cmocka_unit_test(test_written_meanwhile),
		cmocka_unit_test(test_behind),	  cmocka_unit_test(test_release),
		cmocka_unit_test(test_no_record), cmocka_unit_test(test_too_late),
		cmocka_unit_test(test_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
