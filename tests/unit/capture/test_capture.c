/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture.h"
#include "make_record.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zstd.h>

#include <cmocka.h>

#define HEADER_LEN 32

typedef VEC(uint8_t) Bytes;

/* A small capture of three frames, what its stream is, and where its frames end. */
typedef struct Fixture {
	char *path;
	Bytes file, stream;
	size_t file_ends[4], stream_ends[4]; /* [0]: the header alone */
} Fixture;

static void push_bytes(Bytes *bytes, const void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		*vec_push(bytes) = ((const uint8_t *)data)[i];
}

static void read_stream(FILE *file, Bytes *bytes)
{
	char chunk[4096];
	size_t n;

	while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
		push_bytes(bytes, chunk, n);
}

static void write_file(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void put(CaptureWriter *writer, Bytes *stream, struct record *record)
{
	assert_int_equal(capture_write(writer, record), 0);
	if (stream)
		push_bytes(stream, record, record->len);
	free(record);
}

static int set_up(void **state)
{
	static const uint64_t pcs[] = {0x401000, 0x402000, 0x7f0000001234};
	Fixture *fixture = xcalloc(1, sizeof(*fixture));
	CaptureWriter *writer;
	FILE *file;
	int fd;

	fixture->path = make_temporary(&fd);
	assert_int_equal(capture_writer_new(fd, 1, 1, &writer), 0);
	fixture->file_ends[0] = capture_writer_file_bytes(writer);
	for (int frame = 1; frame <= 3; frame++) {
		put(writer, &fixture->stream,
		    make_record(REC_META, 0, 0, sizeof(struct rec_meta), "key=value", 10));
		for (int i = 0; i < 5; i++)
			put(writer, &fixture->stream, make_waking(frame * 100 + i, i, frame));
		put(writer, &fixture->stream, make_stack(7, STACK_USER, 4711, pcs, 3));
		assert_int_equal(capture_flush(writer), 0);
		fixture->file_ends[frame] = capture_writer_file_bytes(writer);
		fixture->stream_ends[frame] = fixture->stream.count;
	}
	assert_int_equal(capture_writer_close(writer), 0);
	file = fopen(fixture->path, "r");
	assert_non_null(file);
	read_stream(file, &fixture->file);
	fclose(file);
	assert_int_equal(fixture->file_ends[0], HEADER_LEN);
	assert_int_equal(fixture->file_ends[3], fixture->file.count);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	unlink(fixture->path);
	free(fixture->path);
	vec_free(&fixture->file);
	vec_free(&fixture->stream);
	free(fixture);
	return 0;
}

/* All records of a capture. */
static int read_all(const char *path, Bytes *ret_stream, bool *ret_damaged, CaptureCounts *counts)
{
	const struct record *record;
	const char *message;
	CaptureReader *reader;
	int r = capture_reader_open(path, &reader, &message);

	if (r < 0) {
		assert_true(r != -EBADMSG || message);
		return r;
	}
	while ((r = capture_read(reader, &record)) > 0)
		push_bytes(ret_stream, record, record->len);
	*ret_damaged = capture_reader_damage(reader) != NULL;
	if (counts)
		*counts = *capture_reader_counts(reader);
	capture_reader_free(reader);
	return r;
}

static void test_round_trip(void **state)
{
	const Fixture *fixture = *state;
	Bytes stream = {};
	CaptureCounts counts;
	bool damaged;

	assert_int_equal(read_all(fixture->path, &stream, &damaged, &counts), 0);
	assert_false(damaged);
	assert_int_equal(stream.count, fixture->stream.count);
	assert_memory_equal(stream.items, fixture->stream.items, stream.count);
	assert_int_equal(counts.records, 21);
	assert_int_equal(counts.by_kind[REC_WAKING], 15);
	assert_int_equal(counts.by_kind[REC_STACK], 3);
	assert_int_equal(counts.unknown + counts.malformed + counts.late, 0);
	vec_free(&stream);
}

static void test_zstd_reads_it(void **state)
{
	const Fixture *fixture = *state;
	_cleanup_free_ char *command = xasprintf("zstd -dc < '%s'", fixture->path);
	FILE *pipe = popen(command, "r");
	Bytes stream = {};

	assert_non_null(pipe);
	read_stream(pipe, &stream);
	assert_int_equal(pclose(pipe), 0);
	assert_int_equal(stream.count, fixture->stream.count);
	assert_memory_equal(stream.items, fixture->stream.items, stream.count);
	vec_free(&stream);
}

static void test_rewind(void **state)
{
	const Fixture *fixture = *state;
	const struct record *record;
	const char *message;
	CaptureReader *reader;

	assert_int_equal(capture_reader_open(fixture->path, &reader, &message), 0);
	for (int round = 0; round < 3; round++) {
		/* Left in the middle, once of the file order, once of the sorted one. */
		for (int i = 0; i < 4; i++)
			assert_int_equal(round == 1 ? capture_read_sorted(reader, &record)
						    : capture_read(reader, &record),
					 1);
		assert_int_equal(capture_reader_rewind(reader), 0);
		assert_int_equal(capture_read(reader, &record), 1);
		assert_memory_equal(record, fixture->stream.items, record->len);
		assert_int_equal(capture_reader_counts(reader)->records, 1);
		assert_int_equal(capture_reader_rewind(reader), 0);
	}
	capture_reader_free(reader);
}

static void test_torn_at_every_byte(void **state)
{
	const Fixture *fixture = *state;

	for (size_t size = 0; size <= fixture->file.count; size++) {
		Bytes stream = {};
		bool damaged = false;
		int whole = -1, r;

		for (int i = 0; i < 4; i++)
			if (fixture->file_ends[i] <= size)
				whole = i;
		write_file(fixture->path, fixture->file.items, size);
		r = read_all(fixture->path, &stream, &damaged, NULL);
		if (whole < 0) {
			assert_int_equal(r, -EBADMSG);
			continue;
		}
		assert_int_equal(r, 0);
		assert_int_equal(stream.count, fixture->stream_ends[whole]);
		if (stream.count)
			assert_memory_equal(stream.items, fixture->stream.items, stream.count);
		assert_int_equal(damaged, size != fixture->file_ends[whole]);
		vec_free(&stream);
	}
}

/*
 * Whatever bit flips: what is read is a beginning of what was written, and less
 * than all is said to be damage. The header's 64 reserved bits go unnoticed, and
 * those few that change how a frame says the same.
 */
#define VERSION_BIT (16 * 8) /* docs/reference/capture-format.md, 1.1 */

static void test_flipped_bits(void **state)
{
	const Fixture *fixture = *state;
	int unnoticed = 0;

	for (size_t bit = 0; bit < fixture->file.count * 8; bit++) {
		Bytes stream = {};
		bool damaged = false;
		int r;

		if (bit == VERSION_BIT) /* version 3 becomes 2, which also has valid records */
			continue;
		fixture->file.items[bit / 8] ^= 1 << bit % 8;
		write_file(fixture->path, fixture->file.items, fixture->file.count);
		fixture->file.items[bit / 8] ^= 1 << bit % 8;
		r = read_all(fixture->path, &stream, &damaged, NULL);
		assert_true(r == 0 || r == -EBADMSG);
		assert_true(stream.count <= fixture->stream.count);
		if (stream.count)
			assert_memory_equal(stream.items, fixture->stream.items, stream.count);
		if (r == 0 && stream.count < fixture->stream.count)
			assert_true(damaged);
		if (r == 0 && !damaged)
			unnoticed++;
		vec_free(&stream);
	}
	assert_uint_in_range(unnoticed, 64, 64 + fixture->file.count * 8 / 50);
}

static void test_not_a_capture(void **state)
{
	const Fixture *fixture = *state;
	Bytes stream = {};
	bool damaged;

	write_file(fixture->path, "just some text that is longer than a header is", 46);
	assert_int_equal(read_all(fixture->path, &stream, &damaged, NULL), -EBADMSG);
	unlink(fixture->path);
	assert_int_equal(read_all(fixture->path, &stream, &damaged, NULL), -ENOENT);
	assert_int_equal(read_all("/", &stream, &damaged, NULL), -EISDIR);
	assert_int_equal(stream.count, 0);
}

static void test_other_version(void **state)
{
	const Fixture *fixture = *state;
	const char *message;
	CaptureReader *reader;

	fixture->file.items[16]++;
	write_file(fixture->path, fixture->file.items, fixture->file.count);
	assert_int_equal(capture_reader_open(fixture->path, &reader, &message), -EBADMSG);
	assert_non_null(strstr(message, "version"));
}

/* ---- records that must not get through ------------------------------------ */

static CaptureWriter *begin(const Fixture *fixture)
{
	int fd = open(fixture->path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	CaptureWriter *writer;

	assert_true(fd >= 0);
	assert_int_equal(capture_writer_new(fd, 1, 1, &writer), 0);
	return writer;
}

static void put_symbol(CaptureWriter *writer, const char *text, size_t size, uint32_t count,
		       uint32_t lib)
{
	struct rec_symbol *symbol =
		make_record(REC_SYMBOL, 0, 0, offsetof(struct rec_symbol, text), text, size);

	symbol->count = count;
	symbol->lib = lib;
	put(writer, NULL, &symbol->h);
}

static void test_malformed_records(void **state)
{
	static const uint64_t pcs[] = {1, 2};
	const Fixture *fixture = *state;
	CaptureWriter *writer = begin(fixture);
	Bytes stream = {};
	struct record *record;
	CaptureCounts counts;
	bool damaged;

	put(writer, NULL, make_record(200, 0, 0, 16, NULL, 0));
	put(writer, NULL, make_record(REC_NONE, 0, 0, 16, NULL, 0));
	put(writer, NULL, make_record(REC_STATS, 0, 0, 80, NULL, 0));
	put(writer, NULL, make_record(REC_CODE, 0, 0, 48, NULL, 0));
	put(writer, NULL, make_record(REC_SWITCH, SWITCH_PREV, 0, SWITCH_SHORT_LEN, NULL, 0));
	put(writer, NULL, make_record(REC_META, 0, 0, 16, "12345678", 8));
	put(writer, NULL, make_record(REC_META, 0, 0, 16, NULL, 0));
	record = make_stack(1, 0, 0, pcs, 2);
	((struct rec_stack *)record)->count = 3;
	put(writer, NULL, record);
	/* The gap is missing, or has no frames on one side. */
	put(writer, NULL, make_stack(1, STACK_DEEP, 0, pcs, 2));
	record = make_stack(1, STACK_DEEP, 0, pcs, 2);
	((struct rec_stack *)record)->count = 1;
	((struct rec_stack *)record)->frames[1] = 1ULL << 32;
	put(writer, NULL, record);
	record = make_file(1, 0, "/bin/true", 0);
	((struct rec_file *)record)->build_id_len = 21;
	put(writer, NULL, record);
	record = make_task(1, 1, 1);
	memset(((struct rec_task *)record)->comm, 'x', COMM_LEN);
	put(writer, NULL, record);
	put_symbol(writer, "\1\0\0\0name\0srcpath", 16, 1, 0);
	put_symbol(writer, "\1\0\0\0name\0src", 13, 2, 0);
	put_symbol(writer, "\1\0\0\0name\0src\0[mod]xxx", 21, 1, 24);
	put_symbol(writer, "\1\0\0\0name\0src\0[mod]XXXXXX", 24, 1, 13);

	record = make_record(REC_SOCKET, 0, 0, offsetof(struct rec_socket, text), "/run/x12", 8);
	((struct rec_socket *)record)->size = 9;
	put(writer, NULL, record);
	record = make_record(REC_WATCH, 0, 0, offsetof(struct rec_watch, watched),
			     &(struct watched){}, sizeof(struct watched));
	((struct rec_watch *)record)->count = 2;
	put(writer, NULL, record);
	/* Its watcher would come after it. */
	record = make_record(REC_WATCH, 0, 0, offsetof(struct rec_watch, watched),
			     &(struct watched){.via = 1}, sizeof(struct watched));
	((struct rec_watch *)record)->count = 1;
	put(writer, NULL, record);
	record = make_source("/a.c", "0123456789a", 11);
	((struct rec_source *)record)->text_size = 12;
	put(writer, NULL, record);
	put(writer, NULL, make_record(REC_SOURCE, 0, 0, 24, "no end..", 8));

	/* These times are not the kernel's. */
	put(writer, NULL, make_waking(1ULL << 63, 1, 2));
	put(writer, NULL, make_record(REC_WATERMARK, 0, UINT64_MAX, 16, NULL, 0));

	put(writer, NULL, make_waking((1ULL << 63) - 1, 1, 2));
	put(writer, NULL, make_record(REC_CODE, 0, UINT64_MAX, sizeof(struct rec_code), NULL, 0));
	put(writer, NULL, make_source("/a.c", "0123456789a", 11));
	put(writer, NULL, make_source("", "", 0));
	put_symbol(writer, "\1\0\0\0name\0src\0[mod]", 19, 1, 13);
	put(writer, NULL, make_record(REC_SWITCH, SWITCH_NEXT, 0, SWITCH_SHORT_LEN, NULL, 0));
	assert_int_equal(capture_writer_close(writer), 0);

	assert_int_equal(read_all(fixture->path, &stream, &damaged, &counts), 0);
	assert_false(damaged);
	assert_int_equal(counts.unknown, 2);
	assert_int_equal(counts.malformed, 21);
	assert_int_equal(counts.records, 6);
	vec_free(&stream);
}

static void test_writer_refuses_lengths(void **state)
{
	const Fixture *fixture = *state;
	CaptureWriter *writer = begin(fixture);
	struct record record = {.kind = REC_WATERMARK};
	static const u32 wrong[] = {0, 8, 15, 20, CAPTURE_FRAME_MAX + 8};

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		record.len = wrong[i];
		assert_int_equal(capture_write(writer, &record), -EINVAL);
	}
	record.len = sizeof(record);
	assert_int_equal(capture_write(writer, &record), 0);
	assert_int_equal(capture_writer_close(writer), 0);
}

/* A record larger than the buffer takes a frame of its own. */
static void test_large_record(void **state)
{
	const Fixture *fixture = *state;
	CaptureWriter *writer = begin(fixture);
	Bytes written = {}, stream = {};
	char *text = xmalloc(3 << 20);
	bool damaged;

	memset(text, 'x', 3 << 20);
	text[(3 << 20) - 1] = '\0';
	put(writer, &written, make_waking(1, 2, 3));
	put(writer, &written, make_record(REC_META, 0, 0, sizeof(struct rec_meta), text, 3 << 20));
	put(writer, &written, make_waking(4, 5, 6));
	assert_int_equal(capture_writer_close(writer), 0);
	assert_int_equal(read_all(fixture->path, &stream, &damaged, NULL), 0);
	assert_false(damaged);
	assert_int_equal(stream.count, written.count);
	assert_memory_equal(stream.items, written.items, stream.count);
	free(text);
	vec_free(&written);
	vec_free(&stream);
}

/* Appends to the whole fixture a frame that our writer would not write. */
static void append_frame(const Fixture *fixture, const void *content, size_t size, int checksum)
{
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	uint8_t frame[256];
	FILE *file = fopen(fixture->path, "a");
	size_t n;

	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, checksum);
	n = ZSTD_compress2(zstd, frame, sizeof(frame), content, size);
	assert_false(ZSTD_isError(n));
	ZSTD_freeCCtx(zstd);
	assert_non_null(file);
	assert_int_equal(fwrite(frame, 1, n, file), n);
	fclose(file);
}

