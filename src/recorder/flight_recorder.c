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

/* A segment is a part of what is kept, within these bounds. */
#define SEGMENT_PARTS  8
#define SEGMENT_MIN_NS (250 * NSEC_PER_MSEC)
#define SEGMENT_MAX_NS (5 * NSEC_PER_SEC)
/* Of what was compressed. */
#define SEGMENT_MAX_BYTES (16u << 20)
/* The rings hold what happens meanwhile, and the next round comes at once. */
#define SLICE_NS	(3 * NSEC_PER_MSEC)
#define RECORDS_AT_ONCE 256 /* between two looks at the clock: some 30 us */
/* By how much a record can be older than the segment that it is in: two rounds, and a pause. */
#define LATE_NS NSEC_PER_SEC

typedef struct Segment {
	int fd;
	uint64_t begin_ns;
} Segment;

struct FlightRecorder {
	FlightRecorderOptions options; /* without its strings */
	char *folder;
	uint64_t segment_ns, segment_bytes; /* the limits of one segment */
	uint64_t watermark_ns;	   /* what is older is in the capture, but for what is carried */
	uint64_t kept_ns;	   /* what is older was given up; 0 = nothing was */
	uint64_t segments_dropped; /* so often */
	uint64_t empty_bytes;	   /* of a segment without records */
	uint64_t file_bytes;	   /* of the last segment, when it was last looked at: */
	uint64_t frame_ns;	   /* what is younger is not in the file yet */
	VEC(Segment) segments;	   /* the oldest first; into the last one is written by */
	CaptureWriter *writer;
	CaptureReader *reader; /* of the oldest one, while it is let go; or NULL */
	FlightCarry *carry;
};

/* A file that nobody sees; where the file system has none without a name, one that is removed. */
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
	int fd = open_segment(flight->folder), own, error;

	if (fd < 0)
		return fd;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the writer closes its own */
	if (own < 0) {
		error = -errno;
		close(fd);
		return error;
	}
	error = capture_writer_new(own, flight->options.level, flight->options.threads,
				   &flight->writer);
	if (error) {
		close(fd);
		return error;
	}
	flight->empty_bytes = flight->file_bytes = capture_writer_file_bytes(flight->writer);
	flight->frame_ns = now_ns();
	*vec_push(&flight->segments) = (Segment){fd, now_ns()};
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

/* Non-targets are described only once, and later records refer to that. */
static bool is_droppable(const struct record *record)
{
	if (record->kind == REC_TASK && record->flags & TASK_NON_TARGET)
		return false;
	return record_info(record->kind)->flags & RECORD_DROPPABLE;
}

/* ---- letting go ------------------------------------------------------------------ */

static void begin_reading(FlightRecorder *flight)
{
	_cleanup_free_ char *path = xasprintf("/proc/self/fd/%d", flight->segments.items[0].fd);
	const char *message;
	int error = capture_reader_open(path, &flight->reader, &message);

	if (error)
		log_verbose("cannot read what is let go again: %s", strerror(-error));
}

/*
 * Reads what is to be let go, for what has to be carried on. In the order of the file: to sort it
 * would take more memory, and longer at a time. Returns whether it is over.
 */
static bool read_until(FlightRecorder *flight, uint64_t until_ns)
{
	const struct record *record;

	while (now_ns() < until_ns) {
		for (size_t i = 0; i < RECORDS_AT_ONCE; i++) {
			if (capture_read(flight->reader, &record) <= 0)
				return true;
			flight_carry_add(flight->carry, record);
		}
	}
	return false;
}

/* What could not be read is as good as lost. */
static void end_reading(FlightRecorder *flight)
{
	uint64_t end_ns =
		flight->segments.count > 1 ? flight->segments.items[1].begin_ns : now_ns();

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

/* A thread, by its number as we see it. What has left only its number behind lives, too. */
static bool is_alive(uint32_t ns_tid)
{
	return kill(ns_tid, 0) == 0 || errno != ESRCH;
}

/* What it has is carried on. */
static void retire_oldest(FlightRecorder *flight)
{
	end_reading(flight);
	drop_oldest(flight);
	flight_carry_check_alive(flight->carry, now_ns(), is_alive);
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

/* What the segment has that is being written. */
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
	flight->kept_ns =
		flight->segments.count > 0 ? flight->segments.items[0].begin_ns : now_ns();
}

/*
 * Makes room by the oldest part, all of which is read now, be it that the rings fill up meanwhile.
 * Returns whether there was any.
 */
static bool give_up(FlightRecorder *flight)
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

/* After an error of the writer. Returns 0 when what failed has been written. */
static int make_room(FlightRecorder *flight, CaptureWriter *writer, int error)
{
	while (is_full(error) && give_up(flight))
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
		flight->frame_ns = now_ns();
	}
	return error;
}

