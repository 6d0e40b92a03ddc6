/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * paths MS - uses MS milliseconds of CPU time on a few dozen call paths whose shares are the same
 * in every run, to compare profilers with each other. The order is random: in a fixed order
 * that takes a fraction of the timer's period, all ticks would hit the same few calls.
 */
#include "frame.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sum;

FRAME static void leaf_add(uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		sum += i;
}

FRAME static void leaf_multiply(uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		sum = sum * 3 + i;
}

FRAME static int compare(const void *a, const void *b)
{
	leaf_add(150);
	return *(const int *)a - *(const int *)b;
}

FRAME static void sort_some(uint64_t rounds)
{
	int numbers[64];

	for (int i = 0; i < 64; i++)
		numbers[i] = (int)((uint64_t)i * rounds * 7919 % 1009);
	qsort(numbers, 64, sizeof(*numbers), compare);
	sum += (uint64_t)numbers[0];
}

FRAME static void even(int depth, uint64_t rounds);

FRAME static void odd(int depth, uint64_t rounds)
{
	leaf_multiply(rounds);
	if (depth > 0)
		even(depth - 1, rounds + rounds / 2);
	sum++;
}

FRAME static void even(int depth, uint64_t rounds)
{
	leaf_add(rounds);
	if (depth > 0)
		odd(depth - 1, rounds + rounds / 3);
	sum++;
}

static uint64_t cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	uint64_t ms = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;

	if (ms == 0) {
		fputs("paths MS\n", stderr);
		return 2;
	}
	while (cpu_ms() < ms) {
		switch (rand() % 3) {
		case 0:
			even(8, 2000);
			break;
		case 1:
			odd(5, 3000);
			break;
		default:
			for (uint64_t i = 1; i < 6; i++)
				sort_some(i);
		}
	}
	return 0;
}
