/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pool - `--threads` workers idle on a condition variable; after `--convoy-at-ms`
 * all are woken at once and queue for one mutex, which the first holds for
 * `--hold-ms` and the others for no time; then they idle again until
 * `--total-ms`. `--idle` more threads are another pool, which is not woken before.
 */
#include "truth.h"
#include <pthread.h>

static uint64_t thread_count = 40, idle_count, convoy_at_ms = 150, hold_ms = 80, total_ms = 400;
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_wakeup = PTHREAD_COND_INITIALIZER;
static pthread_cond_t idle_wakeup = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
static uint64_t generation, held;

static void await_generation(TruthThread *self, pthread_cond_t *wakeup, uint64_t wanted,
			     const char *kind)
{
	uint64_t begin = truth_now();

	pthread_mutex_lock(&pool_lock);
	while (generation < wanted)
		pthread_cond_wait(wakeup, &pool_lock);
	pthread_mutex_unlock(&pool_lock);
	truth_wait(self, kind, begin);
}

static void *worker(void *arg)
{
	TruthThread *self = truth_begin("worker %lu", (uint64_t)(uintptr_t)arg);
	uint64_t begin;

	await_generation(self, &pool_wakeup, 1, "condvar");
	begin = truth_now();
	pthread_mutex_lock(&shared);
	truth_wait(self, "mutex", begin);
	if (!held) {
		held = 1;
		begin = truth_now();
		truth_sleep(hold_ms * NSEC_PER_MSEC);
		truth_wait(self, "sleep", begin);
	}
	pthread_mutex_unlock(&shared);
	await_generation(self, &pool_wakeup, 2, "condvar");
	truth_park(self);
}

static void *idler(void *arg)
{
	TruthThread *self = truth_begin("idle %lu", (uint64_t)(uintptr_t)arg);

	await_generation(self, &idle_wakeup, 2, "between jobs");
	truth_park(self);
}

static void advance(void)
{
	pthread_mutex_lock(&pool_lock);
	generation++;
	pthread_cond_broadcast(&pool_wakeup);
	if (generation == 2)
		pthread_cond_broadcast(&idle_wakeup);
	pthread_mutex_unlock(&pool_lock);
}

int main(int argc, char **argv)
{
	TruthThread *self;
	uint64_t begin;

	truth_options(argc, argv,
		      (TruthOption[]){{"threads", &thread_count},
				      {"idle", &idle_count},
				      {"convoy-at-ms", &convoy_at_ms},
				      {"hold-ms", &hold_ms},
				      {"total-ms", &total_ms},
				      {}});
	self = truth_begin("pool");
	for (uint64_t i = 0; i < thread_count; i++)
		truth_spawn(worker, i);
	for (uint64_t i = 0; i < idle_count; i++)
		truth_spawn(idler, i);
	begin = truth_now();
	truth_sleep(convoy_at_ms * NSEC_PER_MSEC);
	truth_wait(self, "sleep", begin);
	advance();
	begin = truth_now();
	truth_sleep((total_ms - convoy_at_ms) * NSEC_PER_MSEC);
	truth_wait(self, "sleep", begin);
	advance();
	truth_finish(self);
}
