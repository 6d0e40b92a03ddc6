/* SPDX-License-Identifier: GPL-2.0-or-later */
/* programs_budget.c - what --budget sets and reads, and what --cost prints. */
#include "programs_private.h"
#include "script_maps.h"
#include "scripts.skel.h"
#include "util.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
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

/* ---- what the programs took: --cost ---------------------------------------------------- */

/*
 * Prints a line for each program. Returns the sum of their run times in ns. The kernel counts a
 * program that another one goes on with (on_tick_script) as part of that.
 */
static uint64_t print_cost(struct bpf_object *object, FILE *out)
{
	struct bpf_program *program;
	uint64_t sum = 0;

	bpf_object__for_each_program(program, object)
	{
		struct bpf_prog_info info = {};
		uint32_t length = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length) ||
		    !info.run_cnt)
			continue;
		sum += info.run_time_ns;
		fprintf(out, "%-20s %12llu %10llu %10.3f\n", bpf_program__name(program),
			info.run_cnt, info.run_time_ns / info.run_cnt, info.run_time_ns / 1e6);
	}
	return sum;
}

/* Prints what the parts of the most frequent programs took, by their own clock readings. */
static void print_phases(const struct cpu_account *accounts, size_t cpu_count, FILE *out)
{
	static const char *const programs[COST_PROGRAMS] = {
		[COST_SWITCH] = "on_switch", [COST_WAKING] = "on_waking", [COST_TICK] = "on_tick"};
	static const char *const phases[COST_PHASES] = {
		[COST_BEGIN] = "begin",
		[COST_CALL] = "system call",
		[COST_OBJECT] = "object",
		[COST_KERNEL_HIT] = "kernel stack, remembered",
		[COST_KERNEL_WALK] = "kernel stack, walked",
		[COST_USER_HIT] = "user stack, remembered",
		[COST_USER_WALK] = "user stack, walked",
		[COST_RING] = "ring buffer",
		[COST_END] = "end",
	};

	for (size_t program = COST_SWITCH; program < COST_PROGRAMS; program++)
		for (size_t phase = 0; phase < COST_PHASES; phase++) {
			uint64_t runs = 0, ns = 0;

			for (size_t cpu = 0; cpu < cpu_count; cpu++) {
				runs += accounts[cpu].phases[program][phase][0];
				ns += accounts[cpu].phases[program][phase][1];
			}
			if (runs)
				fprintf(out, "%s: %-26s %12" PRIu64 " %10" PRIu64 " %10.3f\n",
					programs[program], phases[phase], runs, ns / runs,
					ns / 1e6);
		}
}

void programs_print_cost(Programs *programs, FILE *out, uint64_t window_ns)
{
	uint64_t sum = 0;

	if (programs->stats_fd < 0)
		return;
	fprintf(out, "%-20s %12s %10s %10s\n", "BPF program", "runs", "ns/run", "total ms");
	for (size_t i = 0; i < LOAD_GROUPS; i++)
		sum += print_cost(programs->groups[i]->obj, out);
	if (programs->scripts)
		sum += print_cost(programs->scripts->obj, out);
	print_phases(programs->accounts, programs->cpu_count, out);
	fprintf(out, "in all %.3f ms, %.2f %% of one CPU over the window\n", sum / 1e6,
		window_ns ? 100.0 * sum / window_ns : 0);
}
