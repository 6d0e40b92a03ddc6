/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stack_tree.h"
#include "stack_spans.h"

#define NONE STACK_TREE_NONE

/* One thread while its time is added up. */
typedef struct Adding {
	StackTree *tree;
	uint32_t root, running; /* the thread's node; the string of STACK_TREE_RUNNING */
} Adding;

static uint64_t pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

static uint32_t add_node(StackTree *tree, uint32_t parent, uint32_t name, enum category category)
{
	uint32_t node = map_get(&tree->index, pair(parent, name));

	if (node != MAP_NONE)
		return node;
	node = tree->nodes.count;
	*vec_push(&tree->nodes) = (StackNode){.parent = parent, .name = name, .category = category};
	map_set(&tree->index, pair(parent, name), node);
	return node;
}

/* Returns the node of a stack below a root. Deep stacks are common, so this does not recurse. */
static uint32_t node_of_stack(StackTree *tree, uint32_t root, uint32_t stack)
{
	const StackTable *tables = tree->tables;
	StackPath missing = {};
	uint32_t node = root;

	while (stack != UINT32_MAX) {
		uint32_t known = map_get(&tree->stacks, pair(root, stack));

		if (known != MAP_NONE) {
			node = known;
			break;
		}
		*vec_push(&missing) = stack;
		stack = stack_table_stack_prefix(tables, stack);
	}
	for (size_t i = missing.count; i-- > 0;) {
		uint32_t func = stack_table_leaf_function(tables, missing.items[i]);

		node = add_node(tree, node, tables->funcs.items[func].name,
				stack_table_leaf_category(tables, missing.items[i]));
		map_set(&tree->stacks, pair(root, missing.items[i]), node);
	}
	vec_free(&missing);
	return node;
}

static void add_span(void *user, const Thread *thread, const StackSpan *span)
{
	const Adding *adding = user;
	StackTree *tree = adding->tree;
	uint64_t ns = span->end_ns - span->start_ns - span->recording_ns;
	uint32_t node;

	if (span->recording_ns > 0) {
		node = node_of_stack(tree, adding->root, tree->recording);
		tree->nodes.items[node].self_ns += span->recording_ns;
	}
	if (ns == 0)
		return;
	node = node_of_stack(tree, adding->root, span->stack);
	if (stack_span_state(thread, span) == STATE_RUNNING)
		node = add_node(tree, node, adding->running,
				stack_table_leaf_category(tree->tables, span->stack));
	tree->nodes.items[node].self_ns += ns;
}

static uint32_t root_of(StackTree *tree, const Thread *thread, enum stack_tree_root root)
{
	const Timeline *timeline = tree->tables->timeline;
	const Process *process = &timeline->processes.items[thread->process];
	const char *name = thread->name && *thread->name ? thread->name : "unknown";
	uint32_t node = add_node(tree, NONE, stack_table_string(tree->tables, process->label),
				 CATEGORY_OTHER);

	if (root == STACK_TREE_BY_PROCESS)
		return node;
	return add_node(tree, node, stack_table_string(tree->tables, name), CATEGORY_OTHER);
}

void stack_tree_init(StackTree *tree, StackTable *tables, enum stack_tree_root root,
		     uint32_t hidden)
{
	const Timeline *timeline = tables->timeline;

	*tree = (StackTree){.tables = tables, .recording = stack_spans_recording(tables)};
	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];
		Adding adding = {
			.tree = tree,
			.root = root_of(tree, thread, root),
			.running = stack_table_string(tables, STACK_TREE_RUNNING),
		};

		stack_spans_walk(tables, thread, hidden, add_span, &adding);
	}
}

void stack_tree_free(StackTree *tree)
{
	vec_free(&tree->nodes);
	map_free(&tree->index);
	map_free(&tree->stacks);
}

const char *stack_tree_name(const StackTree *tree, uint32_t node)
{
	return strings_get(&tree->tables->strings, tree->nodes.items[node].name);
}

void stack_tree_path(const StackTree *tree, uint32_t node, StackPath *path)
{
	size_t depth = 0;

	for (uint32_t at = node; at != NONE; at = tree->nodes.items[at].parent)
		depth++;
	path->count = 0;
	vec_reserve(path, depth);
	path->count = depth;
	for (uint32_t at = node; at != NONE; at = tree->nodes.items[at].parent)
		path->items[--depth] = at;
}
