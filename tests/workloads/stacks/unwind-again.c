/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind-again ROUNDS SEED - two processes on one CPU pass a byte back and forth. Each waits for it
 * at one place, on one stack pointer, but called from one of two functions, as chance has it; the
 * number of bytes that read(2) is asked for says which: two from few(), three from more().
 */
#include "frame.h"
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t state;

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static unsigned chance(void)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 63;
}

/* The call itself is here, so that this is the innermost function. */
FRAME static long wait_here(int fd, char *to, unsigned long size)
{
	long got;

	__asm__ volatile("syscall"
			 : "=a"(got)
			 : "0"(SYS_read), "D"(fd), "S"(to), "d"(size)
			 : "rcx", "r11", "memory");
	return got;
}

FRAME static void few(int fd)
{
	char to[4];

	must(wait_here(fd, to, 2) == 1, "read");
	__asm__ volatile("" ::: "memory"); /* it comes back here */
}

FRAME static void more(int fd)
{
	char to[4];

	must(wait_here(fd, to, 3) == 1, "read");
	__asm__ volatile("" ::: "memory");
}

FRAME static void answer(int from, int to, unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++) {
		if (chance())
			more(from);
		else
			few(from);
		must(write(to, "b", 1) == 1, "write");
	}
}

int main(int argc, char **argv)
{
	int there[2], back[2], status;
	unsigned long rounds;
	cpu_set_t one;
	pid_t child;

	must(argc == 3, "usage: unwind-again ROUNDS SEED");
	rounds = strtoul(argv[1], NULL, 10);
	state = strtoul(argv[2], NULL, 10);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	must(!pipe(there) && !pipe(back), "pipe");
	child = fork();
	must(child >= 0, "fork");
	if (child == 0) {
		state = ~state;
		answer(there[0], back[1], rounds);
		return 0;
	}
	must(write(there[1], "a", 1) == 1, "write");
	answer(back[0], there[1], rounds);
	must(waitpid(child, &status, 0) == child && status == 0, "wait");
	return 0;
}
