/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stage NAME US - copies blocks from its input to its output, and uses US microseconds of CPU time
 * for each. */
#include "truth.h"
#include <stdlib.h>
#include <unistd.h>

static char block[4096];

static __attribute__((noinline)) uint64_t digest(uint64_t us)
{
	uint64_t end_ns = truth_cpu() + us * 1000, hash = 0;

	while (truth_cpu() < end_ns)
		for (uint64_t i = 0; i < 100 * sizeof(block); i++)
			hash = (hash ^ (unsigned char)block[i % sizeof(block)]) * 0x100000001b3;
	return hash;
}

int main(int argc, char **argv)
{
	uint64_t us = argc == 3 ? strtoul(argv[2], NULL, 10) : 0, sum = 0;
	ssize_t size;

	truth_check(argc == 3, "stage NAME US");
	while ((size = read(STDIN_FILENO, block, sizeof(block))) > 0) {
		if (us > 0)
			sum ^= digest(us);
		truth_check(write(STDOUT_FILENO, block, (size_t)size) == size, "write");
	}
	return us > 0 && sum == 1;
}
