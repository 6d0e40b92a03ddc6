/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tick_weights.h - the share of a thread's running time that each of its ticks and switch-outs
 * stands for. A tick stands for the running time since the one before, the last tick also for what
 * follows it; the switch-outs of a thread without ticks stand for the time up to each.
 */
#ifndef WALLPROF_TICK_WEIGHTS_H
#define WALLPROF_TICK_WEIGHTS_H

#include "timeline.h"

/* The ends of a thread's ticks and running time. */
typedef struct TickEnd {
	/* The last tick in a running interval; SIZE_MAX: none. */
	size_t last_tick;
	uint64_t running_ns; /* the thread's running time */
} TickEnd;

TickEnd tick_end_of(const Thread *thread);

/*
 * A part of a running interval whose ticks are all in user mode or all in the kernel, and of one
 * class (enum recording_class). A tick stands for the running time since the one before it, so the
 * piece ends at the last of its ticks. Time after the interval's last tick belongs to the thread's
 * next tick, and so does an interval that no tick hit. So the track agrees with the weights.
 */
typedef struct Piece {
	uint64_t start, end;
	size_t first, last; /* its ticks: first (included) to last (not included) */
	/* The tick that stands for time without a tick of its own; NULL: the thread has none. */
	const Tick *rest;
} Piece;

/* A running interval while it is cut into pieces. */
typedef struct Pieces {
	uint64_t start, end;
	size_t tick, ticks_end; /* the ticks that are left */
	const Tick *ticks, *rest;
} Pieces;

/* Begins to cut running interval i into pieces; the ticks before `tick` are past. */
Pieces tick_pieces_begin(const Thread *thread, const TickEnd *tick_end, size_t tick, size_t i);
bool tick_pieces_next(Pieces *pieces, Piece *ret_piece);

/* tick is NULL for the switch-out that ended running interval i. */
typedef void (*WeightVisitor)(void *user, const Thread *thread, size_t i, const Tick *tick,
			      uint64_t weight_ns);

/*
 * Computes the weights of all threads of the timeline; those of one thread add up to its running
 * time.
 */
void tick_weights_visit(const Timeline *timeline, WeightVisitor visit, void *user);

#endif
