/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flamegraph_layout.h - where each frame of a flame graph is.
 *
 * Frames beside each other are sorted by name, so that two pictures can be compared.
 */
#ifndef WALLPROF_FLAMEGRAPH_LAYOUT_H
#define WALLPROF_FLAMEGRAPH_LAYOUT_H

#include "stack_tree.h"

typedef struct Placed {
	uint64_t start_ns, total_ns; /* its left end, and its width */
	uint32_t depth;		     /* 0 for a root of the tree */
	uint8_t category;	     /* of its largest part */
} Placed;

typedef struct Layout {
	Placed *places; /* of each of StackTree::nodes */
	uint64_t all_ns;
	uint32_t depth; /* frames of the deepest stack */
} Layout;

void flamegraph_layout_init(Layout *layout, const StackTree *tree);
void flamegraph_layout_free(Layout *layout);

#endif
