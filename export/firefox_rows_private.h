/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * firefox_rows_private.h - how intervals are cut into the bands that have rows, for
 * who counts them (firefox_plan.c) and who shows them (firefox_rows.c).
 */
#ifndef WALLPROF_FIREFOX_ROWS_PRIVATE_H
#define WALLPROF_FIREFOX_ROWS_PRIVATE_H

#include "firefox_rows.h"

/* What is shorter has no room for rows at their usual distance from its ends. */
#define ROW_SHORT_NS 2000

/* Intervals up to `end` (not included) without a running one between them. */
typedef struct Stretch {
	size_t end;
	uint64_t ns;
} Stretch;

/*
 * A part of a running interval whose ticks are all in user mode or all in the kernel, and of one
 * class (enum recording_class). A tick stands for the running time since the one before it, so it
 * ends at the last of its ticks; what comes after the interval's last tick belongs to the thread's
 * next one, and so does an interval that no tick hit. So the picture agrees with the weights.
 */
typedef struct Piece {
	uint64_t start, end;
	size_t first, last; /* its ticks: from first to before last */
	const Tick *rest;   /* stands for what no tick of it does; NULL: the thread has none */
} Piece;

/* A running interval while it is cut. */
typedef struct Pieces {
	uint64_t start, end;
	size_t tick, ticks_end; /* its ticks that are left */
	const Tick *ticks, *rest;
} Pieces;

/* The length of the stretch off the CPU that interval i is in; to be asked in order. */
uint64_t stretch_length(const Thread *thread, size_t i, Stretch *stretch);
/* Into how many parts a wait is cut; it has one row more. */
uint64_t wait_parts(uint64_t duration, uint64_t stretch_ns, uint64_t step);

/* Running interval i in pieces; the ticks before `tick` are past. */
Pieces pieces_begin(const Thread *thread, const struct TickEnd *tick_end, size_t tick, size_t i);
bool pieces_next(Pieces *pieces, Piece *ret_piece);

#endif
