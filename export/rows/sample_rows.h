/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sample_rows.h - the sample rows of a thread.
 *
 * A walk through the intervals passes row after row to the caller.
 */
#ifndef WALLPROF_SAMPLE_ROWS_H
#define WALLPROF_SAMPLE_ROWS_H

#include "row_plan.h"
#include "stack_table.h"

/*
 * Makes the plan the densest one that keeps to the budget. If it folds intervals, the rows are made
 * for that, and the plan keeps them.
 */
void sample_rows_fit(RowPlan *plan, StackTable *tables, uint64_t budget);

/*
 * Passes the rows of one thread or the critical path (timeline_track()) to the visitor, in order of
 * time. with_stacks: sets Row::stack, which costs a lookup per interval. Rows that the plan
 * keeps are not made again.
 */
void sample_rows_walk(StackTable *tables, const RowPlan *plan, uint32_t thread, bool with_stacks,
		      RowVisitor visit, void *user);

#endif
