/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * small-reads FILE COUNT [THREADS] - reads COUNT records of 512 bytes of FILE, past the page cache
 * and one after the other, in read_record(). With THREADS so many do that, each COUNT or, with 0,
 * until a signal ends the process.
 */
#include "truth.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK  4096
#define RECORD 512

static size_t count;
static off_t blocks;
static int fd;

static __attribute__((noinline)) void read_record(char *record, off_t block)
{
	truth_check(pread(fd, record, RECORD, block * BLOCK) == RECORD, "read");
}

static void *read_records(void *arg)
{
	static _Alignas(BLOCK) _Thread_local char record[RECORD];
	size_t first = (size_t)(uintptr_t)arg;

	for (size_t i = 0; count == 0 || i < count; i++)
		read_record(record, (off_t)(first + i * 7) % blocks);
	return NULL;
}

int main(int argc, char **argv)
{
	struct stat stat;

	fd = argc == 3 || argc == 4 ? open(argv[1], O_RDONLY | O_DIRECT | O_CLOEXEC) : -1;
	truth_check(fd >= 0 && fstat(fd, &stat) == 0, "small-reads FILE COUNT [THREADS]");
	blocks = stat.st_size / BLOCK;
	count = strtoul(argv[2], NULL, 10);
	size_t threads = argc == 4 ? strtoul(argv[3], NULL, 10) : 1;
	pthread_t ids[threads];

	for (size_t i = 1; i < threads; i++)
		truth_check(pthread_create(&ids[i], NULL, read_records,
					   (void *)(uintptr_t)(i * 100)) == 0,
			    "pthread_create");
	read_records(NULL);
	for (size_t i = 1; i < threads; i++)
		pthread_join(ids[i], NULL);
	return 0;
}
