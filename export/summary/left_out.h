/* SPDX-License-Identifier: GPL-2.0-or-later */
/* left_out.h - where --budget left out stacks and objects, and how much; and what it kept. */
#ifndef WALLPROF_LEFT_OUT_H
#define WALLPROF_LEFT_OUT_H

#include "timeline.h"

#define LEFT_OUT_PREEMPTED (-2)

/* The switch-outs of one program in one system call. */
typedef struct LeftOutPlace {
	char *program;
	int syscall; /* -1 = none; LEFT_OUT_PREEMPTED = those that could continue, anywhere */
	uint64_t switch_outs, unsampled;
	uint64_t ns; /* of the waits that began with an unsampled one */
} LeftOutPlace;

typedef struct LeftOut {
	double budget; /* relative to the running time */
	uint64_t switch_outs, unsampled;
	uint64_t waits_ns;	/* of all waits that began with a switch-out */
	uint64_t unsampled_ns;	/* of those that began with an unsampled one, */
	uint64_t without;	/* which got no stacks from another one either, */
	uint64_t without_ns;	/* and how long these were */
	uint64_t wakers;	/* waits whose waker's stacks were left out */
	VEC(LeftOutPlace) list; /* the largest unsampled time first */
} LeftOut;

/* Returns whether the recording had a budget. Otherwise *ret_left_out is empty. */
bool left_out_find(const Timeline *timeline, LeftOut *ret_left_out);
void left_out_free(LeftOut *left_out);

/* Returns "in futex", "preempted", …; the caller frees it. */
char *left_out_place_text(const LeftOutPlace *place);

/*
 * Returns "--budget 2%: 812 of 1000 switch-outs not sampled (waits of 1.2 s of 3.4 s); …"; NULL:
 * nothing was left out. The caller frees it.
 */
char *left_out_text(const LeftOut *left_out);

/* Returns the same of a recording; NULL, too, if it had no budget. The caller frees it. */
char *left_out_line(const Timeline *timeline);

/*
 * Returns what the user should know about the cost of recording: that it is large and can be
 * limited, or that it exceeds the budget; NULL: nothing. The caller frees it.
 */
char *left_out_cost_warning(const Timeline *timeline);

#endif
