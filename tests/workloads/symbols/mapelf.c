/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mapelf MS OFFSET FILE… - maps the page at OFFSET of each file as code and runs the function that
 * is there, for MS milliseconds of CPU a file, all from run_mapped(). The files say of themselves
 * that they are ELF; whether they are is for the profiler to find out.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define ROUNDS	20000
#define NS_IN_S 1000000000ULL

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * NS_IN_S + now.tv_nsec;
}

static void *map(const char *path, off_t offset)
{
	int fd = open(path, O_RDONLY);
	char *page = fd < 0 ? MAP_FAILED
			    : mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
				   offset & ~(PAGE - 1L));

	if (page == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	close(fd);
	return page + offset % PAGE;
}

__attribute__((noinline)) void run_mapped(void (*spin)(uint64_t rounds), uint64_t ns)
{
	uint64_t end = cpu_ns() + ns;

	while (cpu_ns() < end)
		spin(ROUNDS);
}

int main(int argc, char **argv)
{
	uint64_t ns = argc > 1 ? strtoull(argv[1], NULL, 10) * 1000000 : 0;
	off_t offset = argc > 2 ? strtoll(argv[2], NULL, 0) : 0;

	for (int i = 3; i < argc; i++)
		run_mapped((void (*)(uint64_t))map(argv[i], offset), ns);
	return 0;
}
