/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * suspends.h - finds out when the machine was suspended during a recording, and for how long.
 *
 * All times of a recording are CLOCK_MONOTONIC, which stands still while the machine is suspended;
 * CLOCK_BOOTTIME goes on. Their difference changes at nothing else. A suspend freezes the recorder
 * as well, so it can be found only afterwards, and its time is known to within the recorder's pause
 * between two checks.
 */
#ifndef WALLPROF_SUSPENDS_H
#define WALLPROF_SUSPENDS_H

#include "util.h"
#include <stddef.h>
#include <stdint.h>

typedef struct Suspend {
	uint64_t at_ns;	    /* CLOCK_MONOTONIC: when the last check before it was made */
	uint64_t length_ns; /* of the time that is missing in CLOCK_MONOTONIC */
} Suspend;

typedef struct Suspends {
	uint64_t offset_ns;  /* CLOCK_BOOTTIME - CLOCK_MONOTONIC at the last check, at most */
	uint64_t checked_ns; /* CLOCK_MONOTONIC of the last check; 0 = there was none */
	VEC(Suspend) list;   /* in the order of their times */
} Suspends;

/* CLOCK_MONOTONIC, CLOCK_BOOTTIME, and CLOCK_MONOTONIC once more, read in this order; ns. */
typedef struct SuspendClocks {
	uint64_t before_ns, boottime_ns, after_ns;
} SuspendClocks;

/* Reads the clocks; of several readings it returns the one that took least. */
SuspendClocks suspends_read_clocks(void);

/*
 * Compares the clocks with those of the call before, and adds a suspend if there was one in
 * between. Returns whether there was. The first call only remembers them.
 */
bool suspends_check(Suspends *suspends, const SuspendClocks *clocks);

/* What happened since a time. */
typedef struct SuspendCounts {
	size_t count;
	uint64_t sum_ns, first_ns; /* lengths of all; CLOCK_MONOTONIC of the first, 0 = none */
} SuspendCounts;

SuspendCounts suspends_since(const Suspends *suspends, uint64_t since_ns);

void suspends_free(Suspends *suspends);

#endif
