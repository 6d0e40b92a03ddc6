/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cold-map FILE COUNT SEED - maps FILE, which is not in memory, and reads COUNT bytes of it in
 * find_row(), each on another page.
 */
#include "truth.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PAGE 4096UL

static __attribute__((noinline)) unsigned int find_row(const volatile unsigned char *map,
						       size_t page)
{
	return map[page * PAGE];
}

int main(int argc, char **argv)
{
	int fd = argc == 4 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	unsigned int sum = 0;
	struct stat stat;

	truth_check(fd >= 0 && fstat(fd, &stat) == 0, "cold-map FILE COUNT SEED");
	size_t pages = (size_t)stat.st_size / PAGE, count = strtoul(argv[2], NULL, 10),
	       step = pages / count;
	unsigned int seed = (unsigned int)strtoul(argv[3], NULL, 10);
	void *map = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, fd, 0);

	truth_check(map != MAP_FAILED && step > 0, "mmap");
	/* Each fault reads one page, and none of those around it. */
	truth_check(madvise(map, pages * PAGE, MADV_RANDOM) == 0, "madvise");
	for (size_t i = 0; i < count; i++)
		sum += find_row(map, i * step + (size_t)rand_r(&seed) % step);
	return sum == 1;
}
