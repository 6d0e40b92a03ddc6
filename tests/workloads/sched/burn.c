/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * burn - `--threads` each use `--ms` of CPU time, all of them on `--cpus` CPUs, so
 * that with more threads than CPUs the rest of their time is runnable.
 */
#include "truth.h"

static uint64_t thread_count = 1, ms = 200, cpus = 2;

static void *burner(void *arg)
{
	TruthThread *self = truth_begin("burner %lu", (uint64_t)(uintptr_t)arg);

	truth_burn(ms * NSEC_PER_MSEC);
	truth_park(self);
}

int main(int argc, char **argv)
{
	TruthThread *self;

	truth_options(
		argc, argv,
		(TruthOption[]){{"threads", &thread_count}, {"ms", &ms}, {"cpus", &cpus}, {}});
	truth_confine(cpus);
	self = truth_begin("burn");
	for (uint64_t i = 0; i < thread_count; i++)
		truth_spawn(burner, i);
	truth_finish(self);
}
