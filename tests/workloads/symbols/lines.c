/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lines FILE HOT INLINED SLEEP - spends so many milliseconds each in a line that burns CPU time,
 * in an inlined function that does, and in a line that sleeps, and writes into FILE as JSON
 * how long each took by the clock on the wall, in nanoseconds. The tests find the lines by their
 * remarks in capitals. It is built by the tests that use it, with the options that they try.
 */
#include "lines.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t times[4];

static void burn(uint64_t ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
		uint64_t n = 1000000;

		__asm__ volatile("0: dec %0\n\tjnz 0b" : "+r"(n)); /* BURNS */
	}
}

/* No call, so that the stack of the wait begins here, whatever the C library keeps of frames. */
__attribute__((noinline)) static void work(uint64_t hot_ns, uint64_t inlined_ns, uint64_t sleep_ns)
{
	struct timespec t = {sleep_ns / 1000000000, sleep_ns % 1000000000};
	long call = SYS_nanosleep;

	times[0] = clock_ns(CLOCK_MONOTONIC);
	burn(hot_ns); /* CALLS HOT */
	times[1] = clock_ns(CLOCK_MONOTONIC);
	burn_inlined(inlined_ns); /* CALLS INLINED */
	times[2] = clock_ns(CLOCK_MONOTONIC);
	__asm__ volatile("syscall" /* SLEEPS */
			 : "+a"(call)
			 : "D"(&t), "S"(0)
			 : "rcx", "r11", "memory");
	times[3] = clock_ns(CLOCK_MONOTONIC);
}

int main(int argc, char **argv)
{
	FILE *truth;

	if (argc != 5)
		return 2;
	work(atoll(argv[2]) * 1000000, atoll(argv[3]) * 1000000, atoll(argv[4]) * 1000000);
	truth = fopen(argv[1], "w");
	if (!truth)
		return 1;
	fprintf(truth, "{\"tid\": %d, \"hot\": %lu, \"inlined\": %lu, \"sleep\": %lu}\n", getpid(),
		times[1] - times[0], times[2] - times[1], times[3] - times[2]);
	return fclose(truth) ? 1 : 0;
}
