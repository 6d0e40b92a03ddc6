/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture_writer.c - buffers records and appends them as complete zstd frames.
 *
 * A record costs one bounds check and one memcpy; everything else happens once per FRAME_TARGET
 * bytes. A frame that could not be written completely is cut off again, so that the file always
 * ends with a complete one.
 */
#include "capture.h"
#include "capture_format.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

/* Large enough to compress well, small enough to lose when the recorder is killed. */
#define FRAME_TARGET (1u << 20)
/* A smaller part is not worth a frame. */
#define SQUEEZE_MIN 256
/* A full disk must have so much room to move data from one file to another. */
#define COPY_SIZE (128u << 10)

struct CaptureWriter {
	int fd;
	int error; /* the first one; it stays until capture_writer_retry() */
	ZSTD_CCtx *zstd;
	uint8_t *buffer;
	size_t used, capacity;
	uint8_t *frame;
	size_t frame_capacity;
	size_t unwritten;      /* bytes of the frame that could not be written */
	size_t unwritten_used; /* bytes of the buffer that this frame contains */
	uint64_t file_bytes;
};

int capture_writer_cut(CaptureWriter *writer, uint64_t file_bytes)
{
	if (ftruncate(writer->fd, file_bytes) < 0 || lseek(writer->fd, file_bytes, SEEK_SET) < 0)
		return -errno;
	writer->file_bytes = file_bytes;
	return 0;
}

static int append(CaptureWriter *writer, const void *data, size_t size)
{
	writer->error = write_all(writer->fd, data, size);
	if (!writer->error) {
		writer->file_bytes += size;
		return 0;
	}
	/* If this fails too, the reader finds a torn frame and stops before it. */
	if (capture_writer_cut(writer, writer->file_bytes) < 0)
		log_verbose("cutting off the unfinished frame failed: %s", strerror(errno));
	return writer->error;
}

static void writer_free(CaptureWriter *writer)
{
	ZSTD_freeCCtx(writer->zstd);
	free(writer->buffer);
	free(writer->frame);
	free(writer);
}

/* A library without threads compresses in the calling one. */
static int set_threads(ZSTD_CCtx *zstd, unsigned int threads)
{
	if (threads == 1 || ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_nbWorkers, threads)))
		return 0;
	return ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_jobSize, FRAME_TARGET)) ? -EINVAL
											: 0;
}

int capture_writer_new(int fd, int level, unsigned int threads, CaptureWriter **ret_writer)
{
	struct capture_header header = {
		.magic = CAPTURE_SKIPPABLE_MAGIC,
		.size = sizeof(header) - CAPTURE_SKIPPABLE_LEN,
		.name = CAPTURE_NAME,
		.version = CAPTURE_VERSION,
	};
	CaptureWriter *writer = xcalloc(1, sizeof(*writer));
	int r;

	writer->fd = fd;
	/* Each thread gets as much at a time as a single one. */
	writer->capacity = MIN((size_t)FRAME_TARGET * threads, (size_t)CAPTURE_FRAME_MAX);
	writer->buffer = xmalloc(writer->capacity);
	writer->frame_capacity = ZSTD_compressBound(writer->capacity);
	writer->frame = xmalloc(writer->frame_capacity);
	writer->zstd = ZSTD_createCCtx();
	if (!writer->zstd || set_threads(writer->zstd, threads) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_compressionLevel, level)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_checksumFlag, 1)))
		r = writer->zstd ? -EINVAL : -ENOMEM;
	else
		r = append(writer, &header, sizeof(header));
	if (r < 0) {
		close(fd);
		writer_free(writer);
		return r;
	}
	*ret_writer = writer;
	return 0;
}

static int write_frame(CaptureWriter *writer, size_t size)
{
	int r = append(writer, writer->frame, size);

	writer->unwritten = r < 0 ? size : 0;
	return r;
}

