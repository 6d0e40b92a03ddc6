/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pingpong - two threads pass one byte back and forth through two pipes,
 * `--rounds` times, on `--cpus` CPUs, with `--pause-us` asleep before each answer.
 */
#include "truth.h"
#include <unistd.h>

static uint64_t rounds = 20000, pause_us, cpus = 2;
static int there[2], back[2];

/* Thousands of short waits are not worth a line each. */
static void receive(int fd, TruthThread *self, bool told)
{
	uint64_t begin = truth_now();
	char byte;

	truth_check(read(fd, &byte, 1) == 1, "read");
	if (told)
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

int main(int argc, char **argv)
{
	TruthThread *self;

	truth_options(
		argc, argv,
		(TruthOption[]){{"rounds", &rounds}, {"pause-us", &pause_us}, {"cpus", &cpus}, {}});
	truth_confine(cpus);
	truth_check(pipe(there) == 0 && pipe(back) == 0, "pipe");
	self = truth_begin("ask");
	truth_spawn(answer, 0);
	for (uint64_t i = 0; i < rounds; i++) {
		truth_check(write(there[1], "a", 1) == 1, "write");
		receive(back[0], self, pause_us != 0);
	}
	truth_finish(self);
}
