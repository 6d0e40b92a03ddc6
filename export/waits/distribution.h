/* SPDX-License-Identifier: GPL-2.0-or-later */
/* distribution.h - durations, and the statistics of many of them. */
#ifndef WALLPROF_DISTRIBUTION_H
#define WALLPROF_DISTRIBUTION_H

#include "json_writer.h"
#include "util.h"

typedef struct Distribution {
	VEC(uint64_t) ns;
	uint64_t total_ns;
	bool sorted;
} Distribution;

void distribution_add(Distribution *distribution, uint64_t ns);
/* Adds all of `from`. */
void distribution_add_all(Distribution *distribution, const Distribution *from);
void distribution_free(Distribution *distribution);

/*
 * Returns the duration that at least this part (0 to 1) of them does not exceed: 0 gives the
 * shortest, 1 the longest. 0 if it is empty. Sorts.
 */
uint64_t distribution_at(Distribution *distribution, double part);
uint64_t distribution_mean(const Distribution *distribution);

/*
 * Writes the members "count", "total_ns", "mean_ns", "min_ns", "p25_ns", "p50_ns", "p75_ns",
 * "p99_ns", "max_ns".
 */
void distribution_json(Json *json, Distribution *distribution);

#endif
