/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flight_recorder.h"
#include "flight_carry.h"
#include "record_info.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* A segment is one of SEGMENT_PARTS parts of what is kept, within these bounds. */
#define SEGMENT_PARTS  8
#define SEGMENT_MIN_NS (250 * NSEC_PER_MSEC)
#define SEGMENT_MAX_NS (5 * NSEC_PER_SEC)
/* In compressed bytes. */
#define SEGMENT_MAX_BYTES (16u << 20)
/*
 * A round reads dropped events no longer than this, and the next round follows at once. The rings
 * hold what happens meanwhile.
 */
#define SLICE_NS	(3 * NSEC_PER_MSEC)
#define RECORDS_AT_ONCE 256 /* read between two checks of the clock: about 30 us */
/* A record can be this much older than its segment: two rounds and a pause. */
#define LATE_NS NSEC_PER_SEC

typedef struct Segment {
	int fd;
	uint64_t begin_ns;
} Segment;

struct FlightRecorder {
	FlightRecorderOptions options; /* without its strings */
	char *folder;
	uint64_t segment_ns, segment_bytes; /* limits of one segment */
	uint64_t watermark_ns; /* older records are in the capture, except those that are carried */
	uint64_t kept_ns;      /* older records were dropped because the disk was full; 0 = none */
	uint64_t segments_dropped; /* how often */
	uint64_t empty_bytes;	   /* size of a segment without records */
	uint64_t file_bytes;	   /* size of the last segment when frame_ns was set */
	uint64_t frame_ns;	   /* later records may not be in the last segment's file yet */
	VEC(Segment) segments;	   /* oldest first; the writer appends to the last one */
	CaptureWriter *writer;
	CaptureReader *reader; /* of the oldest one while it is being dropped, or NULL */
	FlightCarry *carry;
};

/*
 * Opens an unnamed file. If the file system does not support O_TMPFILE, a named one is created and
 * removed.
 */
static int open_segment(const char *folder)
{
	_cleanup_free_ char *path = NULL;
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	path = xasprintf("%s/.wallprof-XXXXXX", folder);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

static int begin_segment(FlightRecorder *flight)
{
	_cleanup_close_ int fd = open_segment(flight->folder);
	int own, error;

	if (fd < 0)
		return fd;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the writer closes its descriptor */
	if (own < 0)
		return -errno;
	error = capture_writer_new(own, flight->options.level, flight->options.threads,
				   &flight->writer);
	if (error)
		return error;
	flight->empty_bytes = flight->file_bytes = capture_writer_file_bytes(flight->writer);
	flight->frame_ns = flight->options.clock();
	*vec_push(&flight->segments) = (Segment){take_fd(fd), flight->options.clock()};
	return 0;
}

/* A segment ends at half of the limit on file sizes, so that one more round fits into it. */
static uint64_t segment_bytes(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit))
		return SEGMENT_MAX_BYTES;
	return MIN((uint64_t)SEGMENT_MAX_BYTES, (uint64_t)limit.rlim_cur / 2);
}

int flight_recorder_new(const FlightRecorderOptions *options, FlightRecorder **ret_flight)
{
	FlightRecorder *flight = xcalloc(1, sizeof(*flight));
	const char *slash = strrchr(options->capture_path, '/');
	int error;

	flight->options = *options;
	flight->folder = slash ? xasprintf("%.*s/", (int)(slash - options->capture_path),
					   options->capture_path)
			       : xstrdup(".");
	flight->segment_ns =
		MIN(MAX(options->keep_ns / SEGMENT_PARTS, SEGMENT_MIN_NS), SEGMENT_MAX_NS);
	flight->segment_bytes = segment_bytes();
	flight->carry = flight_carry_new();
	error = begin_segment(flight);
	if (error) {
		flight_recorder_free(flight);
		return error;
	}
	*ret_flight = flight;
	return 0;
}

void flight_recorder_free(FlightRecorder *flight)
{
	if (!flight)
		return;
	if (flight->writer)
		capture_writer_close(flight->writer);
	capture_reader_free(flight->reader);
	for (size_t i = 0; i < flight->segments.count; i++)
		close(flight->segments.items[i].fd);
	vec_free(&flight->segments);
	flight_carry_free(flight->carry);
	free(flight->folder);
	free(flight);
}

/* Non-targets are described only once, and later records refer to that description. */
static bool is_droppable(const struct record *record)
{
	if (record->kind == REC_TASK && record->flags & TASK_NON_TARGET)
		return false;
	return record_info(record->kind)->flags & RECORD_DROPPABLE;
}

/* ---- dropping ------------------------------------------------------------------ */

static void begin_reading(FlightRecorder *flight)
{
	const char *message;
	int error = capture_reader_open_fd(flight->segments.items[0].fd, &flight->reader, &message);

	if (error)
		log_verbose("reading dropped events failed: %s", strerror(-error));
}

/*
 * Reads the segment to be dropped and carries its state on. It is read in the order of the file,
 * because sorting takes more memory and longer pauses. Returns whether all of it has been read.
 */
