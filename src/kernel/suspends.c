/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "suspends.h"

#define READINGS 3
/* The clocks are rounded to ns one by one; no suspend is as short as this. */
#define SHORTEST_NS NSEC_PER_MSEC

SuspendClocks suspends_read_clocks(void)
{
	SuspendClocks best = {.after_ns = UINT64_MAX};

	for (int i = 0; i < READINGS; i++) {
		SuspendClocks clocks = {.before_ns = now_ns()};

		clocks.boottime_ns = clock_ns(CLOCK_BOOTTIME);
		clocks.after_ns = now_ns();
		if (clocks.after_ns - clocks.before_ns < best.after_ns - best.before_ns)
			best = clocks;
	}
	return best;
}

/*
 * The true offset is between boottime - after and boottime - before. If the lower bound is above
 * the upper one of a check before, then the offset has changed, however long each reading took.
 */
bool suspends_check(Suspends *suspends, const SuspendClocks *clocks)
{
	uint64_t lowest_ns = clocks->boottime_ns - MIN(clocks->after_ns, clocks->boottime_ns);
	uint64_t highest_ns = clocks->boottime_ns - MIN(clocks->before_ns, clocks->boottime_ns);
	bool found = suspends->checked_ns && lowest_ns >= suspends->offset_ns + SHORTEST_NS;

	if (found)
		*vec_push(&suspends->list) =
			(Suspend){suspends->checked_ns, lowest_ns - suspends->offset_ns};
	/* A reading that was preempted says less than an earlier one that was not. */
	if (found || !suspends->checked_ns || highest_ns < suspends->offset_ns)
		suspends->offset_ns = highest_ns;
	suspends->checked_ns = clocks->after_ns;
	return found;
}

SuspendCounts suspends_since(const Suspends *suspends, uint64_t since_ns)
{
	SuspendCounts counts = {};

	for (size_t i = 0; i < suspends->list.count; i++) {
		const Suspend *suspend = &suspends->list.items[i];

		if (suspend->at_ns < since_ns)
			continue;
		if (counts.count++ == 0)
			counts.first_ns = suspend->at_ns;
		counts.sum_ns += suspend->length_ns;
	}
	return counts;
}

void suspends_free(Suspends *suspends)
{
	vec_free(&suspends->list);
}
