/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * weights.h - how much of a thread's running time each of its ticks and switch-outs stands for, as
 * rows_walk() has it: a tick for the running time since the one before, the last one for what
 * follows, too, and the switch-outs of a thread without ticks for the time up to each.
 */
#ifndef WALLPROF_WEIGHTS_H
#define WALLPROF_WEIGHTS_H

#include "timeline.h"

/* tick is NULL for the switch-out that ended running interval i. */
typedef void (*WeightVisitor)(void *user, const Thread *thread, size_t i, const Tick *tick,
			      uint64_t weight_ns);

/* The weights of all threads of the timeline; those of one thread sum to its running time. */
void weights_visit(const Timeline *timeline, WeightVisitor visit, void *user);

#endif
