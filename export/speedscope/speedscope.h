/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * speedscope.h - a timeline in speedscope's own format: one profile of events for each thread.
 *
 * The format is that of https://www.speedscope.app/file-format-schema.json, type "evented": a frame
 * is opened and closed at a time, in nanoseconds since the start of the window. The innermost frame
 * is what the thread did: "[running]", or the reason of a wait. A thread's hidden states, and the
 * time before its birth and after its end, are gaps.
 */
#ifndef WALLPROF_SPEEDSCOPE_H
#define WALLPROF_SPEEDSCOPE_H

#include "frames.h"
#include "output.h"
#include "timeline.h"

typedef struct SpeedscopeOptions {
	uint64_t event_budget; /* of all threads; 0 = SPEEDSCOPE_EVENT_BUDGET */
	uint32_t hidden;       /* states (1 << enum thread_state) that are left out */
} SpeedscopeOptions;

/*
 * A browser holds the file as one string, of at most half a gigabyte. An event opens or closes a
 * frame, and has about 45 bytes. A span of a deep stack has hundreds, so it is not spans that are
 * counted.
 */
#define SPEEDSCOPE_EVENT_BUDGET 4000000

/* Writes all threads. options may be NULL. Returns 0 or the output's error. */
int speedscope_write(Output *out, const Timeline *timeline, Frames *frames,
		     const SpeedscopeOptions *options);

#endif
