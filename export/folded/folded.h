/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * folded.h - the time of each stack, as text: "process;thread;main;read;[pipe read wait] 1234".
 *
 * This is the format that stackcollapse-perf.pl writes, and that flamegraph.pl, inferno and
 * speedscope read: frames from the root to the leaf, separated by semicolons, a space and a whole
 * number, which is here wall-clock time in microseconds. What is less than one is added to the next
 * line, so that the sum is right. A name's semicolons are written as colons, and its control
 * characters as spaces.
 */
#ifndef WALLPROF_FOLDED_H
#define WALLPROF_FOLDED_H

#include "frames.h"
#include "output.h"
#include "stack_tree.h"
#include "timeline.h"

typedef struct FoldedOptions {
	enum stack_tree_root root;
	uint32_t hidden; /* states (1 << enum thread_state) that are left out */
} FoldedOptions;

/* Writes all stacks. options may be NULL. Returns 0 or the output's error. */
int folded_write(Output *out, const Timeline *timeline, Frames *frames,
		 const FoldedOptions *options);

#endif
