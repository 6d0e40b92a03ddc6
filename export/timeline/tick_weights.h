/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tick_weights.h - how much of a thread's running time each of its ticks and switch-outs stands
 * for: a tick for the running time since the one before, the last one for what follows, too, and
 * the switch-outs of a thread without ticks for the time up to each.
 */
#ifndef WALLPROF_TICK_WEIGHTS_H
#define WALLPROF_TICK_WEIGHTS_H

#include "timeline.h"

/* Where the ticks of a thread end. */
typedef struct TickEnd {
	size_t last_tick;    /* the last one that lies in a running interval; SIZE_MAX: none */
	uint64_t running_ns; /* the thread's running time */
} TickEnd;

TickEnd tick_end_of(const Thread *thread);

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

/* Running interval i in pieces; the ticks before `tick` are past. */
Pieces tick_pieces_begin(const Thread *thread, const TickEnd *tick_end, size_t tick, size_t i);
bool tick_pieces_next(Pieces *pieces, Piece *ret_piece);

/* tick is NULL for the switch-out that ended running interval i. */
typedef void (*WeightVisitor)(void *user, const Thread *thread, size_t i, const Tick *tick,
			      uint64_t weight_ns);

/* The weights of all threads of the timeline; those of one thread sum to its running time. */
void tick_weights_visit(const Timeline *timeline, WeightVisitor visit, void *user);

#endif
