/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * range_history.h - what covered an address at a moment, for many ranges that replace each other
 * over time.
 *
 * A range is valid from its time on, until a younger one overlaps it, there; nothing ends without a
 * successor. Of two with one time, the one that was added later is the younger.
 */
#ifndef WALLPROF_RANGE_HISTORY_H
#define WALLPROF_RANGE_HISTORY_H

#include "util.h"

typedef struct TimedRange {
	uint64_t from_ns; /* 0: always */
	uint64_t start, end;
	uint64_t bias; /* bias and value are the owner's */
	uint32_t value;
	uint32_t order; /* set by range_history_add */
} TimedRange;

/* All zeros is an empty one. */
typedef struct RangeHistory {
	VEC(TimedRange) list; /* sorted by age, the oldest first, once the tree is built */
	bool built;
	VEC(uint64_t) bounds; /* range i = [bounds[i], bounds[i + 1]) = leaf node i + ranges */
	uint32_t ranges;
	uint32_t *node_starts; /* lists[node_starts[n] … node_starts[n + 1]) is node n's */
	uint32_t *lists;       /* indexes in list, ascending */
} RangeHistory;

void range_history_free(RangeHistory *history);

/*
 * Ranges may be added in any order of time. start < end. All must be added before the first query.
 */
void range_history_add(RangeHistory *history, const TimedRange *range);

/* Returns how many ranges are of ns or older. O(log n). */
size_t range_history_count(RangeHistory *history, uint64_t ns);

/* Returns what covered avma at ns, or NULL. O(log n) a level of the tree, so O(log² n). */
const TimedRange *range_history_find(RangeHistory *history, uint64_t ns, uint64_t avma);

/*
 * Returns the range that covered something at ns and whose last such address is the nearest that is
 * not above avma; NULL: there is none, or too many replaced ranges lie in between. O(log² n).
 */
const TimedRange *range_history_below(RangeHistory *history, uint64_t ns, uint64_t avma);

/* Calls visit for all ranges that cover avma and are of ns or older, in no order. */
void range_history_visit(RangeHistory *history, uint64_t ns, uint64_t avma,
			 void (*visit)(void *user, const TimedRange *range), void *user);

#endif
