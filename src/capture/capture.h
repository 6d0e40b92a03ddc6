/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture.h - the capture file: writing it while recording, reading it after.
 *
 * A capture is a zstd skippable frame that says what the file is, followed by
 * ordinary zstd frames with content size and checksum; decompressed and put
 * together, these are one stream of records (bpf/abi/records.h). Every frame holds
 * whole records. The file only grows, so after a crash at any moment
 * everything up to the last whole frame can be read. docs/reference/capture-format.md has
 * it to the byte.
 */
#ifndef WALLPROF_CAPTURE_H
#define WALLPROF_CAPTURE_H

#include "records.h"
#include <stdbool.h>
#include <stddef.h>

#define CAPTURE_VERSION	       3 /* the version that is written */
#define CAPTURE_VERSION_OLDEST 2 /* the oldest version read; its records are converted */

/* The most that one frame (so also one record) may hold; a reader refuses more. */
#define CAPTURE_FRAME_MAX (64u << 20)

/* ---- writer --------------------------------------------------------------- */

typedef struct CaptureWriter CaptureWriter;

/*
 * Begins a capture on fd, an empty file (which it takes over, also on failure).
 * level is zstd's, in so many threads. Returns 0 or a negative errno.
 */
int capture_writer_new(int fd, int level, unsigned int threads, CaptureWriter **ret_writer);

/*
 * Appends one record (record->len bytes, a multiple of 8). Returns 0 or the
 * negative errno of the write that failed; after the first failure (a full
 * disk, say) every later call returns the same error and writes nothing, and
 * what was written before stays readable. -EINVAL for a record whose length is
 * none (the writer goes on).
 */
int capture_write(CaptureWriter *writer, const struct record *record);

/*
 * Appends all that another capture holds, which begins where fd does; its frames are not unpacked.
 * What is appended is taken out of that file, so that a disk need not hold it twice. Returns as
 * capture_write(); what was appended until then may end within a frame.
 */
int capture_append_frames(CaptureWriter *writer, int fd);

/* Compresses and writes what is buffered as a frame of its own. */
int capture_flush(CaptureWriter *writer);

/*
 * Forgets a failure, and writes the frame again that could not be written. The record whose writing
 * failed is to be written again by the caller. Returns as capture_write().
 */
int capture_writer_retry(CaptureWriter *writer);

/*
 * After a failure that is final: writes as many of the records that could not be written as there
 * is room for, in frames as small as that takes. The failure stays.
 */
void capture_writer_squeeze(CaptureWriter *writer);

/*
 * The file ends again where it did when capture_writer_file_bytes() was that. What is buffered
 * stays so. Returns 0 or a negative errno.
 */
int capture_writer_cut(CaptureWriter *writer, uint64_t file_bytes);

/* Forgets what is buffered, and a failure. */
void capture_writer_discard(CaptureWriter *writer);

/* Bytes in the file. */
uint64_t capture_writer_file_bytes(const CaptureWriter *writer);

/* Flushes, closes, frees. Returns the first error of the writer's life. */
int capture_writer_close(CaptureWriter *writer);

/* ---- reader --------------------------------------------------------------- */

typedef struct CaptureReader CaptureReader;

/*
 * Opens a capture. Returns 0, a negative errno, or -EBADMSG when the file is
 * not a capture or of another version; then *reterr_message (static or inside
 * the reader's module, not to be freed) says so in a sentence.
 */
int capture_reader_open(const char *path, CaptureReader **ret_reader, const char **reterr_message);

/* From the start again. */
int capture_reader_rewind(CaptureReader *reader);

/*
 * The next record in file order; it stays valid until the next call. Every
 * record returned is whole, has a length that is at least that of its kind's
 * fixed part and of the parts that it says it has, and its counted tails (stack frames, strings)
 * are inside it and terminated. Kinds that this version does not know are skipped and counted.
 *
 * Returns 1 with a record, 0 at the end, negative errno on an I/O error.
 * A torn or corrupt tail is the end: see capture_reader_damage.
 */
int capture_read(CaptureReader *reader, const struct record **ret_record);

/*
 * The same in order of time (ns; ties in file order). Records come from several
 * rings and are sorted within a bounded window, led by REC_WATERMARK; REC_STACK and
 * records of the recorder other than MAPPING, SPACE and LOSS keep their place
 * in the file (they are definitions, not events): they are returned when they are
 * met, that is before the events that the window still holds. A record that comes
 * later than the window allows is returned late and counted. Memory: the
 * window, at most some 256 MiB. Not to be mixed with capture_read without a
 * rewind between.
 */
int capture_read_sorted(CaptureReader *reader, const struct record **ret_record);

/* NULL if the file was whole, else a sentence: "cut off after 12 frames: …". */
const char *capture_reader_damage(const CaptureReader *reader);

typedef struct CaptureCounts {
	uint64_t records;
	uint64_t by_kind[256];
	uint64_t unknown;   /* records of unknown kinds, skipped */
	uint64_t malformed; /* records that failed their bounds checks, skipped */
	uint64_t late;	    /* capture_read_sorted: out of order */
} CaptureCounts;
const CaptureCounts *capture_reader_counts(const CaptureReader *reader);

void capture_reader_free(CaptureReader *reader);

#endif
