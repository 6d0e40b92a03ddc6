/* SPDX-License-Identifier: GPL-2.0-or-later */
/* poll-loop FILE - looks each millisecond whether there is a FILE, in wait_for_file(). */
#include "truth.h"
#include <unistd.h>

static __attribute__((noinline)) void wait_for_file(const char *path)
{
	while (access(path, F_OK) != 0)
		truth_sleep(NSEC_PER_MSEC);
}

int main(int argc, char **argv)
{
	truth_check(argc == 2, "poll-loop FILE");
	wait_for_file(argv[1]);
	truth_burn(2 * NSEC_PER_MSEC);
	return 0;
}
