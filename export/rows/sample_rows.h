/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sample_rows.h - the sample rows of a thread.
 *
 * A walk through the intervals passes row after row to the caller; track_rows.h stores those of one
 * track.
 */
#ifndef WALLPROF_SAMPLE_ROWS_H
#define WALLPROF_SAMPLE_ROWS_H

#include "stack_table.h"
#include "tick_weights.h"

typedef struct Row {
	uint64_t ns; /* CLOCK_MONOTONIC; never decreases within a thread */
	uint64_t weight_ns;
	uint64_t running_ns; /* the thread's running time up to ns */
	uint32_t stack;	     /* stackTable; 0 unless the walk has with_stacks */
} Row;

typedef void (*RowVisitor)(void *user, const Row *row);

/*
 * How densely rows are laid, so that a profile keeps to its budget of rows. Intervals shorter than
 * fold_ns have no rows of their own: their weight is added up per thread and stack and gets a row
 * when it reaches fold_ns, and their time is painted in stretches of at least about that length. So
 * weights stay exact and the track's totals right.
 */
typedef struct RowPlan {
	/* The least distance between rows of a wait under 10 ms. */
	uint64_t step_ns;
	uint64_t fold_ns;	    /* 0: nothing is folded */
	uint64_t rows;		    /* estimated; exact if nothing is folded */
	uint64_t folded, folded_ns; /* intervals */
	uint32_t hidden;	    /* states (1 << enum thread_state) with no weight */
	TickEnd *tick_ends;	    /* of each thread */
} RowPlan;

/* step_ns 0: a wait has only the rows at its ends. */
void row_plan_init(RowPlan *plan, const Timeline *timeline, uint64_t step_ns);
/* Returns the densest plan that keeps to the budget. */
void row_plan_fit(RowPlan *plan, StackTable *tables, uint64_t budget);
void row_plan_free(RowPlan *plan);

/*
 * Passes the rows of one thread or the critical path (timeline_track()) to the visitor, in order of
 * time. with_stacks: sets Row::stack, which costs a lookup per interval.
 */
void sample_rows_walk(StackTable *tables, const RowPlan *plan, uint32_t thread, bool with_stacks,
		      RowVisitor visit, void *user);

#endif
