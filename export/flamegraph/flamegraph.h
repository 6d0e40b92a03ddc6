/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flamegraph.h - the time of each stack as a flame graph, an SVG picture for any browser.
 *
 * The frames are those of stack_tree.h: the process is at the bottom, the state at the top. A frame
 * has the colour of its largest part: running in user mode or in the kernel, or a kind of wait. A
 * script in the picture zooms into the frame that is clicked on, and searches (Ctrl-F).
 */
#ifndef WALLPROF_FLAMEGRAPH_H
#define WALLPROF_FLAMEGRAPH_H

#include "frames.h"
#include "output.h"
#include "stack_tree.h"
#include "timeline.h"

typedef struct FlamegraphOptions {
	enum stack_tree_root root;
	uint32_t hidden; /* states (1 << enum thread_state) that are left out */
} FlamegraphOptions;

/* Writes the picture. options may be NULL. Returns 0 or the output's error. */
int flamegraph_write(Output *out, const Timeline *timeline, Frames *frames,
		     const FlamegraphOptions *options);

#endif
