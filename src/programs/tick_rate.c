/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tick_rate.h"
#include "util.h"

/* None of them is a multiple of a round frequency. With fewer than the last, a second has little
 * information. */
static const unsigned int rates[] = {TICK_RATE_FIRST, 499, 249, 99};

unsigned int tick_rate_choose(double share, double tick_ns)
{
	size_t i = 0;

	while (i + 1 < ARRAY_LEN(rates) && rates[i] * tick_ns > share * NSEC_PER_SEC)
		i++;
	return rates[i];
}
