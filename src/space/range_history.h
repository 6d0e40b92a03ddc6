/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * range_history.h - who covered an address at a moment, of many ranges that replace
 * each other over time.
 *
 * A range holds from its time on until a younger one overlaps it, there; nothing ends
 * by itself. Of two of one time the one added later is the younger.
 */
#ifndef WALLPROF_RANGE_HISTORY_H
#define WALLPROF_RANGE_HISTORY_H

#include "util.h"

typedef struct TimedRange {
	uint64_t from_ns; /* 0: since ever */
	uint64_t start, end;
	uint64_t bias; /* bias and value are the owner's */
	uint32_t value;
	uint32_t order; /* set by range_history_add */
} TimedRange;

/* All zeros is an empty one. */
typedef struct RangeHistory {
	VEC(TimedRange) list; /* by age, the oldest first, once it is built */
	bool built;
	VEC(uint64_t) bounds; /* range i = [bounds[i], bounds[i + 1]) = leaf node i + ranges */
	uint32_t ranges;
	uint32_t *node_starts; /* lists[node_starts[n] … node_starts[n + 1]) is node n's */
	uint32_t *lists;       /* indexes in list, ascending */
} RangeHistory;

void range_history_free(RangeHistory *history);

/* In any order of time. start < end; all must be added before the first question. */
void range_history_add(RangeHistory *history, const TimedRange *range);

/* How many ranges are of ns or older. O(log n). */
size_t range_history_count(RangeHistory *history, uint64_t ns);

/* What covered avma at ns, or NULL. O(log n) a level of the tree, so O(log² n). */
const TimedRange *range_history_find(RangeHistory *history, uint64_t ns, uint64_t avma);

/*
 * Of what covered something at ns, the range that has the last address that is not above avma;
 * NULL: there is none, or too much that is gone by then lies in between. O(log² n).
 */
const TimedRange *range_history_below(RangeHistory *history, uint64_t ns, uint64_t avma);

/* Calls visit for all that cover avma and are of ns or older, in no order. */
void range_history_visit(RangeHistory *history, uint64_t ns, uint64_t avma,
			 void (*visit)(void *user, const TimedRange *range), void *user);

#endif
