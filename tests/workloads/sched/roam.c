/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * roam - uses `--ms` of CPU time on the first of its `--cpus` CPUs, as much on the second, and so
 * on, `--stays` times; before each it sleeps for `--pause`, in ms.
 */
#include "truth.h"
#include <sched.h>

static uint64_t ms = 100, stays = 2, cpus = CPU_SETSIZE, pause_ms = 0;

static int cpu_of(const cpu_set_t *allowed, uint64_t stay)
{
	int cpu = 0;

	for (uint64_t left = stay % CPU_COUNT(allowed);; cpu++)
		if (CPU_ISSET(cpu, allowed) && left-- == 0)
			return cpu;
}

int main(int argc, char **argv)
{
	TruthThread *self;
	cpu_set_t allowed, one;

	truth_options(
		argc, argv,
		(TruthOption[]){
			{"ms", &ms}, {"stays", &stays}, {"cpus", &cpus}, {"pause", &pause_ms}, {}});
	truth_confine(cpus);
	self = truth_begin("roam");
	truth_check(sched_getaffinity(0, sizeof(allowed), &allowed) == 0, "sched_getaffinity");
	for (uint64_t i = 0; i < stays; i++) {
		uint64_t begin;

		CPU_ZERO(&one);
		CPU_SET(cpu_of(&allowed, i), &one);
		truth_check(sched_setaffinity(0, sizeof(one), &one) == 0, "sched_setaffinity");
		truth_sleep(pause_ms * NSEC_PER_MSEC);
		begin = truth_now();
		truth_burn(ms * NSEC_PER_MSEC);
		truth_wait(self, "stay", begin);
	}
	truth_finish(self);
}
