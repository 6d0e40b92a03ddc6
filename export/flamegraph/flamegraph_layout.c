/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flamegraph_layout.h"

/* Adds up each node with those below it; these have higher indexes. */
static void add_up(Layout *layout, const StackTree *tree)
{
	_cleanup_free_ uint64_t *largest = xcalloc(tree->nodes.count + 1, sizeof(*largest));

	for (size_t i = tree->nodes.count; i-- > 0;) {
		const StackNode *node = &tree->nodes.items[i];
		Placed *place = &layout->places[i];

		place->total_ns += node->self_ns;
		if (node->self_ns > largest[i])
			place->category = node->category;
		if (node->parent == STACK_TREE_NONE) {
			layout->all_ns += place->total_ns;
			continue;
		}
		layout->places[node->parent].total_ns += place->total_ns;
		if (place->total_ns > largest[node->parent]) {
			largest[node->parent] = place->total_ns;
			layout->places[node->parent].category = place->category;
		}
	}
}

static int compare_nodes(const void *left, const void *right, void *user)
{
	const StackTree *tree = user;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	uint32_t above_a = tree->nodes.items[a].parent + 1;
	uint32_t above_b = tree->nodes.items[b].parent + 1;

	if (above_a != above_b)
		return above_a < above_b ? -1 : 1;
	return strcmp(stack_tree_name(tree, a), stack_tree_name(tree, b));
}

/* Nodes are sorted by their parents, the roots first, so a parent has its place before them. */
static void place(Layout *layout, const StackTree *tree)
{
	_cleanup_free_ uint32_t *order = xcalloc(tree->nodes.count + 1, sizeof(*order));
	uint32_t parent = STACK_TREE_NONE;
	uint64_t start_ns = 0;

	for (size_t i = 0; i < tree->nodes.count; i++)
		order[i] = i;
	qsort_r(order, tree->nodes.count, sizeof(*order), compare_nodes, (void *)tree);
	for (size_t i = 0; i < tree->nodes.count; i++) {
		Placed *placed = &layout->places[order[i]];

		if (tree->nodes.items[order[i]].parent != parent) {
			parent = tree->nodes.items[order[i]].parent;
			start_ns = layout->places[parent].start_ns;
		}
		if (parent != STACK_TREE_NONE)
			placed->depth = layout->places[parent].depth + 1;
		placed->start_ns = start_ns;
		start_ns += placed->total_ns;
		layout->depth = MAX(layout->depth, placed->depth + 1);
	}
}

void flamegraph_layout_init(Layout *layout, const StackTree *tree)
{
	*layout = (Layout){.places = xcalloc(tree->nodes.count + 1, sizeof(*layout->places))};
	add_up(layout, tree);
	place(layout, tree);
}

void flamegraph_layout_free(Layout *layout)
{
	free(layout->places);
}
