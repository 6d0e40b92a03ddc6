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

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t distribution_at(Distribution *distribution, double part)
{
	size_t count = distribution->ns.count, at;

	if (count == 0)
		return 0;
	if (!distribution->sorted)
		qsort(distribution->ns.items, count, sizeof(uint64_t), compare_ns);
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
