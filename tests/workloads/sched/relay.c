/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * relay - threads that hand one mutex on, each `--rounds` times: its holder keeps it for up to
 * `--hold-us`, asleep, as --seed says, and then pauses for as long before it wants it again. So
 * it nearly always has a holder: the holders are what the run waited for.
 */
#include "truth.h"
#include <pthread.h>
#include <sys/resource.h>

static uint64_t thread_count = 8, rounds = 20, hold_us = 2000, seed = 1;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_there;

static uint64_t random_hold(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return hold_us * 1000 / 2 + (*state >> 33) % (hold_us * 1000 / 2 + 1);
}

static long sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static void *runner(void *arg)
{
	uint64_t number = (uint64_t)(uintptr_t)arg, state = seed + number;
	TruthThread *self = truth_begin("runner %lu", number);

	pthread_barrier_wait(&all_there);
	for (uint64_t i = 0; i < rounds; i++) {
		long before = sleeps();
		uint64_t begin = truth_now();

		pthread_mutex_lock(&mutex);
		truth_wait(self, sleeps() > before ? "mutex" : "free", begin);
		begin = truth_now();
		truth_sleep(random_hold(&state));
		truth_wait(self, "hold", begin);
		pthread_mutex_unlock(&mutex);
		begin = truth_now();
		truth_sleep(random_hold(&state));
		truth_wait(self, "pause", begin);
	}
	truth_park(self);
}

int main(int argc, char **argv)
{
	TruthThread *self;

	truth_options(argc, argv,
		      (TruthOption[]){{"threads", &thread_count},
				      {"rounds", &rounds},
				      {"hold-us", &hold_us},
				      {"seed", &seed},
				      {}});
	self = truth_begin("relay");
	pthread_barrier_init(&all_there, NULL, (unsigned int)thread_count);
	for (uint64_t i = 0; i < thread_count; i++)
		truth_spawn(runner, i);
	truth_finish(self);
}