static bool read_until(FlightRecorder *flight, uint64_t until_ns)
{
	const struct record *record;

	while (flight->options.clock() < until_ns) {
		for (size_t i = 0; i < RECORDS_AT_ONCE; i++) {
			if (capture_read(flight->reader, &record) <= 0)
				return true;
			flight_carry_add(flight->carry, record);
		}
	}
	return false;
}

/* Records that could not be read count as lost. */
static void end_reading(FlightRecorder *flight)
{
	uint64_t end_ns = flight->segments.count > 1 ? flight->segments.items[1].begin_ns
						     : flight->options.clock();

	if (!flight->reader || capture_reader_damage(flight->reader))
		flight_carry_add_gap(flight->carry, end_ns);
	capture_reader_free(flight->reader);
	flight->reader = NULL;
}

static void drop_oldest(FlightRecorder *flight)
{
	close(flight->segments.items[0].fd);
	flight->segments.count--;
	memmove(flight->segments.items, flight->segments.items + 1,
		flight->segments.count * sizeof(Segment));
}

/* A thread that still has its ID counts as alive. */
static bool is_alive(uint32_t ns_tid)
{
	return kill(ns_tid, 0) == 0 || errno != ESRCH;
}

static void retire_oldest(FlightRecorder *flight)
{
	end_reading(flight);
	drop_oldest(flight);
	flight_carry_check_alive(flight->carry, flight->options.clock(), is_alive);
}

static bool read_oldest(FlightRecorder *flight, uint64_t until_ns)
{
	if (!flight->reader)
		begin_reading(flight);
	return !flight->reader || read_until(flight, until_ns);
}

/* ---- a full disk ------------------------------------------------------------------ */

/* A file that has reached the limit on file sizes is treated like one on a full disk. */
static bool is_full(int error)
{
	return error == -ENOSPC || error == -EDQUOT || error == -EFBIG;
}

/* Drops the records of the segment that is being written. Returns whether there were any. */
static bool drop_last_records(FlightRecorder *flight)
{
	if (capture_writer_file_bytes(flight->writer) == flight->empty_bytes)
		return false;
	read_oldest(flight, UINT64_MAX);
	end_reading(flight);
	flight->kept_ns = flight->frame_ns;
	return capture_writer_cut(flight->writer, flight->empty_bytes) == 0;
}

static void drop_oldest_early(FlightRecorder *flight)
{
	read_oldest(flight, UINT64_MAX);
	retire_oldest(flight);
	flight->kept_ns = flight->segments.count > 0 ? flight->segments.items[0].begin_ns
						     : flight->options.clock();
}

/*
 * Drops the oldest part to free space. All of it is read now, even if the rings overflow meanwhile.
 * Returns whether there was a part to drop.
 */
static bool drop_oldest_part(FlightRecorder *flight)
{
	if (flight->segments.count == 0)
		return false;
	if (flight->segments.count > 1 || !flight->writer)
		drop_oldest_early(flight);
	else if (!drop_last_records(flight))
		return false;
	flight->segments_dropped++;
	return true;
}

/* Frees space after an error of the writer, and repeats the write. Returns 0 once it succeeds. */
static int make_room(FlightRecorder *flight, CaptureWriter *writer, int error)
{
	while (is_full(error) && drop_oldest_part(flight))
		error = capture_writer_retry(writer);
	return error;
}

static int write_record(FlightRecorder *flight, CaptureWriter *writer, const struct record *record)
{
	int error = capture_write(writer, record);

	if (!is_full(error))
		return error;
	error = make_room(flight, writer, error);
	return error ? error : capture_write(writer, record);
}

/* ---- segments --------------------------------------------------------------------- */

int flight_recorder_write(FlightRecorder *flight, const struct record *record)
{
	int error;

	if (!is_droppable(record))
		return write_record(flight, flight->options.capture, record);
	error = write_record(flight, flight->writer, record);
	if (capture_writer_file_bytes(flight->writer) != flight->file_bytes) {
		flight->file_bytes = capture_writer_file_bytes(flight->writer);
		flight->frame_ns = flight->options.clock();
	}
	return error;
}

int flight_recorder_flush(FlightRecorder *flight)
{
	CaptureWriter *capture = flight->options.capture;

	return make_room(flight, capture, capture_flush(capture));
}

/* A watermark lets a reader sort without keeping all records: none older than ns follows. */
static struct rec_watermark watermark_record(uint64_t ns)
{
	return (struct rec_watermark){
		.h = {.len = sizeof(struct rec_watermark), .kind = REC_WATERMARK, .ns = ns}};
}

/* Returns the earliest time that a record of the oldest segment can have. */
static uint64_t oldest_ns(const FlightRecorder *flight)
{
	return MAX(flight->segments.items[0].begin_ns, LATE_NS) - LATE_NS;
}

static int write_watermark(FlightRecorder *flight)
{
	struct rec_watermark watermark = watermark_record(oldest_ns(flight));

	flight_carry_drop_ended(flight->carry, watermark.h.ns);
	if (watermark.h.ns <= flight->watermark_ns)
		return 0;
	flight->watermark_ns = watermark.h.ns;
	return write_record(flight, flight->options.capture, &watermark.h);
}

