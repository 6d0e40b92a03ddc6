/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wakers ROUNDS MS - threads that sleep ROUNDS times for MS milliseconds or so each, while loops in
 * other processes ("burner") keep every CPU busy. What wakes each of them is known:
 *
 *   timeout    recv() from a socket that nothing is sent to, with a time limit: a timer of the
 *              kernel's timer wheel, in a soft interrupt
 *   sleep      nanosleep(): a high-resolution timer, in a hard interrupt
 *   datagram   recv() of what thread "sends" sends over loopback: that thread, in a soft interrupt
 *              of its own system call
 *   stream     the same by TCP, of what thread "streams" sends
 *   pipe       read() of what thread "writes" writes
 *   grace      membarrier(), which waits for a grace period of RCU: the kernel
 */
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

static unsigned long rounds, ms;

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
			{.reader = "pipe", .writer = "writes"}};
	void *(*const others[])(void *) = {times_out, sleeps, waits_for_grace};
	pthread_t threads[9];
	pid_t burners[BURNERS_MAX];
	size_t count, started = 0;

	if (argc != 3 || !(rounds = strtoul(argv[1], NULL, 10)) ||
	    !(ms = strtoul(argv[2], NULL, 10))) {
		fputs("wakers ROUNDS MS\n", stderr);
		return 2;
	}
	connect_datagrams(&pairs[0]);
	connect_stream(&pairs[1]);
	check(!pipe(pairs[2].ends), "pipe");
	count = start_burners(burners);
	for (size_t i = 0; i < 3; i++) {
		check(!pthread_create(&threads[started++], NULL, reads, &pairs[i]), "a thread");
		check(!pthread_create(&threads[started++], NULL, writes, &pairs[i]), "a thread");
		check(!pthread_create(&threads[started++], NULL, others[i], NULL), "a thread");
	}
	while (started > 0)
		pthread_join(threads[--started], NULL);
	for (size_t i = 0; i < count; i++) {
		kill(burners[i], SIGKILL);
		waitpid(burners[i], NULL, 0);
	}
	return 0;
}
