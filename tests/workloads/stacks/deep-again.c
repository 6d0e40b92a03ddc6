/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * deep-again WAITS DEPTH - two processes on one CPU pass a byte back and forth. Each waits behind
 * DEPTH calls of a function whose frame has a kibibyte of data, so its stack reaches DEPTH
 * kibibytes above the stack pointer, and is the same each time.
 */
#include "frame.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int from[2], to[2];

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

FRAME static int pass(int in, int out, unsigned long waits)
{
	char byte = 0;

	for (unsigned long i = 0; i < waits; i++) {
		must(write(out, &byte, 1) == 1, "write");
		must(read(in, &byte, 1) == 1, "read");
	}
	return 0;
}

FRAME static int deep(int in, int out, unsigned long waits, unsigned long depth)
{
	volatile char data[1024];
	int sum;

	memset((char *)data, (int)depth, sizeof(data));
	sum = depth ? deep(in, out, waits, depth - 1) : pass(in, out, waits);
	return sum + data[depth];
}

int main(int argc, char **argv)
{
	unsigned long waits, depth;
	cpu_set_t one;
	pid_t child;
	int status;

	must(argc == 3, "usage: deep-again WAITS DEPTH");
	waits = strtoul(argv[1], NULL, 10);
	depth = strtoul(argv[2], NULL, 10);
	must(!pipe(from) && !pipe(to), "pipe");
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	child = fork();
	must(child >= 0, "fork");
	if (child == 0) {
		deep(to[0], from[1], waits, depth);
		return 0;
	}
	deep(from[0], to[1], waits, depth);
	must(waitpid(child, &status, 0) == child && status == 0, "wait");
	return 0;
}
