/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * locks MS - one thread each waits MS milliseconds for a mutex, for a condition variable, and to
 * join another thread, and has the name of its wait. It uses POSIX alone, so that any C library
 * works.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define NSEC_PER_MSEC 1000000L

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_int begun;
static int is_changed, is_failed;
static long ms;

/* Then it is about to wait. */
static void call_self(const char *name)
{
	prctl(PR_SET_NAME, name);
	atomic_fetch_add(&begun, 1);
}

static void doze(long for_ms)
{
	struct timespec time = {.tv_sec = for_ms / 1000, .tv_nsec = for_ms % 1000 * NSEC_PER_MSEC};

	nanosleep(&time, NULL);
}

static void *wait_mutex(void *arg)
{
	call_self("mutex");
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
	return arg;
}

static void *wait_condvar(void *arg)
{
	call_self("condvar");
	pthread_mutex_lock(&guard);
	while (!is_changed)
		pthread_cond_wait(&changed, &guard);
	pthread_mutex_unlock(&guard);
	return arg;
}

static void *sleep_once(void *arg)
{
	call_self("sleeper");
	doze(ms);
	return arg;
}

static void *wait_join(void *arg)
{
	pthread_t other;

	call_self("join");
	is_failed |= pthread_create(&other, NULL, sleep_once, NULL) || pthread_join(other, NULL);
	return arg;
}

int main(int argc, char **argv)
{
	static void *(*const waits[])(void *) = {wait_mutex, wait_condvar, wait_join};
	pthread_t threads[3];

	ms = argc > 1 ? atol(argv[1]) : 50;
	pthread_mutex_lock(&held);
	for (int i = 0; i < 3; i++)
		is_failed |= pthread_create(&threads[i], NULL, waits[i], NULL);
	while (atomic_load(&begun) < 4)
		doze(1);
	doze(ms);
	pthread_mutex_unlock(&held);
	pthread_mutex_lock(&guard);
	is_changed = 1;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&guard);
	for (int i = 0; i < 3; i++)
		is_failed |= pthread_join(threads[i], NULL);
	return is_failed;
}
