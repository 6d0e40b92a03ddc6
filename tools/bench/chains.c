/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench-chains CHAINS LEAST MOST WAITS SEED - two threads on one CPU pass a byte back and forth.
 * Each waits for it at the end of a chain of calls, WAITS times, and takes another one of CHAINS
 * chains each time, which are LEAST to MOST calls long. All chains differ, so remembered stacks are
 * of no use. The 64 functions have frames of different sizes and save different registers. Built
 * without frame pointers. Prints the mean length of the chains that were taken, and the time and
 * the CPU time of an operation, which is two context switches.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FUNCTIONS 64
#define END	  FUNCTIONS
/* The first calls of a chain spell its index, so that all chains differ. */
#define INDEX_CALLS 4
#define MOST_CHAINS (1UL << 24)
#define MOST_CALLS  200UL

typedef struct Side {
	int from, to;
	int step;   /* through the chains: 1 or -1 */
	bool first; /* it has the byte at the beginning */
	unsigned long calls;
} Side;

/* The functions are numbered in octal, because the preprocessor joins digits and does not count. */
/* clang-format off */
#define EIGHT(X, d) \
	X(0##d##0) X(0##d##1) X(0##d##2) X(0##d##3) X(0##d##4) X(0##d##5) X(0##d##6) X(0##d##7)
#define ALL(X) \
	EIGHT(X, 0) EIGHT(X, 1) EIGHT(X, 2) EIGHT(X, 3) EIGHT(X, 4) EIGHT(X, 5) EIGHT(X, 6) EIGHT(X, 7)
/* clang-format on */

#define DECLARE(number) static unsigned long call_##number(Side *side, const uint8_t *rest);
#define NAME(number)	call_##number,
ALL(DECLARE)
static unsigned long (*const functions[FUNCTIONS])(Side *, const uint8_t *) = {ALL(NAME)};

/* Of each chain the functions to call, and END. */
static uint8_t (*chains)[MOST_CALLS + 1];
static unsigned long chain_count, least, most, waits;
static uint64_t random_state;

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

/* This is splitmix64. */
static uint64_t next_random(void)
{
	uint64_t x = random_state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

__attribute__((noinline)) static void turn(Side *side)
{
	char byte = 'x';

	if (side->first)
		must(write(side->to, &byte, 1) == 1, "write");
	must(read(side->from, &byte, 1) == 1, "read");
	if (!side->first)
		must(write(side->to, &byte, 1) == 1, "write");
}

__attribute__((always_inline)) static inline unsigned long call_next(Side *side,
								     const uint8_t *rest)
{
	if (*rest != END)
		return functions[*rest](side, rest + 1);
	turn(side);
	return 0;
}

/* What is needed after the call is in saved registers, and `room` makes the size of the frame. */
#define DEFINE(number)                                                                             \
	__attribute__((noipa)) static unsigned long call_##number(Side *side, const uint8_t *rest) \
	{                                                                                          \
		volatile char room[8 + 4 * (number % 16)];                                         \
		unsigned long result, first = *rest;                                               \
                                                                                                   \
		room[0] = (char)first;                                                             \
		result = call_next(side, rest) + room[0];                                          \
		if (number % 4 > 0)                                                                \
			result ^= first;                                                           \
		if (number % 4 > 1)                                                                \
			result += (uintptr_t)side;                                                 \
		if (number % 4 > 2)                                                                \
			result ^= (uintptr_t)rest;                                                 \
		return result;                                                                     \
	}
ALL(DEFINE)

static void make_chains(void)
{
	chains = calloc(chain_count, sizeof(*chains));
	must(chains != NULL, "calloc");
	for (unsigned long i = 0; i < chain_count; i++) {
		unsigned long length = least + next_random() % (most - least + 1);

		for (unsigned long call = 0; call < length; call++)
			chains[i][call] = call < INDEX_CALLS ? (i >> 6 * call) % FUNCTIONS
							     : next_random() % FUNCTIONS;
		chains[i][length] = END;
	}
}

static void *play(void *argument)
{
	Side *side = argument;
	unsigned long chain = 0;

	for (unsigned long i = 0; i < waits; i++) {
		chain = (chain + chain_count + side->step) % chain_count;
		call_next(side, chains[chain]);
		for (const uint8_t *call = chains[chain]; *call != END; call++)
			side->calls++;
	}
	return NULL;
}

static double now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static void check_numbers(void)
{
	if (chain_count >= 1 && chain_count <= MOST_CHAINS && least >= INDEX_CALLS &&
	    most >= least && most <= MOST_CALLS && waits >= 1)
		return;
	fprintf(stderr, "bench-chains: expected 1 to %lu chains of %d to %lu calls, and waits\n",
		MOST_CHAINS, INDEX_CALLS, MOST_CALLS);
	exit(2);
}

int main(int argc, char **argv)
{
	Side mine = {.step = 1, .first = true}, other = {.step = -1};
	int there[2], back[2];
	pthread_t thread;
	cpu_set_t one;
	double begin, begin_cpu;

	if (argc != 6) {
		fprintf(stderr, "usage: bench-chains CHAINS LEAST MOST WAITS SEED\n");
		return 2;
	}
	chain_count = strtoul(argv[1], NULL, 10);
	least = strtoul(argv[2], NULL, 10);
	most = strtoul(argv[3], NULL, 10);
	waits = strtoul(argv[4], NULL, 10);
	random_state = strtoul(argv[5], NULL, 10);
	check_numbers();
	make_chains();
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	must(!sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
	must(!pipe(there) && !pipe(back), "pipe");
	mine.from = back[0];
	mine.to = there[1];
	other.from = there[0];
	other.to = back[1];
	begin = now(CLOCK_MONOTONIC);
	begin_cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	must(!pthread_create(&thread, NULL, play, &other), "pthread_create");
	play(&mine);
	must(!pthread_join(thread, NULL), "pthread_join");
	printf("%.1f calls, %.3f usecs/op, %.3f usecs of CPU time/op\n",
	       (mine.calls + other.calls) / 2.0 / waits,
	       (now(CLOCK_MONOTONIC) - begin) * 1e6 / waits,
	       (now(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu) * 1e6 / waits);
	return 0;
}
