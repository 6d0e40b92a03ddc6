/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * budget.h - how long a wait must be to always have its stacks, so that recording does not cost
 * more than --budget allows (bpf/core/budget.bpf.h).
 *
 * The cost is the time of the BPF programs on all CPUs, relative to the time that the recorded
 * threads ran. The summary shows less: only what falls into these threads' time. It is measured in
 * steps. What every switch costs cannot be saved, so the
 * budget may be too small for it; then stacks are taken with the least chance.
 */
#ifndef WALLPROF_BUDGET_H
#define WALLPROF_BUDGET_H

#include <stdint.h>

/* A step is at least so long, and the recorded threads ran for so long in it. */
#define BUDGET_STEP_NS	   100000000ULL
#define BUDGET_STEP_RAN_NS 5000000ULL

typedef struct Budget {
	double share;	  /* of the running time; what is allowed */
	double units;	  /* waits of so many units of 1024 ns always have their stacks */
	uint64_t step_ns; /* when the last step ended */
	uint64_t cost_ns; /* both sums at that time */
	uint64_t ran_ns;
} Budget;

/* Begins with stacks for all waits. */
void budget_begin(Budget *budget, double share, uint64_t now_ns);

/*
 * Ends the step, if it was long enough: the sums are those of all CPUs since the start of the
 * recording. Returns the units for programs_set_budget(), or 0 if the step has not ended.
 */
uint32_t budget_step(Budget *budget, uint64_t now_ns, uint64_t cost_ns, uint64_t ran_ns);

#endif
