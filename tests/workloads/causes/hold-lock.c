/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hold-lock NAME THREADS MS - a thread called NAME sleeps for MS milliseconds in save_table() while
 * it holds table_lock, which THREADS others want in look_up().
 */
#include "truth.h"
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t is_held;
static uint64_t hold_ns;

static __attribute__((noinline)) void save_table(void)
{
	truth_sleep(hold_ns);
}

static void *writer(void *name)
{
	pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&table_lock);
	pthread_barrier_wait(&is_held);
	save_table();
	pthread_mutex_unlock(&table_lock);
	return NULL;
}

static __attribute__((noinline)) void look_up(void)
{
	pthread_mutex_lock(&table_lock);
	truth_burn(NSEC_PER_MSEC / 2);
	pthread_mutex_unlock(&table_lock);
}

static void *reader(void *arg)
{
	pthread_setname_np(pthread_self(), "reader");
	pthread_barrier_wait(&is_held);
	look_up();
	return arg;
}

int main(int argc, char **argv)
{
	size_t count = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	pthread_t threads[count + 1];

	truth_check(count > 0, "hold-lock NAME THREADS MS");
	hold_ns = strtoul(argv[3], NULL, 10) * NSEC_PER_MSEC;
	pthread_barrier_init(&is_held, NULL, (unsigned int)count + 1);
	for (size_t i = 0; i <= count; i++)
		truth_check(pthread_create(&threads[i], NULL, i ? reader : writer, argv[1]) == 0,
			    "pthread_create");
	/* The one that has to wait for the lock is joined first, as in a pool that does not know it
	 * either. */
	for (size_t i = count + 1; i-- > 0;)
		pthread_join(threads[i], NULL);
	return 0;
}
