/* SPDX-License-Identifier: GPL-2.0-or-later */
/* distribution.h - durations, and what is said of many of them. */
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
/* Adds all that `from` has. */
void distribution_add_all(Distribution *distribution, const Distribution *from);
void distribution_free(Distribution *distribution);

/*
 * The duration that at least this part (0 to 1) of them does not exceed: 0 the shortest, 1 the
 * longest. Of none: 0. Sorts.
 */
uint64_t distribution_at(Distribution *distribution, double part);
uint64_t distribution_mean(const Distribution *distribution);

/* The members "count", "total_ns", "mean_ns", "min_ns", "p25_ns", "p50_ns", "p75_ns", "p99_ns",
 * "max_ns". */
void distribution_json(Json *json, Distribution *distribution);

#endif
