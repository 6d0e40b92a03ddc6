/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sleeps - threads that sleep: each `--rounds` times for `--ms`, thread i for
 * i * `--step-us` longer. With many threads and one round: an idle server.
 */
#include "truth.h"

static uint64_t thread_count = 1, rounds = 3, ms = 50, step_us = 1000;

static void *sleeper(void *arg)
{
	uint64_t number = (uint64_t)(uintptr_t)arg;
	TruthThread *self = truth_begin("sleeper %lu", number);

	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t begin = truth_now();

		truth_sleep(ms * NSEC_PER_MSEC + number * step_us * 1000);
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
				      {"ms", &ms},
				      {"step-us", &step_us},
				      {}});
	self = truth_begin("sleeps");
	for (uint64_t i = 0; i < thread_count; i++)
		truth_spawn(sleeper, i);
	truth_finish(self);
}
