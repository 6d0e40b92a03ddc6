/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hot-thread NAME THREADS HOT MS - THREADS threads, called NAME-0 and so on, use a few milliseconds
 * of CPU time each in look_up(); HOT is the number of the one that then uses MS milliseconds in
 * rehash().
 */
#include "truth.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char *prefix;
static size_t hot;
static uint64_t hot_ns;

static __attribute__((noinline)) void look_up(void)
{
	truth_burn(4 * NSEC_PER_MSEC);
}

static __attribute__((noinline)) uint64_t rehash(void)
{
	uint64_t end_ns = truth_cpu() + hot_ns, hash = 0;

	while (truth_cpu() < end_ns)
		for (uint64_t i = 0; i < 100000; i++)
			hash = (hash ^ i) * 0x100000001b3;
	return hash;
}

static void *shard(void *arg)
{
	size_t number = (size_t)(uintptr_t)arg;
	char name[16];

	snprintf(name, sizeof(name), "%s-%zu", prefix, number);
	pthread_setname_np(pthread_self(), name);
	look_up();
	return number == hot && rehash() == 0 ? arg : NULL;
}

int main(int argc, char **argv)
{
	size_t count = argc == 5 ? strtoul(argv[2], NULL, 10) : 0;
	pthread_t threads[count + 1];

	truth_check(count > 0, "hot-thread NAME THREADS HOT MS");
	prefix = argv[1];
	hot = strtoul(argv[3], NULL, 10);
	hot_ns = strtoul(argv[4], NULL, 10) * NSEC_PER_MSEC;
	for (size_t i = 0; i < count; i++)
		truth_check(pthread_create(&threads[i], NULL, shard, (void *)(uintptr_t)i) == 0,
			    "pthread_create");
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
