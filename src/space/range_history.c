/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * range_history.c - a segment tree over address ranges, with time inside.
 *
 * Each range is in O(log n) nodes of the tree; each node's list is sorted by age. A query walks
 * from one leaf to the root and searches each list on the way. The first query builds the tree.
 */
#include "range_history.h"
#include <string.h>

void range_history_free(RangeHistory *history)
{
	vec_free(&history->list);
	vec_free(&history->bounds);
	free(history->node_starts);
	free(history->lists);
	*history = (RangeHistory){};
}

void range_history_add(RangeHistory *history, const TimedRange *range)
{
	TimedRange *added = vec_push(&history->list);

	*added = *range;
	added->order = history->list.count - 1;
}

/* ---- the tree ------------------------------------------------------------ */

static int compare_ages(const void *a, const void *b)
{
	const TimedRange *x = a, *y = b;

	if (x->from_ns != y->from_ns)
		return x->from_ns < y->from_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void build_bounds(RangeHistory *history)
{
	size_t kept = 0;

	for (size_t i = 0; i < history->list.count; i++) {
		*vec_push(&history->bounds) = history->list.items[i].start;
		*vec_push(&history->bounds) = history->list.items[i].end;
	}
	qsort(history->bounds.items, history->bounds.count, sizeof(uint64_t), compare_u64);
	for (size_t i = 0; i < history->bounds.count; i++)
		if (kept == 0 || history->bounds.items[kept - 1] != history->bounds.items[i])
			history->bounds.items[kept++] = history->bounds.items[i];
	history->bounds.count = kept;
	history->ranges = kept ? kept - 1 : 0;
}

/* Returns how many bounds are not above avma. */
static size_t count_bounds(const RangeHistory *history, uint64_t avma)
{
	return partition_point(middle, history->bounds.count,
			       history->bounds.items[middle] <= avma);
}

/* Returns the leaf that holds avma, or history->ranges. */
static uint32_t find_leaf(const RangeHistory *history, uint64_t avma)
{
	size_t low = count_bounds(history, avma);

	return low == 0 || low == history->bounds.count ? history->ranges : low - 1;
}

/* A range covers at most two nodes on each level of the tree. */
#define COVER_MAX 64

/* Finds the nodes that together cover a range. */
static size_t cover(const RangeHistory *history, const TimedRange *range,
		    uint32_t nodes[static COVER_MAX])
{
	uint32_t low = find_leaf(history, range->start) + history->ranges;
	/* The last byte's leaf: `end` itself may be beyond the last bound. */
	uint32_t high = find_leaf(history, range->end - 1) + history->ranges + 1;
	size_t count = 0;

	for (; low < high; low >>= 1, high >>= 1) {
		if (low & 1)
			nodes[count++] = low++;
		if (high & 1)
			nodes[count++] = --high;
	}
	return count;
}

static void build_tree(RangeHistory *history)
{
	size_t total = 2 * (size_t)history->ranges;
	uint32_t nodes[COVER_MAX], *next;

	history->node_starts = xcalloc(total + 1, sizeof(*history->node_starts));
	for (size_t i = 0; i < history->list.count; i++) {
		size_t count = cover(history, &history->list.items[i], nodes);

		for (size_t k = 0; k < count; k++)
			history->node_starts[nodes[k] + 1]++;
	}
	for (size_t i = 0; i < total; i++)
		history->node_starts[i + 1] += history->node_starts[i];
	history->lists = xmalloc(history->node_starts[total] * sizeof(*history->lists));
	next = xmalloc(total * sizeof(*next));
	memcpy(next, history->node_starts, total * sizeof(*next));
	for (size_t i = 0; i < history->list.count; i++) {
		size_t count = cover(history, &history->list.items[i], nodes);

		for (size_t k = 0; k < count; k++)
			history->lists[next[nodes[k]]++] = i;
	}
	free(next);
}

static void build(RangeHistory *history)
{
	if (history->built)
		return;
	history->built = true;
	if (history->list.count == 0)
		return;
	qsort(history->list.items, history->list.count, sizeof(TimedRange), compare_ages);
	build_bounds(history);
	build_tree(history);
}

/* ---- questions ----------------------------------------------------------- */

size_t range_history_count(RangeHistory *history, uint64_t ns)
{
	build(history);
	return partition_point(middle, history->list.count,
			       history->list.items[middle].from_ns <= ns);
}

/* Returns how many entries of a node's list are below `until`. */
static uint32_t count_below(const RangeHistory *history, uint32_t node, size_t until)
{
	uint32_t first = history->node_starts[node];

	return partition_point(middle, history->node_starts[node + 1] - first,
			       history->lists[first + middle] < until);
}

const TimedRange *range_history_find(RangeHistory *history, uint64_t ns, uint64_t avma)
{
	size_t until = range_history_count(history, ns); /* this builds the tree */
	uint32_t leaf = find_leaf(history, avma);
	const TimedRange *found = NULL;

	if (leaf == history->ranges)
		return NULL;
	for (uint32_t node = leaf + history->ranges; node > 0; node >>= 1) {
		uint32_t below = count_below(history, node, until);
		const TimedRange *range;

		if (below == 0)
			continue;
		range = &history->list
				 .items[history->lists[history->node_starts[node] + below - 1]];
		if (!found || range > found)
			found = range;
	}
	return found;
}

/* The search passes so many gaps and ranges that are not of that time yet; more is not worth it. */
#define PASSED_MAX 64

const TimedRange *range_history_below(RangeHistory *history, uint64_t ns, uint64_t avma)
{
	const TimedRange *found = NULL;
	size_t below;

	build(history);
	below = count_bounds(history, avma);
	for (size_t passed = 0; below-- > 0 && passed < PASSED_MAX && !found; passed++)
		found = range_history_find(history, ns, history->bounds.items[below]);
	return found;
}

void range_history_visit(RangeHistory *history, uint64_t ns, uint64_t avma,
			 void (*visit)(void *user, const TimedRange *range), void *user)
{
	size_t until = range_history_count(history, ns);
	uint32_t leaf = find_leaf(history, avma);

	if (leaf == history->ranges)
		return;
	for (uint32_t node = leaf + history->ranges; node > 0; node >>= 1) {
		const uint32_t *list = history->lists + history->node_starts[node];

		for (uint32_t i = count_below(history, node, until); i > 0; i--)
			visit(user, &history->list.items[list[i - 1]]);
	}
}