static void test_impossible_frames(void **state)
{
	const Fixture *fixture = *state;
	struct record good = {.len = 16, .kind = REC_WATERMARK};
	/* Content size of 8 bytes: 2^40. */
	static const uint8_t huge[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe4, 0, 0, 0, 0, 0, 1, 0, 0};
	static const u32 lengths[] = {0, 8, 20, 72, 0xfffffff8};

	for (size_t i = 0; i < ARRAY_LEN(lengths) + 2; i++) {
		Bytes stream = {};
		bool damaged;

		write_file(fixture->path, fixture->file.items, fixture->file.count);
		if (i < ARRAY_LEN(lengths)) {
			struct record bad[4] = {{.len = lengths[i], .kind = REC_WATERMARK}};

			append_frame(fixture, bad, sizeof(bad), 1);
		} else if (i == ARRAY_LEN(lengths)) {
			append_frame(fixture, &good, sizeof(good), 0);
		} else {
			FILE *file = fopen(fixture->path, "a");

			assert_int_equal(fwrite(huge, 1, sizeof(huge), file), sizeof(huge));
			fclose(file);
		}
		assert_int_equal(read_all(fixture->path, &stream, &damaged, NULL), 0);
		assert_true(damaged);
		assert_int_equal(stream.count, fixture->stream.count);
		vec_free(&stream);
	}
}

