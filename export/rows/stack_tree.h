/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_tree.h - the time of all threads by stack, as a tree: process, thread, functions, state.
 *
 * A node is a name below another node: calls of one function from different lines are one node, and
 * so are the threads of one name in one process. The leaf of a stack is what the thread did: the
 * reason of a wait, STACK_TREE_RUNNING, or recording's share of running time. The nodes' own times
 * add up to the time by state of all threads.
 */
#ifndef WALLPROF_STACK_TREE_H
#define WALLPROF_STACK_TREE_H

#include "stack_table.h"
#include "timeline.h"

#define STACK_TREE_RUNNING "[running]"

/* What the frames at the root are. */
enum stack_tree_root {
	STACK_TREE_BY_THREAD, /* the process, and below it the thread */
	STACK_TREE_BY_PROCESS,
};

typedef struct StackNode {
	uint32_t parent; /* STACK_TREE_NONE: it is a root */
	uint32_t name;	 /* StackTable::strings */
	uint8_t category;
	uint64_t self_ns; /* without the nodes below it */
} StackNode;

#define STACK_TREE_NONE UINT32_MAX

typedef struct StackTree {
	StackTable *tables;
	VEC(StackNode) nodes; /* a parent precedes the nodes below it */
	Map index;	      /* (parent, name) -> nodes */
	Map stacks;	      /* (root, stackTable) -> nodes */
	uint32_t recording;   /* stackTable */
} StackTree;

/* Adds up all threads; hidden: states (1 << enum thread_state) without time. */
void stack_tree_init(StackTree *tree, StackTable *tables, enum stack_tree_root root,
		     uint32_t hidden);
void stack_tree_free(StackTree *tree);

const char *stack_tree_name(const StackTree *tree, uint32_t node);

typedef VEC(uint32_t) StackPath;

/* Sets path to the nodes from the root to the given one. The caller frees it. */
void stack_tree_path(const StackTree *tree, uint32_t node, StackPath *path);

#endif
