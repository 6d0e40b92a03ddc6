/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load_counters.h - how many threads want a CPU, how much CPU time is used, and what disks do over
 * time: averages over buckets, from the same intervals and requests as everything else. The writers
 * show them as counters.
 */
#ifndef WALLPROF_LOAD_COUNTERS_H
#define WALLPROF_LOAD_COUNTERS_H

#include "timeline.h"

typedef struct LoadCounters {
	uint64_t width_ns; /* of a bucket; the last one ends with the window */
	uint64_t window_ns;
	size_t count;
	uint64_t *runnable_ns, *running_ns; /* by bucket, summed over all threads */
	/*
	 * These are of all requests of all devices except parts of other requests: bytes by the
	 * time of completion, and the time in flight.
	 */
	uint64_t *read_bytes, *written_bytes, *in_flight_ns;
} LoadCounters;

/* The caller frees with load_counters_free(). */
LoadCounters load_counters_make(const Timeline *timeline);
void load_counters_free(LoadCounters *counters);

/* Returns the end of bucket i, ns since the start of the window. */
uint64_t load_counters_end(const LoadCounters *counters, size_t i);

/*
 * Returns the average of one of the sums (runnable_ns, running_ns, in_flight_ns) over bucket i, in
 * thousandths of a thread or request.
 */
uint64_t load_counters_average(const LoadCounters *counters, const uint64_t *sums, size_t i);

#endif
