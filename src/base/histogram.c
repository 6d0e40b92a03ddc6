/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "histogram.h"
#include "util.h"
#include <stddef.h>

#define STEP_BITS 4 /* log2(HISTOGRAM_STEPS) */

/* Values below HISTOGRAM_STEPS have a bucket each; above, the leading five bits are the bucket. */
static size_t bucket_of(uint64_t ns)
{
	unsigned shift;

	if (ns < HISTOGRAM_STEPS)
		return ns;
	shift = 63 - __builtin_clzll(ns) - STEP_BITS;
	return shift * HISTOGRAM_STEPS + (ns >> shift);
}

/* Returns the largest value of the bucket. */
static uint64_t bucket_last(size_t bucket)
{
	unsigned shift;

	if (bucket < HISTOGRAM_STEPS)
		return bucket;
	shift = bucket / HISTOGRAM_STEPS - 1;
	return ((HISTOGRAM_STEPS + bucket % HISTOGRAM_STEPS) << shift) + ((1ULL << shift) - 1);
}

void histogram_add(Histogram *histogram, uint64_t ns)
{
	histogram->count++;
	histogram->max = MAX(histogram->max, ns);
	histogram->buckets[bucket_of(ns)]++;
}

uint64_t histogram_quantile(const Histogram *histogram, unsigned permille)
{
	uint64_t seen = 0;

	for (size_t i = 0; i < ARRAY_LEN(histogram->buckets); i++) {
		seen += histogram->buckets[i];
		if (seen > 0 && seen * 1000 >= histogram->count * permille)
			return MIN(bucket_last(i), histogram->max);
	}
	return histogram->max;
}
