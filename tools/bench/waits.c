/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench-waits DEPTH WAITS SEED - two threads on one CPU pass a byte back and forth, and each waits
 * for it behind DEPTH calls, WAITS times. Each of the calls comes from one of two places, as chance
 * has it: hardly a stack is that of an earlier wait. SEED 0: always from the same places, so
 * that all but the first are. Built without frame pointers.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct Side {
	int from, to;
	uint64_t random; /* 0 = no chance */
	uint64_t path;	 /* bits that have not been used yet */
} Side;

static unsigned long depth, waits;

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static void turn(Side *side)
{
	char byte = 'x';

	must(write(side->to, &byte, 1) == 1, "write");
	must(read(side->from, &byte, 1) == 1, "read");
}

/* xorshift64; 0 stays 0. */
static uint64_t next_random(Side *side)
{
	side->random ^= side->random << 13;
	side->random ^= side->random >> 7;
	side->random ^= side->random << 17;
	return side->random;
}

__attribute__((noipa)) static void descend(Side *side, unsigned long left)
{
	unsigned way;

	if (left == 0) {
		turn(side);
		return;
	}
	if (left % 64 == 0 || left == depth)
		side->path = next_random(side);
	way = side->path & 1;
	side->path >>= 1;
	/* What stands behind each call keeps the compiler from making one of the two. */
	if (way) {
		descend(side, left - 1);
		__asm__ volatile("# one" ::: "memory");
	} else {
		descend(side, left - 1);
		__asm__ volatile("# other" ::: "memory");
	}
}

static void *play(void *argument)
{
	for (unsigned long i = 0; i < waits; i++)
		descend(argument, depth);
	return NULL;
}

int main(int argc, char **argv)
{
	int there[2], back[2];
	Side mine, other;
	pthread_t thread;
	cpu_set_t one;

	must(argc == 4, "usage: bench-waits DEPTH WAITS SEED");
	depth = strtoul(argv[1], NULL, 10);
	waits = strtoul(argv[2], NULL, 10);
	mine.random = strtoul(argv[3], NULL, 10);
	other.random = mine.random << 32;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	must(!sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
	must(!pipe(there) && !pipe(back), "pipe");
	mine.from = back[0];
	mine.to = there[1];
	other.from = there[0];
	other.to = back[1];
	must(!pthread_create(&thread, NULL, play, &other), "pthread_create");
	play(&mine);
	must(!pthread_join(thread, NULL), "pthread_join");
	return 0;
}
