/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * io TRUTH FILE KIND:COUNT… - for each KIND a child process does so many operations of it on FILE,
 * and says in TRUTH what the kernel has counted for it since it was forked:
 *
 *   {"kind":"direct","pid":1,"count":2,"read_bytes":3,"write_bytes":4,"begin_ns":5,"end_ns":6,
 *    "longest_ns":7,"cpu_ns":8}
 *
 * direct: reads 4 KiB past the page cache, anywhere in FILE; store: writes 4 KiB past it; cold:
 * reads 64 KiB one after the other, nothing of FILE being in memory; map: looks at one 4 KiB after
 * the other in a mapping of it, likewise; sync: writes 1 MiB and waits until it is on the disk;
 * dirty: writes 64 KiB and leaves them to the kernel; ring, worker, poll: reads 4 KiB past the page
 * cache by an io_uring (io_ring.h); cached: through it, nothing of FILE being in memory. A process
 * with KIND "wait" sleeps COUNT ms. read_bytes, write_bytes: of /proc/self/io.
 * cpu_ns: used from begin to end. Other times are CLOCK_MONOTONIC. FILE is as long as needed.
 */
#include "io_ring.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK  4096UL
#define CHUNK  65536UL
#define SYNCED (16 * CHUNK)

typedef struct Account {
	uint64_t read_bytes, write_bytes;
} Account;

typedef struct Step {
	char kind[16];
	size_t count;
	uint64_t longest_ns;
} Step;

static const char *path;
static char *buffer; /* of CHUNK bytes, aligned to a page */

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static Account account(void)
{
	FILE *file = fopen("/proc/self/io", "r");
	Account account = {};
	char line[80];

	check(file != NULL, "/proc/self/io");
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "read_bytes: %lu", &account.read_bytes);
		sscanf(line, "write_bytes: %lu", &account.write_bytes);
	}
	fclose(file);
	return account;
}

static int open_file(int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	check(fd >= 0, path);
	return fd;
}

static uint64_t size_of(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);

	check(size >= (off_t)CHUNK, "the file is too short");
	return size;
}

static void direct(int fd, uint64_t blocks, int writes)
{
	off_t at = rand() % blocks * BLOCK;

	if (writes)
		check(pwrite(fd, buffer, BLOCK, at) == BLOCK, "pwrite");
	else
		check(pread(fd, buffer, BLOCK, at) == BLOCK, "pread");
}

static void look_at(int fd, uint64_t size, size_t pages)
{
	volatile const char *mapping = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	check(mapping != MAP_FAILED, "mmap");
	for (size_t i = 0; i < pages; i++)
		(void)mapping[i * BLOCK % size];
}

static bool is(const Step *step, const char *kind)
{
	return !strcmp(step->kind, kind);
}

static bool is_by_ring(const Step *step)
{
	return is(step, "ring") || is(step, "worker") || is(step, "poll") || is(step, "cached");
}

static void write_chunk(int fd, uint64_t size, size_t i)
{
	check(pwrite(fd, buffer, CHUNK, i * CHUNK % (size - CHUNK + 1)) == CHUNK, "pwrite");
}

static void operate(const Step *step, int fd, uint64_t size, size_t i)
{
	uint64_t at = i * CHUNK % (size - CHUNK + 1);

	if (is(step, "direct") || is(step, "store")) {
		direct(fd, size / BLOCK, is(step, "store"));
	} else if (is(step, "cold")) {
		check(pread(fd, buffer, CHUNK, at) == CHUNK, "pread");
	} else if (is(step, "dirty")) {
		write_chunk(fd, size, i);
	} else if (is(step, "sync")) {
		for (size_t chunk = 0; chunk < SYNCED / CHUNK; chunk++)
			write_chunk(fd, size, i * (SYNCED / CHUNK) + chunk);
		check(fsync(fd) == 0, "fsync");
	} else {
		check(is(step, "wait"), step->kind);
		usleep(1000);
	}
}

/* Each operation as long as it takes; those that are not made one by one have no longest. */
static void operate_all(Step *step, int fd, uint64_t size)
{
	if (is_by_ring(step)) {
		ring_read(fd, size, step->count,
			  is(step, "worker") ? READER_WORKER
			  : is(step, "poll") ? READER_POLLING
					     : READER_SELF);
		return;
	}
	if (is(step, "map")) {
		look_at(fd, size, step->count);
		return;
	}
	for (size_t i = 0; i < step->count; i++) {
		uint64_t start = clock_ns(CLOCK_MONOTONIC), took;

		operate(step, fd, size, i);
		took = clock_ns(CLOCK_MONOTONIC) - start;
		if (took > step->longest_ns)
			step->longest_ns = took;
	}
}

static bool is_direct(const Step *step)
{
	return is(step, "direct") || (is_by_ring(step) && !is(step, "cached"));
}

static int prepare(const Step *step)
{
	int fd;

	if (is_direct(step))
		return open_file(O_RDONLY | O_DIRECT);
	if (is(step, "store"))
		return open_file(O_WRONLY | O_DIRECT);
	fd = open_file(O_RDWR);
	if (is(step, "cold") || is(step, "map") || is(step, "cached")) {
		check(fsync(fd) == 0, "fsync");
		check(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "posix_fadvise");
	}
	return fd;
}

static void child(FILE *truth, Step *step)
{
	int fd = prepare(step);
	uint64_t size = size_of(fd), begin = clock_ns(CLOCK_MONOTONIC), end;
	uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	Account after;

	operate_all(step, fd, size);
	end = clock_ns(CLOCK_MONOTONIC);
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	after = account();
	fprintf(truth,
		"{\"kind\":\"%s\",\"pid\":%d,\"count\":%zu,\"read_bytes\":%lu,\"write_bytes\":%lu,"
		"\"begin_ns\":%lu,\"end_ns\":%lu,\"longest_ns\":%lu,\"cpu_ns\":%lu}\n",
		step->kind, getpid(), step->count, after.read_bytes, after.write_bytes, begin, end,
		step->longest_ns, cpu);
	check(fclose(truth) == 0, "the truth");
	_exit(0);
}

static void run(const char *truth_path, const char *text)
{
	FILE *truth = fopen(truth_path, "a");
	Step step = {};
	int status;
	pid_t pid;

	check(truth != NULL, truth_path);
	check(sscanf(text, "%15[a-z]:%zu", step.kind, &step.count) == 2, text);
	pid = fork();
	check(pid >= 0, "fork");
	if (pid == 0)
		child(truth, &step);
	fclose(truth);
	check(waitpid(pid, &status, 0) == pid && status == 0, text);
}

int main(int argc, char **argv)
{
	check(argc > 3, "usage: io TRUTH FILE KIND:COUNT…");
	path = argv[2];
	buffer = aligned_alloc(BLOCK, CHUNK);
	check(buffer != NULL, "memory");
	memset(buffer, 'x', CHUNK);
	srand(getpid());
	for (int i = 3; i < argc; i++)
		run(argv[1], argv[i]);
	return 0;
}
