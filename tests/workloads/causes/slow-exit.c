/* SPDX-License-Identifier: GPL-2.0-or-later */
/* slow-exit NAME MS - is done after a few milliseconds, and then sleeps for MS in close_store(), a
 * destructor. */
#include "truth.h"
#include <stdlib.h>

static uint64_t close_ns;

static __attribute__((destructor, noinline)) void close_store(void)
{
	truth_sleep(close_ns);
}

int main(int argc, char **argv)
{
	truth_check(argc == 3, "slow-exit NAME MS");
	truth_burn(5 * NSEC_PER_MSEC);
	close_ns = strtoul(argv[2], NULL, 10) * NSEC_PER_MSEC;
	return 0;
}