static void test_later_skippable_frame(void **state)
{
	static const uint8_t note[] = {0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
	const Fixture *fixture = *state;
	struct record good = {.len = 16, .kind = REC_WATERMARK};
	FILE *file = fopen(fixture->path, "a");
	Bytes stream = {};
	bool damaged;

	assert_int_equal(fwrite(note, 1, sizeof(note), file), sizeof(note));
	fclose(file);
	append_frame(fixture, &good, sizeof(good), 1);
	assert_int_equal(read_all(fixture->path, &stream, &damaged, NULL), 0);
	assert_false(damaged);
	assert_int_equal(stream.count, fixture->stream.count + sizeof(good));
	vec_free(&stream);
}

/* ---- order of time --------------------------------------------------------- */

#define EVENTS 20000

/* Events of one drain are up to 0.9 s out of order; each drain ends with its round. */
static void write_shuffled(const Fixture *fixture, unsigned seed)
{
	CaptureWriter *writer = begin(fixture);
	uint64_t ns = 50 * NSEC_PER_SEC;

	for (uint32_t i = 0; i < EVENTS; i++) {
		uint64_t early = rand_r(&seed) % 900 * NSEC_PER_MSEC;

		ns += rand_r(&seed) % 3 * NSEC_PER_MSEC;
		put(writer, NULL, make_waking(ns - early, i, 0));
		if (i % 50 == 49)
			put(writer, NULL,
			    make_record(REC_WATERMARK, 0, ns, sizeof(struct rec_watermark), NULL,
					0));
		if (i % 1000 == 999)
			assert_int_equal(capture_flush(writer), 0);
	}
	assert_int_equal(capture_writer_close(writer), 0);
}

/* Each drain is sorted, and begins up to 20 ms before the end of the one before. */
static void write_drains(const Fixture *fixture, unsigned seed)
{
	CaptureWriter *writer = begin(fixture);
	uint64_t ns = 50 * NSEC_PER_SEC;

	for (uint32_t i = 0; i < EVENTS; i++) {
		ns += rand_r(&seed) % 3 * NSEC_PER_MSEC;
		put(writer, NULL, make_waking(ns, i, 0));
		if (i % 50 != 49)
			continue;
		put(writer, NULL,
		    make_record(REC_WATERMARK, 0, ns, sizeof(struct rec_watermark), NULL, 0));
		ns -= rand_r(&seed) % 20 * NSEC_PER_MSEC;
	}
	assert_int_equal(capture_writer_close(writer), 0);
}

static void expect_sorted(const Fixture *fixture)
{
	uint64_t last_ns = 0, last_tid = 0;
	size_t events = 0, rounds = 0;
	const struct record *record;
	const char *message;
	CaptureReader *reader;

	assert_int_equal(capture_reader_open(fixture->path, &reader, &message), 0);
	while (capture_read_sorted(reader, &record) > 0) {
		const struct rec_waking *waking = (const struct rec_waking *)record;

		if (record->kind == REC_WATERMARK) {
			rounds++;
			continue;
		}
		assert_true(record->ns >= last_ns);
		if (record->ns == last_ns) /* ties keep the order of the file */
			assert_true(waking->tid > last_tid);
		last_ns = record->ns;
		last_tid = waking->tid;
		events++;
	}
	assert_int_equal(events, EVENTS);
	assert_int_equal(rounds, EVENTS / 50);
	assert_int_equal(capture_reader_counts(reader)->late, 0);
	assert_null(capture_reader_damage(reader));
	capture_reader_free(reader);
}

static void test_sorted(void **state)
{
	write_shuffled(*state, 42);
	expect_sorted(*state);
}

static void test_sorted_drains_overlap(void **state)
{
	for (unsigned seed = 1; seed <= 5; seed++) {
		write_drains(*state, seed);
		expect_sorted(*state);
	}
}

static void test_sorted_keys_of_all_sizes(void **state)
{
	const Fixture *fixture = *state;
	CaptureWriter *writer = begin(fixture);
	const struct record *record;
	const char *message;
	CaptureReader *reader;
	uint64_t last_ns = 0;
	size_t count = 0;
	unsigned seed = 7;

	for (int i = 0; i < 1000; i++) {
		uint64_t ns = (uint64_t)rand_r(&seed) << 32 ^ (uint64_t)rand_r(&seed) << 10;

		put(writer, NULL,
		    make_waking(i == 500 ? INT64_MAX : ns >> rand_r(&seed) % 60, 0, 0));
	}
	assert_int_equal(capture_writer_close(writer), 0);
	assert_int_equal(capture_reader_open(fixture->path, &reader, &message), 0);
	for (; capture_read_sorted(reader, &record) > 0; count++) {
		assert_true(record->ns >= last_ns);
		last_ns = record->ns;
	}
	assert_int_equal(count, 1000);
	assert_true(last_ns == INT64_MAX);
	capture_reader_free(reader);
}

static void test_sorted_counts_late_ones(void **state)
{
	const Fixture *fixture = *state;
	CaptureWriter *writer = begin(fixture);
	const struct record *record;
	const char *message;
	CaptureReader *reader;

	for (uint64_t s = 1; s < 10; s++) {
		put(writer, NULL, make_waking(s * NSEC_PER_SEC, 1, 0));
		put(writer, NULL,
		    make_record(REC_WATERMARK, 0, s * NSEC_PER_SEC, sizeof(struct rec_watermark),
				NULL, 0));
	}
	put(writer, NULL, make_waking(2 * NSEC_PER_SEC, 2, 0));
	assert_int_equal(capture_writer_close(writer), 0);
	assert_int_equal(capture_reader_open(fixture->path, &reader, &message), 0);
	while (capture_read_sorted(reader, &record) > 0)
		;
	assert_int_equal(capture_reader_counts(reader)->records, 19);
	assert_int_equal(capture_reader_counts(reader)->late, 1);
	capture_reader_free(reader);
}

/* Definitions are not held back by events, nor does what is not an event sort. */
static void test_sorted_definitions_keep_their_place(void **state)
{
	static const uint64_t pcs[] = {1};
	static const uint8_t expected[] = {REC_META, REC_STACK, REC_CODE,
					   REC_END,  REC_SPACE, REC_WAKING};
	const Fixture *fixture = *state;
	CaptureWriter *writer = begin(fixture);
	const struct record *record;
	const char *message;
	CaptureReader *reader;

	put(writer, NULL, make_waking(100, 1, 0));
	put(writer, NULL, make_record(REC_META, 0, 900, sizeof(struct rec_meta), "a=b", 4));
	put(writer, NULL, make_space(50, SPACE_EXEC, 1, 0));
	put(writer, NULL, make_stack(1, 0, 0, pcs, 1));
	put(writer, NULL, make_code(70, 1, 1, 0x1000, 0x2000, 0));
	put(writer, NULL, make_record(REC_END, 0, 0, sizeof(struct rec_end), NULL, 0));
	assert_int_equal(capture_writer_close(writer), 0);
	assert_int_equal(capture_reader_open(fixture->path, &reader, &message), 0);
	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		assert_int_equal(capture_read_sorted(reader, &record), 1);
		assert_int_equal(record->kind, expected[i]);
	}
	assert_int_equal(capture_read_sorted(reader, &record), 0);
	capture_reader_free(reader);
}

