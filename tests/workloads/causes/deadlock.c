/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * deadlock RING BEHIND CLOSED - RING threads have a lock each, and want that of the next one; if
 * CLOSED is 0, the last one sleeps instead. BEHIND threads want the first lock. All of them stay
 * so. It prints the numbers of the first threads when they are about to wait.
 */
#include "truth.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RING_MAX 16

static pthread_mutex_t locks[RING_MAX];
static pthread_barrier_t all_hold;
static pid_t tids[RING_MAX];
static size_t ring;
static bool closed;

static __attribute__((noinline)) void want(size_t lock)
{
	pthread_mutex_lock(&locks[lock]);
}

static void *holder(void *arg)
{
	size_t i = (size_t)arg;

	tids[i] = gettid();
	pthread_mutex_lock(&locks[i]);
	pthread_barrier_wait(&all_hold);
	if (i + 1 == ring && !closed)
		truth_sleep(1000 * NSEC_PER_SEC);
	want((i + 1) % ring);
	return NULL;
}

static void *behind(void *arg)
{
	pthread_barrier_wait(&all_hold);
	want(0);
	return arg;
}

int main(int argc, char **argv)
{
	size_t others = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	pthread_t thread;

	ring = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
	truth_check(ring > 0 && ring <= RING_MAX, "deadlock RING BEHIND CLOSED");
	closed = strtoul(argv[3], NULL, 10);
	for (size_t i = 0; i < ring; i++)
		pthread_mutex_init(&locks[i], NULL);
	pthread_barrier_init(&all_hold, NULL, (unsigned int)(ring + others) + 1);
	for (size_t i = 0; i < ring + others; i++)
		truth_check(pthread_create(&thread, NULL, i < ring ? holder : behind, (void *)i) ==
				    0,
			    "pthread_create");
	pthread_barrier_wait(&all_hold);
	for (size_t i = 0; i < ring; i++)
		printf("%d ", tids[i]);
	puts("");
	fflush(stdout);
	pthread_join(thread, NULL);
	return 0;
}