int flight_recorder_flush(FlightRecorder *flight)
{
	CaptureWriter *capture = flight->options.capture;

	return make_room(flight, capture, capture_flush(capture));
}

/* What is older than that has been written: a reader need not keep it to put it in order. */
static struct rec_watermark settled(uint64_t ns)
{
	return (struct rec_watermark){
		.h = {.len = sizeof(struct rec_watermark), .kind = REC_WATERMARK, .ns = ns}};
}

/* What the oldest segment can have that is older than its begin. */
static uint64_t oldest_ns(const FlightRecorder *flight)
{
	return MAX(flight->segments.items[0].begin_ns, LATE_NS) - LATE_NS;
}

static int settle(FlightRecorder *flight)
{
	struct rec_watermark round = settled(oldest_ns(flight));

	flight_carry_drop_ended(flight->carry, round.h.ns);
	if (round.h.ns <= flight->watermark_ns)
		return 0;
	flight->watermark_ns = round.h.ns;
	return write_record(flight, flight->options.capture, &round.h);
}

/* Whether those after the oldest are long enough. */
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
	while (is_full(error) && give_up(flight));
	return error;
}

int flight_recorder_step(FlightRecorder *flight)
{
	uint64_t now = now_ns();
	int error = 0;

	if (now - flight->segments.items[flight->segments.count - 1].begin_ns >=
		    flight->segment_ns ||
	    capture_writer_file_bytes(flight->writer) >= flight->segment_bytes)
		error = next_segment(flight);
	if (error || !is_due(flight, now) || !read_oldest(flight, now + SLICE_NS))
		return error;
	retire_oldest(flight);
	return settle(flight);
}

bool flight_recorder_is_busy(const FlightRecorder *flight)
{
	return flight->reader || is_due(flight, now_ns());
}

uint64_t flight_recorder_segments_dropped(const FlightRecorder *flight)
{
	return flight->segments_dropped;
}

/* ---- the end ---------------------------------------------------------------------- */

/* What is appended to the capture, and from where on. */
typedef struct Appending {
	uint64_t start_ns; /* of the window, if there is all of it */
	int (*start)(void *user, uint64_t ns);
	void *user;
	uint64_t file_bytes; /* of the capture before */
	bool begun;	     /* the oldest segment is not whole any more, or there were others */
} Appending;

static int write_carried(void *user, const struct record *record)
{
	return capture_write(user, record);
}

static int append_segments(FlightRecorder *flight, Appending *appending)
{
	CaptureWriter *capture = flight->options.capture;
	int error = capture_flush(capture);

	while (!error && flight->segments.count > 0) {
		uint64_t file_bytes = capture_writer_file_bytes(capture);

		error = capture_append_frames(capture, flight->segments.items[0].fd);
		appending->begun |= capture_writer_file_bytes(capture) > file_bytes;
		if (!error)
			drop_oldest(flight);
	}
	return error;
}

static int append_all(FlightRecorder *flight, Appending *appending)
{
	CaptureWriter *capture = flight->options.capture;
	uint64_t start_ns = MAX(appending->start_ns, flight->kept_ns);
	struct rec_watermark round = settled(oldest_ns(flight));
	int error;

	flight_carry_drop_ended(flight->carry, start_ns);
	error = flight_carry_write(flight->carry, flight->watermark_ns, write_carried, capture);
	if (!error)
		error = capture_write(capture, &round.h);
	if (!error)
		error = appending->start(appending->user, start_ns);
	return error ? error : append_segments(flight, appending);
}

/*
 * There was no room for all: what was appended goes, and if that was nothing the oldest segment.
 * Returns whether anything is left.
 */
static bool take_back(FlightRecorder *flight, Appending *appending)
{
	CaptureWriter *capture = flight->options.capture;

	capture_writer_discard(capture);
	if (capture_writer_cut(capture, appending->file_bytes) || flight->segments.count < 2)
		return false;
	if (appending->begun) {
		drop_oldest(flight);
		flight->kept_ns = flight->segments.items[0].begin_ns;
		flight_carry_add_gap(flight->carry, flight->kept_ns);
	} else {
		drop_oldest_early(flight);
	}
	appending->begun = false;
	flight->segments_dropped++;
	return true;
}

int flight_recorder_finish(FlightRecorder *flight, uint64_t start_ns, uint64_t end_ns,
			   int (*start)(void *user, uint64_t ns), void *user)
{
	Appending appending = {.start_ns = start_ns, .start = start, .user = user};
	/* What the last segment has, it has; the others are whole. */
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
	while (is_full(error) && take_back(flight, &appending));
	return error ? error : last_error;
}
