/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "programs_private.h"
#include "util.h"
#include <errno.h>
#include <sys/mman.h>

#define SLEEPS_BYTES (SLEEP_SLOTS * sizeof(uint64_t))

int programs_map_budget(Programs *programs)
{
	const struct wallprof *group = programs->groups[LOAD_GROUP_SWITCH];
	void *memory;

	if (!group->rodata->setting_budget)
		return 0;
	memory = mmap(NULL, SLEEPS_BYTES, PROT_READ, MAP_SHARED,
		      bpf_map__fd(group->maps.budget_sleeps), 0);
	if (memory == MAP_FAILED)
		return -errno;
	programs->budget_sleeps = memory;
	programs_set_budget(programs, 1);
	return 0;
}

void programs_unmap_budget(Programs *programs)
{
	if (programs->budget_sleeps)
		munmap((void *)programs->budget_sleeps, SLEEPS_BYTES);
	programs->budget_sleeps = NULL;
}

void programs_set_budget(Programs *programs, uint32_t certain_units)
{
	programs->groups[LOAD_GROUP_SWITCH]->bss->budget_rate = BUDGET_RATE(certain_units);
}

bool programs_lack_stacks(const Programs *programs)
{
	const struct wallprof__bss *state = programs->groups[LOAD_GROUP_SWITCH]->bss;
	uint64_t now = now_ns();

	if (!programs->budget_sleeps)
		return false;
	for (size_t i = 0; i < SLEEP_SLOTS; i++) {
		uint64_t word = programs->budget_sleeps[i], start;

		if (!(word & BUDGET_SLEEP_UNSAMPLED))
			continue;
		start = state->thread_slots[i].sleep_start;
		if (SLEEP_START_TID(start) == BUDGET_SLEEP_TID(word) &&
		    now >= SLEEP_START_NS(start) + BUDGET_LONG_NS)
			return true;
	}
	return false;
}
