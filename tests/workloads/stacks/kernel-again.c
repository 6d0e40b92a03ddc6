/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel-again ROUNDS SEED [TIMES] - two processes on one CPU wake each other, TIMES (1) times in
 * new processes. Each waits by one and the
 * same instruction, on one stack pointer, but for what chance has it: the kernel waits for each
 * kind in another function. The system call and its third argument say of which kind a wait was:
 * read(2) is asked for 8 bytes of an eventfd, 9 of a pipe, 10 of a socket.
 */
#include "frame.h"
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum kind { EVENT, PIPE, SOCKET, POLL, EPOLL, KINDS };

/* What one side waits for, and the other wakes it by. */
typedef struct Side {
	int wait[KINDS], wake[KINDS];
	int epoll;
	uint64_t chance;
} Side;

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static enum kind next_kind(Side *side)
{
	side->chance = side->chance * 6364136223846793005ULL + 1442695040888963407ULL;
	return (side->chance >> 40) % KINDS;
}

FRAME static long call_here(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long got;

	__asm__ volatile("syscall"
			 : "=a"(got)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "r8", "r9", "memory");
	return got;
}

static long take(const Side *side, enum kind kind)
{
	uint64_t to[2];

	return call_here(SYS_read, side->wait[kind], (long)to, 8 + (kind < POLL ? kind : PIPE), 0);
}

static void wait_for(Side *side)
{
	enum kind kind = next_kind(side);
	struct pollfd poll = {.fd = side->wait[POLL], .events = POLLIN};
	struct epoll_event event;

	if (kind == POLL)
		must(call_here(SYS_poll, (long)&poll, 1, -1, 0) == 1, "poll");
	else if (kind == EPOLL)
		must(call_here(SYS_epoll_wait, side->epoll, (long)&event, 1, -1) == 1, "epoll");
	must(take(side, kind) > 0, "read");
}

static void wake(Side *side)
{
	uint64_t one = 1;
	enum kind kind = next_kind(side);

	must(write(side->wake[kind], &one, kind == EVENT ? 8 : 1) > 0, "write");
}

static void make(Side *side, uint64_t seed)
{
	struct epoll_event event = {.events = EPOLLIN};
	int pair[2];

	side->chance = seed;
	side->wait[EVENT] = side->wake[EVENT] = eventfd(0, 0);
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	side->wait[SOCKET] = pair[0];
	side->wake[SOCKET] = pair[1];
	for (enum kind kind = PIPE; kind < KINDS; kind++) {
		if (kind == SOCKET)
			continue;
		must(!pipe(pair), "pipe");
		side->wait[kind] = pair[0];
		side->wake[kind] = pair[1];
	}
	side->epoll = epoll_create1(0);
	must(!epoll_ctl(side->epoll, EPOLL_CTL_ADD, side->wait[EPOLL], &event), "epoll_ctl");
}

static void answer(Side *mine, Side *other, unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++) {
		wait_for(mine);
		wake(other);
	}
}

static int one_pair(unsigned long rounds, uint64_t seed)
{
	Side here, there;
	pid_t child;
	int status;

	make(&here, seed);
	make(&there, ~seed);
	child = fork();
	must(child >= 0, "fork");
	if (child == 0) {
		answer(&there, &here, rounds);
		return 0;
	}
	wake(&there);
	answer(&here, &there, rounds);
	must(waitpid(child, &status, 0) == child && status == 0, "wait");
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long rounds, times;
	cpu_set_t one;
	uint64_t seed;
	pid_t child;
	int status;

	must(argc == 3 || argc == 4, "usage: kernel-again ROUNDS SEED [TIMES]");
	rounds = strtoul(argv[1], NULL, 10);
	seed = strtoul(argv[2], NULL, 10);
	times = argc == 4 ? strtoul(argv[3], NULL, 10) : 1;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (unsigned long i = 1; i < times; i++) {
		child = fork();
		must(child >= 0, "fork");
		if (child == 0)
			return one_pair(rounds, seed + i);
		must(waitpid(child, &status, 0) == child && status == 0, "wait");
	}
	return one_pair(rounds, seed);
}
