/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chrome_slices.h - a thread's intervals as the slices of a trace, few enough for its budget.
 *
 * Slices follow each other without a gap, as the intervals do. If there are too many, sequences of
 * intervals that are shorter than a threshold are folded: one slice for each reason among them
 * replaces them, as long as they were together. So every sum stays exact and only the order within
 * some milliseconds is lost.
 */
#ifndef WALLPROF_CHROME_SLICES_H
#define WALLPROF_CHROME_SLICES_H

#include "timeline.h"

typedef struct Slice {
	uint64_t start_ns, end_ns;
	/* Of the thread; of a fold: the last one of its state and reason. */
	size_t interval;
	uint64_t folded; /* how many intervals it stands for; 0 = it is one interval */
} Slice;

typedef void (*SliceVisitor)(void *user, const Thread *thread, const Slice *slice);

/*
 * Returns the shortest threshold (ns, 0: nothing is folded) by which all threads together keep to
 * the budget.
 */
uint64_t slices_fit(const Timeline *timeline, uint64_t budget);

/* Passes the slices of a thread to the visitor, in order of time. */
void slices_walk(const Thread *thread, uint64_t fold_ns, SliceVisitor visit, void *user);

#endif
