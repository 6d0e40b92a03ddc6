/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "budget.h"
#include "maps.h"
#include "util.h"

/*
 * The units change by at most these factors in a step. The chance of most stacks is inversely
 * proportional to the units, so the ratio of the cost to the budget is the step that is needed, and
 * less than it if a part of the cost is fixed. Too high a cost is corrected faster than too low a
 * one, because there is no limit to how much it may exceed the budget.
 */
#define FACTOR_MOST  8.0
#define FACTOR_LEAST 0.5

void budget_begin(Budget *budget, double share, uint64_t now_ns)
{
	*budget = (Budget){.share = share, .units = 1, .step_ns = now_ns};
}

uint32_t budget_step(Budget *budget, uint64_t now_ns, uint64_t cost_ns, uint64_t ran_ns)
{
	uint64_t cost = cost_ns - budget->cost_ns, ran = ran_ns - budget->ran_ns;
	double factor;

	if (now_ns - budget->step_ns < BUDGET_STEP_NS || ran < BUDGET_STEP_RAN_NS)
		return 0;
	factor = cost / (budget->share * ran);
	budget->units *= MIN(MAX(factor, FACTOR_LEAST), FACTOR_MOST);
	budget->units = MIN(MAX(budget->units, 1.0), (double)(BUDGET_LONG_NS >> 10));
	budget->step_ns = now_ns;
	budget->cost_ns = cost_ns;
	budget->ran_ns = ran_ns;
	return budget->units;
}
