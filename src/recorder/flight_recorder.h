/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flight_recorder.h - a recording of which only the last part is kept.
 *
 * Events go into segments, which are unnamed files beside the capture. The oldest segment is
 * dropped as soon as those after it are long enough; the state that it leaves of living threads is
 * carried on (flight_carry.h). What events refer to (stacks, mappings, names) goes into the capture
 * at once. At the end the segments are appended to the capture, which is then like any other.
 *
 * When the disk is full, the oldest segments are dropped early. That is an error only when none is
 * left.
 */
#ifndef WALLPROF_FLIGHT_RECORDER_H
#define WALLPROF_FLIGHT_RECORDER_H

#include "capture.h"

typedef struct FlightRecorder FlightRecorder;

typedef struct FlightRecorderOptions {
	uint64_t keep_ns;	  /* the length of what is kept */
	const char *capture_path; /* segments are in its folder */
	int level;		  /* of zstd, in this number of threads */
	unsigned int threads;
	CaptureWriter *capture;	 /* owned by the caller */
	uint64_t (*clock)(void); /* now_ns() except in tests */
} FlightRecorderOptions;

/* Returns 0 or a negative errno. The options' strings are not kept. */
int flight_recorder_new(const FlightRecorderOptions *options, FlightRecorder **ret_flight);
void flight_recorder_free(FlightRecorder *flight);

/* They replace capture_write() and capture_flush(). */
int flight_recorder_write(FlightRecorder *flight, const struct record *record);
int flight_recorder_flush(FlightRecorder *flight);

/*
 * Is called once in each round of draining. A dropped segment is read in slices of a few
 * milliseconds. Returns 0 or the error of a segment that cannot be written.
 */
int flight_recorder_step(FlightRecorder *flight);

/* Returns whether the next round should follow at once. */
bool flight_recorder_is_busy(const FlightRecorder *flight);

/* Returns how often the oldest part was dropped because the disk was full. */
uint64_t flight_recorder_segments_dropped(const FlightRecorder *flight);

/*
 * Appends the segments to the capture. `start` writes the record of where the window begins: not
 * before start_ns, and at most keep_ns before end_ns. On a full disk the oldest part is dropped,
 * and `start` may be called again with a later time. Returns 0 or a negative errno: that of a full
 * disk (-ENOSPC, -EDQUOT) if nothing could be written.
 */
int flight_recorder_finish(FlightRecorder *flight, uint64_t start_ns, uint64_t end_ns,
			   int (*start)(void *user, uint64_t ns), void *user);

#endif
