/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pingpong - two threads pass one byte back and forth through two pipes,
 * `--rounds` times, on `--cpus` CPUs, with `--pause-us` asleep before each answer; or no more
 * than `--per-ms` times in each millisecond.
 */
#include "truth.h"
#include <unistd.h>

static uint64_t rounds = 20000, pause_us, per_ms, cpus = 2;
static int there[2], back[2];

/* Thousands of short waits are not worth a line each. */
static void receive(int fd, TruthThread *self, bool is_truth)
{
	uint64_t begin = truth_now();
	char byte;

	truth_check(read(fd, &byte, 1) == 1, "read");
	if (is_truth)
		truth_wait(self, "pipe", begin);
}

static void *answer(void *arg)
{
	TruthThread *self = truth_begin("answer");

	(void)arg;
	for (uint64_t i = 0; i < rounds; i++) {
		receive(there[0], self, pause_us != 0);
		if (pause_us) {
			uint64_t begin = truth_now();

			truth_sleep(pause_us * 1000);
			truth_wait(self, "sleep", begin);
		}
		truth_check(write(back[1], "b", 1) == 1, "write");
	}
	truth_park(self);
}

/* Asleep until its millisecond begins, counted from the first, so that delays are made up for. */
static void keep_pace(uint64_t begin, uint64_t round)
{
	uint64_t due = begin + round / per_ms * 1000000, now = truth_now();

	if (round % per_ms == 0 && due > now)
		truth_sleep(due - now);
}

int main(int argc, char **argv)
{
	TruthThread *self;
	uint64_t begin;

	truth_options(argc, argv,
		      (TruthOption[]){{"rounds", &rounds},
				      {"pause-us", &pause_us},
				      {"per-ms", &per_ms},
				      {"cpus", &cpus},
				      {}});
	truth_confine(cpus);
	truth_check(pipe(there) == 0 && pipe(back) == 0, "pipe");
	self = truth_begin("ask");
	truth_spawn(answer, 0);
	begin = truth_now();
	for (uint64_t i = 0; i < rounds; i++) {
		if (per_ms)
			keep_pace(begin, i);
		truth_check(write(there[1], "a", 1) == 1, "write");
		receive(back[0], self, pause_us != 0);
	}
	truth_finish(self);
}
