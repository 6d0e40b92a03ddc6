/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chrome_slices.h - a thread's intervals as the slices of a trace, few enough for its budget.
 *
 * Slices follow each other without a gap, as the intervals do. If there are too many of these,
 * runs of intervals that are shorter than a threshold are folded: in their place stands one
 * slice for each reason among them, as long as they were together, so that every sum stays
 * exact and only the order within some milliseconds is lost.
 */
#ifndef WALLPROF_CHROME_SLICES_H
#define WALLPROF_CHROME_SLICES_H

#include "timeline.h"

typedef struct Slice {
	uint64_t start_ns, end_ns;
	size_t interval; /* of the thread; of a fold: the last one of its state and reason */
	uint64_t folded; /* how many intervals it stands for, 0 = it is one */
} Slice;

typedef void (*SliceVisitor)(void *user, const Thread *thread, const Slice *slice);

/* The shortest threshold (ns, 0: nothing is folded) by which all threads keep to the budget. */
uint64_t slices_fit(const Timeline *timeline, uint64_t budget);

/* Shows the slices of a thread, in order of time. */
void slices_walk(const Thread *thread, uint64_t fold_ns, SliceVisitor visit, void *user);

#endif
