/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flight.h"
#include "flight_carry.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

struct Flight {
	FlightOptions options; /* without its strings */
	char *folder;
	uint64_t segment_ns;
	uint64_t settled_ns;   /* what is older is in the capture, but for what is carried */
	VEC(Segment) segments; /* the oldest first; into the last one is written by */
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

static int begin_segment(Flight *flight)
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
	*vec_push(&flight->segments) = (Segment){fd, now_ns()};
	return 0;
}

int flight_new(const FlightOptions *options, Flight **ret_flight)
{
	Flight *flight = xcalloc(1, sizeof(*flight));
	const char *slash = strrchr(options->capture_path, '/');
	int error;

	flight->options = *options;
	flight->folder = slash ? xasprintf("%.*s/", (int)(slash - options->capture_path),
					   options->capture_path)
			       : xstrdup(".");
	flight->segment_ns =
		MIN(MAX(options->keep_ns / SEGMENT_PARTS, SEGMENT_MIN_NS), SEGMENT_MAX_NS);
	flight->carry = flight_carry_new();
	error = begin_segment(flight);
	if (error) {
		flight_free(flight);
		return error;
	}
	*ret_flight = flight;
	return 0;
}

void flight_free(Flight *flight)
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

/* What is about a moment, and nothing that comes later refers to. */
static bool is_event(const struct record *record)
{
	switch (record->kind) {
	case REC_SWITCH:
	case REC_WAKING:
	case REC_EXEC:
	case REC_EXIT:
	case REC_STATS:
	case REC_SNAPSHOT:
	case REC_SAMPLE:
	case REC_FAULT:
	case REC_REQUEST:
	case REC_ROUND:
	case REC_LOSS:
		return true;
	case REC_TASK: /* strangers are described only once */
		return !(record->flags & TASK_FOREIGN);
	}
	return false;
}

int flight_write(Flight *flight, const struct record *record)
{
	return capture_write(is_event(record) ? flight->writer : flight->options.capture, record);
}

/* ---- letting go ------------------------------------------------------------------ */

static void begin_reading(Flight *flight)
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
static bool read_until(Flight *flight, uint64_t until_ns)
{
	const struct record *record;

	while (now_ns() < until_ns) {
		for (size_t i = 0; i < RECORDS_AT_ONCE; i++) {
			if (capture_read(flight->reader, &record) <= 0)
				return true;
			flight_carry_take(flight->carry, record);
		}
	}
	return false;
}

/* What could not be read is as good as lost. */
static void end_reading(Flight *flight)
{
	uint64_t end_ns =
		flight->segments.count > 1 ? flight->segments.items[1].begin_ns : now_ns();

	if (!flight->reader || capture_reader_damage(flight->reader))
		flight_carry_miss(flight->carry, end_ns);
	capture_reader_free(flight->reader);
	flight->reader = NULL;
}

/* What is older than that has been written: a reader need not keep it to put it in order. */
static int settle(Flight *flight, uint64_t ns)
{
	struct rec_round round = {.h = {.len = sizeof(round), .kind = REC_ROUND, .ns = ns}};

	if (ns <= flight->settled_ns)
		return 0;
	flight->settled_ns = ns;
	return capture_write(flight->options.capture, &round.h);
}

static void drop_oldest(Flight *flight)
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

/* What the oldest segment has is carried on. */
static int let_go(Flight *flight)
{
	uint64_t settled_ns;

	end_reading(flight);
	drop_oldest(flight);
	settled_ns = MAX(flight->segments.items[0].begin_ns, LATE_NS) - LATE_NS;
	flight_carry_ask(flight->carry, now_ns(), is_alive);
	flight_carry_sweep(flight->carry, settled_ns);
	return settle(flight, settled_ns);
}

/* Whether those after the oldest are long enough. */
static bool is_due(const Flight *flight, uint64_t now)
{
	return flight->segments.count > 1 && now - MIN(flight->segments.items[1].begin_ns, now) >
						     flight->options.keep_ns + LATE_NS;
}

static int let_go_some(Flight *flight, uint64_t until_ns)
{
	if (!flight->reader)
		begin_reading(flight);
	return !flight->reader || read_until(flight, until_ns) ? let_go(flight) : 0;
}

static int end_segment(Flight *flight)
{
	int error = capture_writer_close(flight->writer);

	flight->writer = NULL;
	return error;
}

static int next_segment(Flight *flight)
{
	int error = end_segment(flight);

	return error ? error : begin_segment(flight);
}

int flight_round(Flight *flight)
{
	uint64_t now = now_ns();
	int error = 0;

	if (now - flight->segments.items[flight->segments.count - 1].begin_ns >=
		    flight->segment_ns ||
	    capture_writer_file_bytes(flight->writer) >= SEGMENT_MAX_BYTES)
		error = next_segment(flight);
	if (!error && is_due(flight, now))
		error = let_go_some(flight, now + SLICE_NS);
	return error;
}

bool flight_is_busy(const Flight *flight)
{
	return flight->reader || is_due(flight, now_ns());
}

static int write_carried(void *user, const struct record *record)
{
	return capture_write(user, record);
}

int flight_finish(Flight *flight, uint64_t start_ns, uint64_t end_ns,
		  int (*start)(void *user, uint64_t ns), void *user)
{
	CaptureWriter *capture = flight->options.capture;
	uint64_t keep_ns = flight->options.keep_ns;
	uint64_t oldest;
	/* What the last segment has, it has; the others are whole. */
	int last_error = flight->writer ? end_segment(flight) : 0, error = 0;

	if (flight->reader)
		error = let_go_some(flight, UINT64_MAX);
	if (error)
		return error;
	oldest = MAX(flight->segments.items[0].begin_ns, LATE_NS) - LATE_NS;
	if (end_ns > keep_ns)
		start_ns = MAX(start_ns, end_ns - keep_ns);
	flight_carry_sweep(flight->carry, start_ns);
	error = flight_carry_write(flight->carry, flight->settled_ns, write_carried, capture);
	if (!error)
		error = settle(flight, oldest);
	if (!error)
		error = start(user, start_ns);
	while (!error && flight->segments.count > 0) {
		error = capture_append_frames(capture, flight->segments.items[0].fd);
		drop_oldest(flight); /* so that a disk need not hold it twice */
	}
	return error ? error : last_error;
}