/* Compresses a part of the buffer. Returns the frame's size or a negative errno. */
static ssize_t make_frame(CaptureWriter *writer, size_t from, size_t size)
{
	/* All is compressed in one call, so that zstd writes the content size into the frame. */
	size_t made = ZSTD_compress2(writer->zstd, writer->frame, writer->frame_capacity,
				     writer->buffer + from, size);

	return ZSTD_isError(made)
		       ? -ENOMEM
		       : (ssize_t)made; /* the buffers are large enough by construction */
}

int capture_flush(CaptureWriter *writer)
{
	ssize_t size;

	if (writer->error || writer->used == 0)
		return writer->error;
	size = make_frame(writer, 0, writer->used);
	if (size < 0) {
		writer->error = size;
		return writer->error;
	}
	writer->unwritten_used = writer->used;
	writer->used = 0;
	return write_frame(writer, size);
}

/* Returns the size of the records at `from` that fit into `most` bytes together; at least one
 * record. */
static size_t whole_records(const CaptureWriter *writer, size_t from, size_t most)
{
	size_t size = 0;

	while (from + size < writer->unwritten_used) {
		const struct record *record = (const void *)(writer->buffer + from + size);

		if (size && size + record->len > most)
			break;
		size += record->len;
	}
	return size;
}

void capture_writer_squeeze(CaptureWriter *writer)
{
	size_t from = 0, most = writer->unwritten_used;
	int error = writer->error;

	while (writer->unwritten && from < writer->unwritten_used && most >= SQUEEZE_MIN) {
		size_t size = whole_records(writer, from, most);
		ssize_t made = make_frame(writer, from, size);

		if (made >= 0 && append(writer, writer->frame, made) == 0)
			from += size;
		else
			most /= 2;
	}
	writer->unwritten = 0;
	writer->error = error;
}

int capture_writer_error(const CaptureWriter *writer)
{
	return writer->error;
}

int capture_writer_retry(CaptureWriter *writer)
{
	writer->error = 0;
	return writer->unwritten ? write_frame(writer, writer->unwritten) : 0;
}

void capture_writer_discard(CaptureWriter *writer)
{
	writer->used = writer->unwritten = 0;
	writer->error = 0;
}

static int make_room(CaptureWriter *writer, size_t len)
{
	int r = capture_flush(writer);

	if (r < 0)
		return r;
	if (len > writer->capacity) {
		writer->capacity = len;
		writer->buffer = xrealloc(writer->buffer, writer->capacity);
		writer->frame_capacity = ZSTD_compressBound(writer->capacity);
		writer->frame = xrealloc(writer->frame, writer->frame_capacity);
	}
	return 0;
}

int capture_write(CaptureWriter *writer, const struct record *record)
{
	size_t len = record->len;
	int r;

	if (writer->error)
		return writer->error;
	if (len < sizeof(*record) || len % 8 || len > CAPTURE_FRAME_MAX)
		return -EINVAL;
	if (len > writer->capacity - writer->used) {
		r = make_room(writer, len);
		if (r < 0)
			return r;
	}
	memcpy(writer->buffer + writer->used, record, len);
	writer->used += len;
	return 0;
}

int capture_append_frames(CaptureWriter *writer, int fd)
{
	off_t offset = sizeof(struct capture_header);
	int error = capture_flush(writer);

	if (error)
		return error;
	for (;;) {
		ssize_t got = pread(fd, writer->frame,
				    MIN(writer->frame_capacity, (size_t)COPY_SIZE), offset);

		if (got <= 0)
			return got < 0 ? -errno : 0;
		error = append(writer, writer->frame, got);
		if (error)
			return error;
		/*
		 * Frees what was copied at once; where that is not supported, it is freed when the
		 * caller closes it.
		 */
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, got);
		offset += got;
	}
}

uint64_t capture_writer_file_bytes(const CaptureWriter *writer)
{
	return writer->file_bytes;
}

int capture_writer_close(CaptureWriter *writer)
{
	int r = capture_flush(writer);

	if (close(writer->fd) < 0 && r == 0)
		r = -errno;
	writer_free(writer);
	return r;
}
