/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wakers ROUNDS MS [FILE] - threads that sleep ROUNDS times for MS milliseconds or so each, while
 * loops in other processes ("burner") keep every CPU busy. The waker of each is known:
 *
 *   timeout    recv() from a socket that nothing is sent to, with a time limit: a timer of the
 *              kernel's timer wheel, in a soft interrupt
 *   sleep      nanosleep(): a high-resolution timer, in a hard interrupt
 *   datagram   recv() of what thread "sends" sends over loopback: that thread, in a soft interrupt
 *              of its own system call
 *   stream     the same by TCP, of what thread "streams" sends
 *   packet     recv() of what thread "packets" sends to it from another network namespace
 *   pipe       read() of what thread "writes" writes
 *   grace      membarrier(), which waits for a grace period of RCU: the kernel
 *   disk       reads FILE, which may be a block device, past the page cache: an interrupt
 *
 * Without the rights that namespaces need, "packet" and "packets" are not there, and without FILE
 * "disk" is not.
 */
#include "veth.h"
#include <fcntl.h>
#include <linux/membarrier.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BURNERS_MAX 64
#define THREADS_MAX 16
#define BLOCK_SIZE  4096

static unsigned long rounds, ms;
static pthread_t threads[THREADS_MAX];
static size_t thread_count;

static void check(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(1);
	}
}

static void pause_ms(unsigned long length)
{
	struct timespec time = {.tv_sec = length / 1000, .tv_nsec = length % 1000 * 1000000};

	while (nanosleep(&time, &time))
		;
}

static void spin_us(long length)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 <
	       length);
}

static int bound(int type, struct sockaddr_in *ret_address)
{
	int fd = socket(AF_INET, type, 0);
	socklen_t size = sizeof(*ret_address);

	*ret_address = (struct sockaddr_in){.sin_family = AF_INET,
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	check(fd >= 0 && !bind(fd, (struct sockaddr *)ret_address, size) &&
		      !getsockname(fd, (struct sockaddr *)ret_address, &size),
	      "a socket");
	return fd;
}

/* Two connected ends: [0] to read from, [1] to write to. */
typedef struct Pair {
	const char *reader, *writer;
	int ends[2];
} Pair;

static void *reads(void *arg)
{
	const Pair *pair = arg;
	char byte;

	prctl(PR_SET_NAME, pair->reader);
	for (unsigned long i = 0; i < rounds; i++)
		check(read(pair->ends[0], &byte, 1) == 1, pair->reader);
	return NULL;
}

static void *writes(void *arg)
{
	const Pair *pair = arg;

	prctl(PR_SET_NAME, pair->writer);
	for (unsigned long i = 0; i < rounds; i++) {
		pause_ms(ms);
		check(write(pair->ends[1], "x", 1) == 1, pair->writer);
	}
	return NULL;
}

static void *times_out(void *arg)
{
	struct timeval limit = {.tv_usec = ms * 1000};
	struct sockaddr_in address;
	int fd = bound(SOCK_DGRAM, &address);
	char byte;

	prctl(PR_SET_NAME, "timeout");
	check(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), "a time limit");
	for (unsigned long i = 0; i < rounds; i++)
		recv(fd, &byte, 1, 0);
	return arg;
}

static void *sleeps(void *arg)
{
	prctl(PR_SET_NAME, "sleep");
	for (unsigned long i = 0; i < rounds; i++)
		pause_ms(ms);
	return arg;
}

static void *waits_for_grace(void *arg)
{
	prctl(PR_SET_NAME, "grace");
	for (unsigned long i = 0; i < rounds; i++)
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	return arg;
}

static void *reads_disk(void *arg)
{
	static char block[BLOCK_SIZE] __attribute__((aligned(BLOCK_SIZE)));
	int fd = open(arg, O_RDONLY | O_DIRECT | O_CLOEXEC);

	prctl(PR_SET_NAME, "disk");
	check(fd >= 0, arg);
	for (unsigned long i = 0; i < rounds; i++) {
		ssize_t size = pread(fd, block, sizeof(block), (off_t)(i % 256 * sizeof(block)));

		check(size == sizeof(block), arg);
		spin_us(500);
	}
	close(fd);
	return NULL;
}

static void start(void *(*function)(void *), void *arg)
{
	check(!pthread_create(&threads[thread_count++], NULL, function, arg), "a thread");
}

static void connect_datagrams(Pair *pair)
{
	struct sockaddr_in address;

	pair->ends[0] = bound(SOCK_DGRAM, &address);
	pair->ends[1] = socket(AF_INET, SOCK_DGRAM, 0);
	check(!connect(pair->ends[1], (struct sockaddr *)&address, sizeof(address)), "connect");
}

static void connect_stream(Pair *pair)
{
	struct sockaddr_in address;
	int listening = bound(SOCK_STREAM, &address);

	check(!listen(listening, 1), "listen");
	pair->ends[1] = socket(AF_INET, SOCK_STREAM, 0);
	check(!connect(pair->ends[1], (struct sockaddr *)&address, sizeof(address)), "connect");
	pair->ends[0] = accept(listening, NULL, NULL);
	check(pair->ends[0] >= 0, "accept");
}

static size_t start_burners(pid_t *pids)
{
	cpu_set_t allowed, one;
	pid_t parent = getpid();
	size_t count = 0;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE && count < BURNERS_MAX; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		pids[count] = fork();
		check(pids[count] >= 0, "fork");
		if (pids[count++])
			continue;
		prctl(PR_SET_NAME, "burner");
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		for (;;)
			__asm__ volatile("");
	}
	pause_ms(50);
	return count;
}

int main(int argc, char **argv)
{
	Pair pairs[] = {{.reader = "datagram", .writer = "sends"},
			{.reader = "stream", .writer = "streams"},
			{.reader = "pipe", .writer = "writes"},
			{.reader = "packet", .writer = "packets"}};
	pid_t burners[BURNERS_MAX];
	size_t count, pair_count = 3;

	if (argc < 3 || argc > 4 || !(rounds = strtoul(argv[1], NULL, 10)) ||
	    !(ms = strtoul(argv[2], NULL, 10))) {
		fputs("wakers ROUNDS MS [FILE]\n", stderr);
		return 2;
	}
	connect_datagrams(&pairs[0]);
	connect_stream(&pairs[1]);
	check(!pipe(pairs[2].ends), "pipe");
	if (veth_sockets(pairs[3].ends))
		pair_count++;
	else
		perror("network namespaces");
	count = start_burners(burners);
	for (size_t i = 0; i < pair_count; i++) {
		start(reads, &pairs[i]);
		start(writes, &pairs[i]);
	}
	start(times_out, NULL);
	start(sleeps, NULL);
	start(waits_for_grace, NULL);
	if (argc == 4)
		start(reads_disk, argv[3]);
	while (thread_count > 0)
		pthread_join(threads[--thread_count], NULL);
	for (size_t i = 0; i < count; i++) {
		kill(burners[i], SIGKILL);
		waitpid(burners[i], NULL, 0);
	}
	return 0;
}
