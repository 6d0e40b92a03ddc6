/* SPDX-License-Identifier: GPL-2.0-or-later */
/* random_timeline.h - makes timelines that have everything, another one for each seed. */
#ifndef WALLPROF_TEST_RANDOM_TIMELINE_H
#define WALLPROF_TEST_RANDOM_TIMELINE_H

#include "timeline_fixture.h"

/* Threads are with and without ticks. scale divides the length of intervals. */
Timeline *random_timeline(unsigned int seed, uint64_t window, uint64_t scale);

/* Returns a number below limit, which follows from the last seed. */
uint64_t random_number(uint64_t limit);

#endif
