/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture.h - the capture file: writing it while recording, and reading it afterwards.
 *
 * A capture is a zstd skippable frame that says what the file is, followed by ordinary zstd frames
 * with content size and checksum; decompressed and concatenated, these are one stream of records
 * (bpf/abi/records.h). Every frame holds complete records. The file only grows, so after a crash at
 * any moment everything up to the last complete frame can be read. The format is specified in
 * docs/reference/capture-format.md.
 */
#ifndef WALLPROF_CAPTURE_H
#define WALLPROF_CAPTURE_H

#include "records.h"
#include "util.h"
#include <stdbool.h>
#include <stddef.h>

#define CAPTURE_VERSION	       3 /* the version that is written */
#define CAPTURE_VERSION_OLDEST 2 /* the oldest version read; its records are converted */

/* The size limit of a frame (and so of a record); a reader refuses more. */
#define CAPTURE_FRAME_MAX (64u << 20)

/* ---- writer --------------------------------------------------------------- */

typedef struct CaptureWriter CaptureWriter;

/*
 * Begins a capture on fd, an empty file, and takes ownership of fd (also on failure). level is the
 * compression level of zstd, which uses so many threads. Returns 0 or a negative errno.
 */
int capture_writer_new(int fd, int level, unsigned int threads, CaptureWriter **ret_writer);

/*
 * Appends one record (record->len bytes, a multiple of 8). Returns 0 or the negative errno of the
 * write that failed. After the first failure (a full disk, for example) every later call returns
 * the same error and writes nothing; what was written before stays readable. Returns -EINVAL for a
 * record of impossible length (the writer continues).
 */
int capture_write(CaptureWriter *writer, const struct record *record);

/*
 * Appends all that another capture holds from the position of fd on; its frames are not
 * decompressed. What is appended is removed from that file, so that a disk need not hold it twice.
 * Returns as capture_write(); after an error the appended part may end within a frame.
 */
int capture_append_frames(CaptureWriter *writer, int fd);

/* Compresses the buffer and writes it as a frame. */
int capture_flush(CaptureWriter *writer);

/* Returns why the last write failed, a negative errno, until the failure is cleared; otherwise 0.
 */
int capture_writer_error(const CaptureWriter *writer);

/*
 * Clears a failure, and writes the frame again that could not be written. The caller must write the
 * failed record again. Returns as capture_write().
 */
int capture_writer_retry(CaptureWriter *writer);

/*
 * After a final failure: writes as many of the unwritten records as there is room for, in frames
 * that are as small as necessary. The failure stays.
 */
void capture_writer_squeeze(CaptureWriter *writer);

/*
 * Truncates the file to where it ended when capture_writer_file_bytes() was that. Buffered records
 * stay buffered. Returns 0 or a negative errno.
 */
int capture_writer_cut(CaptureWriter *writer, uint64_t file_bytes);

/* Drops what is buffered, and clears a failure. */
void capture_writer_discard(CaptureWriter *writer);

/* Returns the number of bytes in the file. */
uint64_t capture_writer_file_bytes(const CaptureWriter *writer);

/* Flushes, closes and frees. Returns the first error that the writer ever had. */
int capture_writer_close(CaptureWriter *writer);

/* ---- reader --------------------------------------------------------------- */

typedef struct CaptureReader CaptureReader;

/*
 * Opens a capture. Returns 0, a negative errno, or -EBADMSG when the file is not a capture or has
 * another version; then *reterr_message (static or inside the reader's module, not to be freed) is
 * a sentence about it.
 */
int capture_reader_open(const char *path, CaptureReader **ret_reader, const char **reterr_message);

/*
 * The same for a file that is open, whatever its path leads to by now. The descriptor stays the
 * caller's, with its offset.
 */
int capture_reader_open_fd(int fd, CaptureReader **ret_reader, const char **reterr_message);

/* Returns which share of the file was read, 0 to 1. */
double capture_reader_share(const CaptureReader *reader);

/*
 * Returns the size of all records in bytes, without decompressing them: frames say it. What comes
 * after damage is not counted.
 */
uint64_t capture_reader_content(const CaptureReader *reader);

/* Continues at the start of the file. */
int capture_reader_rewind(CaptureReader *reader);

/*
 * Returns the next record in file order; it stays valid until the next call. Every returned record
 * is complete, is at least as long as its kind's fixed part and the parts that its mask states, and
 * its counted tails (stack frames, strings) are inside it and terminated. Kinds that this version
 * does not know are skipped and counted.
 *
 * Returns 1 with a record, 0 at the end, or a negative errno on an I/O error. A torn or corrupt
 * tail is the end: see capture_reader_damage().
 */
int capture_read(CaptureReader *reader, const struct record **ret_record);

/*
 * Does the same in order of time (ns; ties in file order). Records come from several rings and are
 * sorted within a bounded window, led by REC_WATERMARK. REC_STACK and the recorder's records other
 * than MAPPING, SPACE and LOSS are definitions, not events: they keep their place in the file, so
 * they are returned before the events that the window still holds. A record that comes later than
 * the window allows is returned late and counted. Memory: the window, at most about 112 MiB. It
 * cannot be mixed with capture_read() without a rewind between.
 */
int capture_read_sorted(CaptureReader *reader, const struct record **ret_record);

/* Returns NULL if the file was complete, else a sentence: "cut off after 12 frames: …". */
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
DEFINE_CLEANUP(CaptureReader *, capture_reader_free)

#endif