/* 400 MB of events and not one round: memory stays bounded, nothing gets lost. */
static void test_sorted_without_rounds(void **state)
{
	const Fixture *fixture = *state;
	CaptureWriter *writer = begin(fixture);
	const struct record *record;
	const char *message;
	CaptureReader *reader;
	struct rusage before, after;
	size_t count = 0;

	for (uint64_t i = 0; i < 400; i++)
		put(writer, NULL, make_record(REC_WAKING, 0, i ^ 1, 1 << 20, NULL, 0));
	assert_int_equal(capture_writer_close(writer), 0);
	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(capture_reader_open(fixture->path, &reader, &message), 0);
	for (; capture_read_sorted(reader, &record) > 0; count++)
		assert_int_equal(record->ns, count);
	assert_int_equal(count, 400);
	getrusage(RUSAGE_SELF, &after);
#ifndef __SANITIZE_ADDRESS__ /* it keeps what was freed */
	assert_true(after.ru_maxrss - before.ru_maxrss < 144 << 10);
#endif
	capture_reader_free(reader);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_round_trip),
		WITH_FIXTURE(test_zstd_reads_it),
		WITH_FIXTURE(test_rewind),
		WITH_FIXTURE(test_torn_at_every_byte),
		WITH_FIXTURE(test_flipped_bits),
		WITH_FIXTURE(test_not_a_capture),
		WITH_FIXTURE(test_other_version),
		WITH_FIXTURE(test_malformed_records),
		WITH_FIXTURE(test_writer_refuses_lengths),
		WITH_FIXTURE(test_large_record),
		WITH_FIXTURE(test_impossible_frames),
		WITH_FIXTURE(test_later_skippable_frame),
		WITH_FIXTURE(test_sorted),
		WITH_FIXTURE(test_sorted_drains_overlap),
		WITH_FIXTURE(test_sorted_keys_of_all_sizes),
		WITH_FIXTURE(test_sorted_counts_late_ones),
		WITH_FIXTURE(test_sorted_definitions_keep_their_place),
		WITH_FIXTURE(test_sorted_without_rounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
