/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hints.h - what would make the next recording, or this profile, say more: one line each, after the
 * summary.
 *
 * A hint is given if it is about at least HINT_SHARE of the time on the critical path (without a
 * path: of the running time), at most HINTS_MOST of them, those about the most time.
 */
#ifndef WALLPROF_HINTS_H
#define WALLPROF_HINTS_H

#include "frames.h"
#include "timeline.h"

#define HINT_SHARE 0.10
#define HINT_NS	   (50 * NSEC_PER_MSEC) /* and about this time at least */
#define HINTS_MOST 2
/*
 * The text of a larger profile is no string for the viewer any more (in Chromium, 2^29 - 24 bytes):
 * it fails, or takes minutes.
 */
#define HINT_VIEWER_BYTES 536870888

typedef struct HintsOptions {
	uint64_t profile_bytes; /* of its JSON, not compressed */
	const char *capture;	/* from which a smaller profile can be made; NULL = none */
	bool debuginfod;	/* debug information was also looked for on servers */
} HintsOptions;

/* Logs them, as information. */
void hints_log(const Timeline *timeline, Frames *frames, const HintsOptions *options);

#endif
