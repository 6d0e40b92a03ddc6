/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tickers - computes for --ms of CPU time and takes a mutex again and again, while --threads
 * tickers sleep for up to --period-us at a time and then have the mutex for --hold-us of CPU time.
 * So the run is as long as main()'s computing and its waits for the mutex, whatever the tickers'
 * sleeps are.
 */
#include "truth.h"
#include <pthread.h>
#include <stdatomic.h>

static uint64_t thread_count = 2, ms = 300, period_us = 60000, hold_us = 4000, seed = 1;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool over;

static void *ticker(void *arg)
{
	uint64_t number = (uint64_t)(uintptr_t)arg, state = seed + number;
	TruthThread *self = truth_begin("ticker %lu", number);

	while (!atomic_load(&over)) {
		uint64_t begin;

		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		truth_sleep(period_us * 1000 / 2 + (state >> 33) % (period_us * 1000 / 2 + 1));
		pthread_mutex_lock(&mutex);
		begin = truth_now();
		truth_burn(hold_us * 1000);
		truth_wait(self, "hold", begin);
		pthread_mutex_unlock(&mutex);
	}
	truth_park(self);
}

int main(int argc, char **argv)
{
	TruthThread *self;

	truth_options(argc, argv,
		      (TruthOption[]){{"threads", &thread_count},
				      {"ms", &ms},
				      {"period-us", &period_us},
				      {"hold-us", &hold_us},
				      {"seed", &seed},
				      {}});
	self = truth_begin("tickers");
	for (uint64_t i = 0; i < thread_count; i++)
		truth_spawn(ticker, i);
	for (uint64_t done_us = 0; done_us < ms * 1000; done_us += 1000) {
		uint64_t begin = truth_now();

		pthread_mutex_lock(&mutex);
		truth_wait(self, "mutex", begin);
		truth_burn(500 * 1000);
		pthread_mutex_unlock(&mutex);
		truth_burn(500 * 1000);
	}
	atomic_store(&over, true);
	truth_finish(self);
}
