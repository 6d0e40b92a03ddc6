/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "distribution.h"

void distribution_add(Distribution *distribution, uint64_t ns)
{
	*vec_push(&distribution->ns) = ns;
	distribution->total_ns += ns;
	distribution->sorted = false;
}

void distribution_add_all(Distribution *distribution, const Distribution *from)
{
	for (size_t i = 0; i < from->ns.count; i++)
		distribution_add(distribution, from->ns.items[i]);
}

void distribution_free(Distribution *distribution)
{
	vec_free(&distribution->ns);
	*distribution = (Distribution){};
}

#define INSERTION_SORT_MAX 16

static void insertion_sort(uint64_t *items, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		uint64_t item = items[i];
		size_t k = i;

		for (; k > 0 && items[k - 1] > item; k--)
			items[k] = items[k - 1];
		items[k] = item;
	}
}

/* Moves the items so that none before the returned index is larger than one behind it. */
static size_t partition(uint64_t *items, size_t count)
{
	uint64_t pivot = items[hash_mix(count, items[0]) % (count - 1)];
	size_t i = 0, k = count - 1;

	for (;; i++, k--) {
		while (items[i] < pivot)
			i++;
		while (items[k] > pivot)
			k--;
		if (i >= k)
			return k + 1;
		uint64_t swap = items[i];

		items[i] = items[k];
		items[k] = swap;
	}
}

/* Sorts in place, unlike qsort(3): there may be tens of millions. */
static void sort_ns(uint64_t *items, size_t count)
{
	while (count > INSERTION_SORT_MAX) {
		size_t at = partition(items, count);

		if (at < count - at) {
			sort_ns(items, at);
			items += at;
			count -= at;
		} else {
			sort_ns(items + at, count - at);
			count = at;
		}
	}
	insertion_sort(items, count);
}

uint64_t distribution_at(Distribution *distribution, double part)
{
	size_t count = distribution->ns.count, at;

	if (count == 0)
		return 0;
	if (!distribution->sorted)
		sort_ns(distribution->ns.items, count);
	distribution->sorted = true;
	at = (size_t)(part * count);
	/* The index of the first duration that has `part` of them at or below it. */
	if (at > 0 && (double)at >= part * count)
		at--;
	return distribution->ns.items[MIN(at, count - 1)];
}

uint64_t distribution_mean(const Distribution *distribution)
{
	return distribution->ns.count ? distribution->total_ns / distribution->ns.count : 0;
}

void distribution_json(Json *json, Distribution *distribution)
{
	json_key_u64(json, "count", distribution->ns.count);
	json_key_u64(json, "total_ns", distribution->total_ns);
	json_key_u64(json, "mean_ns", distribution_mean(distribution));
	json_key_u64(json, "min_ns", distribution_at(distribution, 0));
	json_key_u64(json, "p25_ns", distribution_at(distribution, 0.25));
	json_key_u64(json, "p50_ns", distribution_at(distribution, 0.5));
	json_key_u64(json, "p75_ns", distribution_at(distribution, 0.75));
	json_key_u64(json, "p99_ns", distribution_at(distribution, 0.99));
	json_key_u64(json, "max_ns", distribution_at(distribution, 1));
}
