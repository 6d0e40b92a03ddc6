/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wrappers ROUNDS LOCK_US FLUSH_US OTHER_US - each round sleeps LOCK_US and FLUSH_US microseconds,
 * for different callers of one wrapper. A thread of another name sleeps OTHER_US microseconds
 * through the same one; with 0 there is none.
 */
#include "truth.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* Functions with the same instructions would be merged. */
static volatile unsigned long locks, flushes;

static __attribute__((noinline)) void wait_event(uint64_t us)
{
	truth_sleep(us * 1000);
}

static __attribute__((noinline)) void wait_latch(uint64_t us)
{
	wait_event(us);
}

static __attribute__((noinline)) void lock_row(uint64_t us)
{
	locks++;
	if (us > 0)
		wait_latch(us);
}

static __attribute__((noinline)) void flush_log(uint64_t us)
{
	flushes++;
	if (us > 0)
		wait_latch(us);
}

static void *other(void *us)
{
	prctl(PR_SET_NAME, "other");
	flush_log((uintptr_t)us);
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t us[3] = {};
	pthread_t thread;

	truth_check(argc == 5, "wrappers ROUNDS LOCK_US FLUSH_US OTHER_US");
	for (int i = 0; i < 3; i++)
		us[i] = strtoull(argv[i + 2], NULL, 10);
	if (us[2] > 0)
		truth_check(pthread_create(&thread, NULL, other, (void *)(uintptr_t)us[2]) == 0,
			    "pthread_create");
	for (unsigned long i = strtoul(argv[1], NULL, 10); i > 0; i--) {
		lock_row(us[0]);
		flush_log(us[1]);
	}
	if (us[2] > 0)
		pthread_join(thread, NULL);
	return 0;
}
