/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * histogram.h - how long things took, without keeping each: a histogram whose steps are a sixteenth
 * of what they measure, so that any quantile is told at most that much too high.
 */
#ifndef WALLPROF_HISTOGRAM_H
#define WALLPROF_HISTOGRAM_H

#include <stdint.h>

#define DELAY_STEPS 16 /* in each doubling */

typedef struct Histogram {
	uint64_t count, max; /* ns */
	uint64_t buckets[(64 - 3) * DELAY_STEPS];
} Histogram;

void histogram_add(Histogram *delays, uint64_t ns);

/*
 * Of count delays, the smallest that permille of 1000 do not exceed: 500 is the median. In ns, at
 * most a sixteenth too high, and never more than max; 0 if there is none.
 */
uint64_t histogram_quantile(const Histogram *delays, unsigned permille);

#endif