/* Returns whether the segments after the oldest one cover keep_ns. */
static bool is_due(const FlightRecorder *flight, uint64_t now)
{
	return flight->segments.count > 1 && now - MIN(flight->segments.items[1].begin_ns, now) >
						     flight->options.keep_ns + LATE_NS;
}

static int end_segment(FlightRecorder *flight)
{
	int error = make_room(flight, flight->writer, capture_flush(flight->writer));
	int close_error = capture_writer_close(flight->writer);

	flight->writer = NULL;
	return error ? error : close_error;
}

static int next_segment(FlightRecorder *flight)
{
	int error = end_segment(flight);

	if (error)
		return error;
	do
		error = begin_segment(flight);
	while (is_full(error) && drop_oldest_part(flight));
	return error;
}

int flight_recorder_step(FlightRecorder *flight)
{
	uint64_t now = flight->options.clock();
	int error = 0;

	if (now - flight->segments.items[flight->segments.count - 1].begin_ns >=
		    flight->segment_ns ||
	    capture_writer_file_bytes(flight->writer) >= flight->segment_bytes)
		error = next_segment(flight);
	if (error || !is_due(flight, now) || !read_oldest(flight, now + SLICE_NS))
		return error;
	retire_oldest(flight);
	return write_watermark(flight);
}

bool flight_recorder_is_busy(const FlightRecorder *flight)
{
	return flight->reader || is_due(flight, flight->options.clock());
}

uint64_t flight_recorder_segments_dropped(const FlightRecorder *flight)
{
	return flight->segments_dropped;
}

/* ---- the end ---------------------------------------------------------------------- */

/* The state of appending the segments to the capture. */
typedef struct Appending {
	uint64_t start_ns; /* of the window, if nothing of it was dropped */
	int (*start)(void *user, uint64_t ns);
	void *user;
	uint64_t file_bytes; /* size of the capture before */
	bool appended;	     /* segments have been appended, at least in part */
} Appending;

static int write_carried(void *user, const struct record *record)
{
	return capture_write(user, record);
}

static int append_segments(FlightRecorder *flight, Appending *appending)
{
	CaptureWriter *capture = flight->options.capture;
	int error = capture_flush(capture);

	if (error)
		return error;
	while (flight->segments.count > 0) {
		uint64_t file_bytes = capture_writer_file_bytes(capture);

		error = capture_append_frames(capture, flight->segments.items[0].fd);
		appending->appended |= capture_writer_file_bytes(capture) > file_bytes;
		if (error)
			return error;
		drop_oldest(flight);
	}
	return 0;
}

static int append_all(FlightRecorder *flight, Appending *appending)
{
	CaptureWriter *capture = flight->options.capture;
	uint64_t start_ns = MAX(appending->start_ns, flight->kept_ns);
	struct rec_watermark watermark = watermark_record(oldest_ns(flight));
	int error;

	flight_carry_drop_ended(flight->carry, start_ns);
	error = flight_carry_write(flight->carry, flight->watermark_ns, write_carried, capture);
	if (error)
		return error;
	error = capture_write(capture, &watermark.h);
	if (error)
		return error;
	error = appending->start(appending->user, start_ns);
	return error ? error : append_segments(flight, appending);
}

/*
 * The disk is full: removes what was appended, and drops the oldest segment if that was nothing.
 * Returns whether anything is left.
 */
static bool undo_append(FlightRecorder *flight, Appending *appending)
{
	CaptureWriter *capture = flight->options.capture;

	capture_writer_discard(capture);
	if (capture_writer_cut(capture, appending->file_bytes) || flight->segments.count < 2)
		return false;
	if (appending->appended) {
		drop_oldest(flight);
		flight->kept_ns = flight->segments.items[0].begin_ns;
		flight_carry_add_gap(flight->carry, flight->kept_ns);
	} else {
		drop_oldest_early(flight);
	}
	appending->appended = false;
	flight->segments_dropped++;
	return true;
}

int flight_recorder_finish(FlightRecorder *flight, uint64_t start_ns, uint64_t end_ns,
			   int (*start)(void *user, uint64_t ns), void *user)
{
	Appending appending = {.start_ns = start_ns, .start = start, .user = user};
	/* The last segment may be incomplete after an error; the others are complete. */
	int last_error = flight->writer ? end_segment(flight) : 0;
	int error = flight_recorder_flush(flight);

	if (error || flight->segments.count == 0)
		return error ? error : last_error;
	if (flight->reader) {
		read_oldest(flight, UINT64_MAX);
		retire_oldest(flight);
	}
	if (end_ns > flight->options.keep_ns)
		appending.start_ns = MAX(start_ns, end_ns - flight->options.keep_ns);
	appending.file_bytes = capture_writer_file_bytes(flight->options.capture);
	do
		error = append_all(flight, &appending);
	while (is_full(error) && undo_append(flight, &appending));
	return error ? error : last_error;
}
