/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sample_rows_private.h - how intervals are cut into the bands that have rows; row_plan.c counts
 * these and sample_rows.c lays them.
 */
#ifndef WALLPROF_SAMPLE_ROWS_PRIVATE_H
#define WALLPROF_SAMPLE_ROWS_PRIVATE_H

#include "sample_rows.h"

/* A shorter band has no room for rows at their usual distance from its ends. */
#define ROW_SHORT_NS 2000

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
