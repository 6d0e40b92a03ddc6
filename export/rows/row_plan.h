/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * row_plan.h - how densely sample rows are laid, and into which bands intervals are cut for them.
 */
#ifndef WALLPROF_ROW_PLAN_H
#define WALLPROF_ROW_PLAN_H

#include "kept_rows.h"
#include "tick_weights.h"

/*
 * How densely rows are laid, so that a profile keeps to its budget of rows. Intervals shorter than
 * fold_ns have no rows of their own: their weight is added up per thread and stack and gets a row
 * when it reaches fold_ns, and their time is painted in stretches of at least about that length. So
 * weights stay exact and the track's totals right.
 */
/* Bands of about one length. */
typedef struct BandCount {
	uint64_t bands, ns, fillers;
} BandCount;

/* A shorter band has no room for rows at their usual distance from its ends. */
#define ROW_SHORT_NS 2000
#define FOLD_LEVELS  54

typedef struct RowPlan {
	/* The least distance between rows of a wait under 10 ms. */
	uint64_t step_ns;
	uint64_t fold_ns;	    /* 0: nothing is folded; or ROW_SHORT_NS, doubled repeatedly */
	uint64_t rows;		    /* estimated; exact if nothing is folded */
	uint64_t folded, folded_ns; /* intervals */
	uint32_t hidden;	    /* states (1 << enum thread_state) with no weight */
	TickEnd *tick_ends;	    /* of each thread */
	/* What row_plan_estimate() counted: by how often ROW_SHORT_NS fits, as a power of two. */
	BandCount bands[FOLD_LEVELS];
	/*
	 * Of each thread: the stack that its stacks on the critical path are put below
	 * (UINT32_MAX: none). NULL: the path's stacks are those of the threads. The caller owns it.
	 */
	uint32_t *path_roots;
	/* The rows, if sample_rows_fit() has made them. */
	KeptRows kept;
} RowPlan;

/* step_ns 0: a wait has only the rows at its ends. */
void row_plan_init(RowPlan *plan, const Timeline *timeline, uint64_t step_ns);
void row_plan_free(RowPlan *plan);

/*
 * Looks at all intervals, and sets what the plan counts; returns how many of its rows are fillers.
 */
uint64_t row_plan_estimate(RowPlan *plan, const Timeline *timeline);
/*
 * Sets fold_ns, and what the plan counts then. The intervals are not looked at again: step_ns must
 * be the same as at the last estimate.
 */
void row_plan_fold(RowPlan *plan, const Timeline *timeline, uint64_t fold_ns);

/* A wait that is long has at least so many parts. */
#define ROW_LONG_PARTS 25

/* Intervals up to `end` (not included) without a running one between them. */
typedef struct Stretch {
	size_t end;
	uint64_t ns;
} Stretch;

/* Returns the length of the stretch off the CPU that interval i is in; to be called in order. */
uint64_t row_stretch_length(const Thread *thread, size_t i, Stretch *stretch);
/* Returns into how many parts a wait is cut; it has one row more. */
uint64_t row_wait_parts(uint64_t duration, uint64_t stretch_ns, uint64_t step);

#endif
