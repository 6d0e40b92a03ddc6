/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture_reader.c - reads a capture frame by frame; nothing in it is trusted.
 *
 * The records of a frame are returned only after the whole frame was decompressed and its checksum
 * was right. So a torn or corrupt part costs its frame and what follows, and never yields a wrong
 * record. Memory: one frame, plus what the sorter holds back.
 */
#include "capture.h"
#include "capture_format.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define INPUT_SIZE	 (256u << 10)
#define FRAME_HEADER_MAX 18 /* the longest that zstd's format allows, its magic included */
#define FRAME_HEADER_MIN 5  /* up to the descriptor byte, which determines the rest */

/* Frame_Header_Descriptor of the zstd format. */
#define DESCRIPTOR_CHECKSUM 0x04

struct CaptureReader {
	int fd;
	ZSTD_DCtx *zstd;
	uint32_t version;
	uint8_t *input;
	size_t input_used, input_size;
	CaptureFrame *frame;
	size_t frame_used;
	uint64_t frames; /* complete ones so far */
	bool ended;
	char *damage;
	CaptureCounts counts;
	CaptureSorter *sorter;
};

/*
 * Makes at least `want` bytes of input available, unless the file ends before. Returns how many
 * there are, or a negative errno.
 */
static ssize_t fill(CaptureReader *reader, size_t want)
{
	size_t have = reader->input_size - reader->input_used;

	if (have >= want)
		return have;
	memmove(reader->input, reader->input + reader->input_used, have);
	reader->input_used = 0;
	reader->input_size = have;
	while (reader->input_size < want) {
		ssize_t n = read(reader->fd, reader->input + reader->input_size,
				 INPUT_SIZE - reader->input_size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		reader->input_size += n;
	}
	return reader->input_size;
}

/* Ends the reading because of damage. */
static int end_damaged(CaptureReader *reader, const char *why)
{
	reader->ended = true;
	free(reader->damage);
	reader->damage =
		xasprintf("cut off after %" PRIu64 " frames: %s; everything before is used",
			  reader->frames, why);
	return 0;
}

static void drop_frame(CaptureReader *reader)
{
	CaptureFrame *frame = reader->frame;

	reader->frame = NULL;
	reader->frame_used = 0;
	if (!frame)
		return;
	frame->current = false;
	if (frame->awaited == 0)
		free(frame);
}

static int skip_input(CaptureReader *reader, uint64_t size)
{
	while (size > 0) {
		ssize_t have = fill(reader, 1);
		uint64_t step;

		if (have < 0)
			return have;
		if (have == 0)
			return end_damaged(reader, "the last frame is incomplete");
		step = MIN((uint64_t)have, size);
		reader->input_used += step;
		size -= step;
	}
	return 1;
}

/* Returns 1 if frame->data is complete and correct, 0 if it is not, or -errno. */
static int decompress(CaptureReader *reader, CaptureFrame *frame)
{
	ZSTD_outBuffer out = {.dst = frame->data, .size = frame->size};

	ZSTD_DCtx_reset(reader->zstd, ZSTD_reset_session_only);
	for (;;) {
		ssize_t have = fill(reader, 1);
		ZSTD_inBuffer in = {.src = reader->input + reader->input_used};
		size_t written = out.pos, left;

		if (have < 0)
			return have;
		if (have == 0)
			return end_damaged(reader, "the last frame is incomplete");
		in.size = have;
		left = ZSTD_decompressStream(reader->zstd, &out, &in);
		reader->input_used += in.pos;
		if (ZSTD_isError(left))
			return end_damaged(reader, "the next frame is corrupt");
		if (left == 0 && out.pos == out.size)
			return 1;
		if (left == 0 || (in.pos == 0 && out.pos == written))
			return end_damaged(reader, "the next frame has a wrong length");
	}
}

static int read_data_frame(CaptureReader *reader, size_t have)
{
	const uint8_t *start = reader->input + reader->input_used;
	unsigned long long size = ZSTD_getFrameContentSize(start, have);
	int r;

	/* The writer always adds both; without them a frame cannot be proven complete. */
	if (have < FRAME_HEADER_MIN || size == ZSTD_CONTENTSIZE_ERROR)
		return end_damaged(reader, "the next frame's header is corrupt");
	if (!(start[4] & DESCRIPTOR_CHECKSUM) || size == ZSTD_CONTENTSIZE_UNKNOWN)
		return end_damaged(reader, "the next frame has no size or no checksum");
	if (size > CAPTURE_FRAME_MAX)
		return end_damaged(reader, "the next frame is too large");
	reader->frame = xmalloc(sizeof(*reader->frame) + size);
	*reader->frame = (CaptureFrame){.size = size, .current = true};
	r = decompress(reader, reader->frame);
	if (r <= 0) {
		drop_frame(reader);
		return r;
	}
	if (reader->version < CAPTURE_VERSION)
		reader->frame = capture_old_renew(reader->frame);
	reader->frames++;
	return 1;
}

/* Returns 1 with the next frame of records in reader->frame, 0 at the end, or -errno. */
static int next_frame(CaptureReader *reader)
{
	drop_frame(reader);
	for (;;) {
		ssize_t have = fill(reader, FRAME_HEADER_MAX);
		uint32_t words[2] = {};
		int r;

		if (have < 0)
			return have;
		if (have == 0) {
			reader->ended = true;
			return 0;
		}
		memcpy(words, reader->input + reader->input_used, MIN((size_t)have, sizeof(words)));
		if ((words[0] & ZSTD_MAGIC_SKIPPABLE_MASK) != ZSTD_MAGIC_SKIPPABLE_START)
			return read_data_frame(reader, have);
		/* Later versions may add skippable frames; this one skips them. */
		r = skip_input(reader, CAPTURE_SKIPPABLE_LEN + (uint64_t)words[1]);
		if (r <= 0)
			return r;
	}
}

static int read_header(CaptureReader *reader, const char **reterr_message)
{
	static const u8 name[8] = CAPTURE_NAME;
	struct capture_header header;
	ssize_t have = fill(reader, sizeof(header));

	if (have < 0)
		return have;
	*reterr_message = "not a wallprof capture";
	if ((size_t)have < sizeof(header))
		return -EBADMSG;
	memcpy(&header, reader->input + reader->input_used, sizeof(header));
	if (header.magic != CAPTURE_SKIPPABLE_MAGIC ||
	    header.size != sizeof(header) - CAPTURE_SKIPPABLE_LEN ||
	    memcmp(header.name, name, sizeof(name)))
		return -EBADMSG;
	*reterr_message = "a wallprof capture of another format version: use the wallprof that "
			  "recorded it";
	if (header.version < CAPTURE_VERSION_OLDEST || header.version > CAPTURE_VERSION ||
	    header.flags != 0)
		return -EBADMSG;
	*reterr_message = NULL;
	reader->version = header.version;
	reader->input_used += sizeof(header);
	return 0;
}

int capture_reader_open(const char *path, CaptureReader **ret_reader, const char **reterr_message)
{
	CaptureReader *reader;
	int r;

	*reterr_message = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	reader = xcalloc(1, sizeof(*reader));
	reader->fd = fd;
	reader->input = xmalloc(INPUT_SIZE);
	reader->sorter = capture_sorter_new();
	reader->zstd = ZSTD_createDCtx();
	r = reader->zstd ? read_header(reader, reterr_message) : -ENOMEM;
	if (r < 0) {
		capture_reader_free(reader);
		return r;
	}
	*ret_reader = reader;
	return 0;
}

int capture_reader_open_fd(int fd, CaptureReader **ret_reader, const char **reterr_message)
{
	_cleanup_free_ char *path = xasprintf("/proc/self/fd/%d", fd);

	return capture_reader_open(path, ret_reader, reterr_message);
}

double capture_reader_share(const CaptureReader *reader)
{
	struct stat st;
	off_t at = lseek(reader->fd, 0, SEEK_CUR);

	if (at <= 0 || fstat(reader->fd, &st) || st.st_size <= 0)
		return 0;
	return MIN((double)at / st.st_size, 1.0);
}

uint64_t capture_reader_content(const CaptureReader *reader)
{
	return capture_content_size(reader->fd);
}

int capture_reader_rewind(CaptureReader *reader)
{
	const char *message;

	capture_sorter_free(reader->sorter);
	reader->sorter = capture_sorter_new();
	drop_frame(reader);
	reader->input_used = reader->input_size = 0;
	reader->frames = 0;
	reader->ended = false;
	free(reader->damage);
	reader->damage = NULL;
	reader->counts = (CaptureCounts){};
	if (lseek(reader->fd, 0, SEEK_SET) < 0)
		return -errno;
	return read_header(reader, &message);
}

/* Returns 1 with the next length-checked record of any kind, 0 at the end, or -errno. */
static int next_record(CaptureReader *reader, const struct record **ret_record)
{
	const struct record *record;
	size_t left;

	while (!reader->ended && (!reader->frame || reader->frame_used == reader->frame->size)) {
		int r = next_frame(reader);

		if (r < 0)
			return r;
	}
	if (reader->ended)
		return 0;
	left = reader->frame->size - reader->frame_used;
	record = (const struct record *)(reader->frame->data + reader->frame_used);
	if (left < sizeof(*record) || record->len < sizeof(*record) || record->len % 8 ||
	    record->len > left) {
		reader->counts.malformed++;
		return end_damaged(reader, "a record's length is impossible");
	}
	reader->frame_used += record->len;
	*ret_record = record;
	return 1;
}

int capture_read(CaptureReader *reader, const struct record **ret_record)
{
	for (;;) {
		int r = next_record(reader, ret_record);

		if (r <= 0)
			return r;
		switch (capture_check(*ret_record)) {
		case CAPTURE_RECORD_UNKNOWN:
			reader->counts.unknown++;
			break;
		case CAPTURE_RECORD_MALFORMED:
			reader->counts.malformed++;
			break;
		case CAPTURE_RECORD_GOOD:
			reader->counts.records++;
			reader->counts.by_kind[(*ret_record)->kind]++;
			return 1;
		}
	}
}

const char *capture_reader_damage(const CaptureReader *reader)
{
	return reader->damage;
}

const CaptureCounts *capture_reader_counts(const CaptureReader *reader)
{
	return &reader->counts;
}

CaptureFrame *capture_reader_frame(CaptureReader *reader)
{
	return reader->frame;
}

CaptureSorter *capture_reader_sorter(CaptureReader *reader)
{
	return reader->sorter;
}

void capture_reader_count_late(CaptureReader *reader)
{
	reader->counts.late++;
}

void capture_reader_free(CaptureReader *reader)
{
	if (!reader)
		return;
	capture_sorter_free(reader->sorter);
	drop_frame(reader);
	ZSTD_freeDCtx(reader->zstd);
	close(reader->fd);
	free(reader->input);
	free(reader->damage);
	free(reader);
}
