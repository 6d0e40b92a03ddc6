/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "budget.h"
#include "maps.h"
#include "records.h"
#include "test_tools.h"

#define STEPS	200
#define SHARE	0.02
#define RAN_NS	50000000ULL /* in a step */
#define WAIT_US 500.0	    /* all waits expect so much */
#define MOST	(BUDGET_LONG_NS >> 10)

typedef struct Machine {
	double fixed,
		stacks; /* cost without stacks and of all stacks, relative to the running time */
	uint64_t now_ns, cost_ns, ran_ns;
	double last; /* cost in the last step */
} Machine;

/* Runs for a step in which stacks are taken as bpf/core/budget.bpf.h does. */
static void run_for(Machine *machine, uint32_t units, uint64_t ns)
{
	double chance = WAIT_US / units;

	chance = chance > 1 ? 1 : chance;
	if (chance < (double)CHANCE_LEAST / CHANCE_CERTAIN)
		chance = (double)CHANCE_LEAST / CHANCE_CERTAIN;
	machine->last = machine->fixed + machine->stacks * chance;
	machine->now_ns += ns;
	machine->ran_ns += RAN_NS;
	machine->cost_ns += machine->last * RAN_NS;
}

static uint32_t settle(Budget *budget, Machine *machine, uint32_t units)
{
	for (int i = 0; i < STEPS; i++) {
		run_for(machine, units, BUDGET_STEP_NS);
		units = budget_step(budget, machine->now_ns, machine->cost_ns, machine->ran_ns);
		assert_int_not_equal(units, 0);
	}
	return units;
}

static void test_converges(void **state)
{
	(void)state;
	Machine machine = {.fixed = 0.005, .stacks = 0.1};
	Budget budget;

	budget_begin(&budget, SHARE, 0);
	settle(&budget, &machine, 1);
	assert_true(machine.last > 0.9 * SHARE && machine.last < 1.1 * SHARE);
}

/* It falls to the budget within a second, and all stacks come back when they are cheap. */
static void test_follows(void **state)
{
	(void)state;
	Machine machine = {.fixed = 0.002, .stacks = 0.1};
	uint32_t units = 1;
	Budget budget;

	budget_begin(&budget, SHARE, 0);
	for (int i = 0; i < 10; i++) {
		run_for(&machine, units, BUDGET_STEP_NS);
		units = budget_step(&budget, machine.now_ns, machine.cost_ns, machine.ran_ns);
	}
	assert_true(machine.last < 1.2 * SHARE);
	machine.stacks = 0.001;
	assert_int_equal(settle(&budget, &machine, units), 1);
}

/* The fixed cost exceeds the budget: long waits still have their stacks. */
static void test_too_small(void **state)
{
	(void)state;
	Machine machine = {.fixed = 0.05, .stacks = 0.1};
	Budget budget;

	budget_begin(&budget, SHARE, 0);
	assert_int_equal(settle(&budget, &machine, 1), MOST);
}

/* A step without enough time, or in which hardly anything ran, says nothing. */
static void test_short_steps(void **state)
{
	(void)state;
	Budget budget;

	budget_begin(&budget, SHARE, 1000);
	assert_int_equal(budget_step(&budget, 1000 + BUDGET_STEP_NS - 1, RAN_NS, RAN_NS), 0);
	assert_int_equal(budget_step(&budget, 1000 + BUDGET_STEP_NS, 1, BUDGET_STEP_RAN_NS - 1), 0);
	assert_int_equal(budget_step(&budget, 1000 + BUDGET_STEP_NS, RAN_NS, RAN_NS), 8);
	assert_int_equal(budget_step(&budget, 1001 + BUDGET_STEP_NS, 2 * RAN_NS, 2 * RAN_NS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_converges),
		cmocka_unit_test(test_follows),
		cmocka_unit_test(test_too_small),
		cmocka_unit_test(test_short_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
