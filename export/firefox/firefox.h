/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * firefox.h - a timeline as a profile for the Firefox Profiler: its processed format, version 65,
 * the newest that other importers read too.
 *
 * The viewer paints each sample ("row" here) from the middle to its neighbours, and sums its
 * weight. Rows are laid so that both agree with the time by state: every interval has one just
 * inside each end, as far from it as the neighbour's, and waits have more in between; the weights
 * of a thread's rows add up to its lifetime to the nanosecond. Running time is painted as its ticks
 * weigh it.
 */
#ifndef WALLPROF_FIREFOX_H
#define WALLPROF_FIREFOX_H

#include "frames.h"
#include "output.h"
#include "timeline.h"

typedef struct FirefoxOptions {
	bool cpu_graph;		/* height by CPU use: waits are blank */
	uint32_t hidden;	/* states (1 << enum thread_state) that are not shown */
	uint64_t row_budget;	/* 0 = the default */
	uint64_t marker_budget; /* 0 = the default */
} FirefoxOptions;

#define FIREFOX_ROW_BUDGET    2000000
#define FIREFOX_MARKER_BUDGET 300000

/*
 * Writes the profile. Memory depends on the number of different stacks, not on the length of the
 * output. options may be NULL. Returns 0 or the output's error.
 */
int firefox_write(Output *out, const Timeline *timeline, Frames *frames,
		  const FirefoxOptions *options);

#endif
