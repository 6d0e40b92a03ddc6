/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * convoy - `--threads` take one mutex in turn, `--rounds` times each; the thread that has
 * it keeps it for `--hold-ms`, asleep or (`--burn 1`) computing.
 */
#include "truth.h"
#include <pthread.h>

static uint64_t thread_count = 4, rounds = 3, hold_ms = 20, burn;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t start;

static void hold(TruthThread *self)
{
	uint64_t begin = truth_now();

	if (burn) {
		truth_burn(hold_ms * NSEC_PER_MSEC);
		return;
	}
	truth_sleep(hold_ms * NSEC_PER_MSEC);
	truth_wait(self, "sleep", begin);
}

static void *worker(void *arg)
{
	TruthThread *self = truth_begin("convoy %lu", (uint64_t)(uintptr_t)arg);

	pthread_barrier_wait(&start);
	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t begin = truth_now();

		pthread_mutex_lock(&lock);
		truth_wait(self, "mutex", begin);
		hold(self);
		pthread_mutex_unlock(&lock);
		/* Without a pause the same thread would mostly take the mutex again. */
		begin = truth_now();
		truth_sleep(NSEC_PER_MSEC);
		truth_wait(self, "sleep", begin);
	}
	truth_park(self);
}

int main(int argc, char **argv)
{
	TruthThread *self;

	truth_options(argc, argv,
		      (TruthOption[]){{"threads", &thread_count},
				      {"rounds", &rounds},
				      {"hold-ms", &hold_ms},
				      {"burn", &burn},
				      {}});
	self = truth_begin("convoy");
	truth_check(pthread_barrier_init(&start, NULL, (unsigned)thread_count) == 0, "barrier");
	for (uint64_t i = 0; i < thread_count; i++)
		truth_spawn(worker, i);
	truth_finish(self);
}
