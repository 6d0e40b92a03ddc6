/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "threshold_fit.h"

#define LEAST_START_NS 1000
#define LEAST_MAX_NS   (UINT64_MAX / 4)

uint64_t threshold_fit_rows(CountRows count, const void *user, uint64_t budget)
{
	uint64_t least_ns = 0, others;

	while (count(user, least_ns, &others) > budget) {
		if (least_ns > LEAST_MAX_NS)
			return UINT64_MAX;
		least_ns = least_ns ? 2 * least_ns : LEAST_START_NS;
	}
	return least_ns;
}
