/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chrome.h - a timeline in the Trace Event Format, as chrome://tracing, Perfetto and the Firefox
 * Profiler's importer read it. Each of them reads another part of it:
 *
 * - every interval of a thread is a slice ("X"), named by its reason; all three show these, and the
 *   Firefox Profiler shows of their arguments what is in "data";
 * - and a thread state ("T"), which Perfetto draws as its own scheduler's;
 * - a wakeup is a flow ("s" to "f") from the waker's slice to that of the thread it woke;
 * - a page fault, or a request to a block device, is an asynchronous span ("b" to "e") of its
 *   thread's process; requests of other processes belong to the process "Block devices";
 * - a span of lost events is an asynchronous span ("b" to "e") of the process "System";
 * - counters ("C") and CPU samples ("samples", "stackFrames", of chrome://tracing only).
 *
 * Times are microseconds since the start of the window, exact to the nanosecond.
 */
#ifndef WALLPROF_CHROME_H
#define WALLPROF_CHROME_H

#include "frames.h"
#include "output.h"
#include "timeline.h"

typedef struct ChromeOptions {
	uint64_t slice_budget; /* for slices and samples; 0 = CHROME_SLICE_BUDGET */
	uint32_t hidden;       /* states (1 << enum thread_state) that are not shown */
} ChromeOptions;

/* A viewer in a browser holds the file as one string, of at most half a gigabyte. */
#define CHROME_SLICE_BUDGET 1000000

/* Writes the trace. options may be NULL. Returns 0 or the output's error. */
int chrome_write(Output *out, const Timeline *timeline, Frames *frames,
		 const ChromeOptions *options);

#endif
