/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "histogram.h"
#include "util.h"
#include <stddef.h>

#define STEP_BITS 4 /* log2(DELAY_STEPS) */

/* Below DELAY_STEPS each value has its own; then the leading five bits tell. */
static size_t bucket_of(uint64_t ns)
{
	unsigned shift;

	if (ns < DELAY_STEPS)
		return ns;
	shift = 63 - __builtin_clzll(ns) - STEP_BITS;
	return shift * DELAY_STEPS + (ns >> shift);
}

/* The largest value that belongs there. */
static uint64_t bucket_last(size_t bucket)
{
	unsigned shift;

	if (bucket < DELAY_STEPS)
		return bucket;
	shift = bucket / DELAY_STEPS - 1;
	return ((DELAY_STEPS + bucket % DELAY_STEPS) << shift) + ((1ULL << shift) - 1);
}

void histogram_add(Histogram *delays, uint64_t ns)
{
	delays->count++;
	delays->max = MAX(delays->max, ns);
	delays->buckets[bucket_of(ns)]++;
}

uint64_t histogram_quantile(const Histogram *delays, unsigned permille)
{
	uint64_t seen = 0;

	for (size_t i = 0; i < ARRAY_LEN(delays->buckets); i++) {
		seen += delays->buckets[i];
		if (seen > 0 && seen * 1000 >= delays->count * permille)
			return MIN(bucket_last(i), delays->max);
	}
	return delays->max;
}
