/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * histogram.h - a distribution of durations. A bucket's width is a sixteenth of its values, so that
 * a quantile is too high by at most that much.
 */
#ifndef WALLPROF_HISTOGRAM_H
#define WALLPROF_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_STEPS 16 /* buckets in each doubling */

typedef struct Histogram {
	uint64_t count, max; /* ns */
	uint64_t buckets[(64 - 3) * HISTOGRAM_STEPS];
} Histogram;

void histogram_add(Histogram *histogram, uint64_t ns);

/*
 * Returns the smallest duration that is not exceeded by permille of 1000: 500 is the median. In ns,
 * at most a sixteenth too high, and never more than max; 0 if there are no durations.
 */
uint64_t histogram_quantile(const Histogram *histogram, unsigned permille);

#endif
