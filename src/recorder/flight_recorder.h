/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flight_recorder.h - a recording of which only the last part is kept.
 *
 * Events go into segments, files without a name beside the capture, of which the oldest is let go
 * as soon as those after it are long enough; what it leaves of threads that still live is carried
 * on (flight_carry.h). What events refer to, stacks, mappings, names, goes into the capture at
 * once. At the end the segments are appended to that: a capture like any other.
 *
 * When the disk is full, the oldest segments are given up before their time. An error is one only
 * when there is none left.
 */
#ifndef WALLPROF_FLIGHT_RECORDER_H
#define WALLPROF_FLIGHT_RECORDER_H

#include "capture.h"

typedef struct FlightRecorder FlightRecorder;

typedef struct FlightRecorderOptions {
	uint64_t keep_ns;	  /* so much at the end */
	const char *capture_path; /* segments lie in its folder */
	int level;		  /* of zstd, in so many threads */
	unsigned int threads;
	CaptureWriter *capture; /* stays the caller's */
} FlightRecorderOptions;

/* Returns 0 or a negative errno. The options' strings are not kept. */
int flight_recorder_new(const FlightRecorderOptions *options, FlightRecorder **ret_flight);
void flight_recorder_free(FlightRecorder *flight);

/* In the place of capture_write(), and of capture_flush(). */
int flight_recorder_write(FlightRecorder *flight, const struct record *record);
int flight_recorder_flush(FlightRecorder *flight);

/*
 * Once in each round of draining. What is let go is read in slices of some milliseconds. Returns 0
 * or the error of a segment that cannot be written.
 */
int flight_recorder_step(FlightRecorder *flight);

/* Whether the next round is to come at once. */
bool flight_recorder_is_busy(const FlightRecorder *flight);

/* How often the oldest part was given up, since the disk was full. */
uint64_t flight_recorder_segments_dropped(const FlightRecorder *flight);

/*
 * Appends what was kept to the capture. `start` writes the record of where its window begins in its
 * place: not before start_ns, and at most keep_ns before end_ns. On a full disk the oldest
 * part is left out, and `start` may be called again, for a later time. Returns 0 or a negative
 * errno: of a full disk (-ENOSPC, -EDQUOT) if there was no room for anything.
 */
int flight_recorder_finish(FlightRecorder *flight, uint64_t start_ns, uint64_t end_ns,
			   int (*start)(void *user, uint64_t ns), void *user);

#endif
