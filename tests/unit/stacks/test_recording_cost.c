/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cost of recording is subtracted from the functions in which ticks show it, row by row. */
#include "make_record.h"
#include "recording_cost.h"
#include "sample_rows.h"
#include "stack_table.h"
#include "timeline_fixture.h"
#include <setjmp.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define MS  NSEC_PER_MSEC
#define OWN 0xffffffffc0010000ULL /* wallprof's programs are there */

enum place { USER, INSIDE, SWITCH, UNLOCK, OTHER, PLACES };

static const struct {
	uint64_t address;
	const char *name;
} kernel[PLACES] = {
	[INSIDE] = {OWN + 8, NULL},
	[SWITCH] = {0xffffffff81000010ULL, "finish_task_switch.isra.0"},
	[UNLOCK] = {0xffffffff81000110ULL, "_raw_spin_unlock_irqrestore"},
	[OTHER] = {0xffffffff81000210ULL, "clear_page_erms"},
};

typedef struct Fixture {
	Timeline *timeline;
	Frames *frames;
	uint32_t stacks[PLACES];
	uint64_t ns;
} Fixture;

static int set_up(void **state)
{
	Fixture *fixture = xcalloc(1, sizeof(*fixture));

	fixture->timeline = fixture_new(1000 * MS);
	fixture->frames = frames_new();
	*vec_push(&fixture->timeline->own_code) = (AddressRange){OWN, OWN + 64};
	fixture->timeline->cost_known = true;
	for (enum place place = INSIDE; place < PLACES; place++) {
		fixture->stacks[place] =
			fixture_stack(fixture->timeline, kernel[place].address, false);
		if (kernel[place].name) {
			struct record *symbol =
				make_symbol(0, 0, kernel[place].address, kernel[place].address,
					    kernel[place].name, NULL);

			frames_add(fixture->frames, symbol);
			free(symbol);
		}
	}
	fixture_process(fixture->timeline, 10, "app", 0, 1000 * MS);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	timeline_free(fixture->timeline);
	frames_free(fixture->frames);
	free(fixture);
	return 0;
}

/* A thread that runs all the time, with ticks[place] ticks of 1 ms at each place. */
static uint32_t add_thread(Fixture *fixture, const unsigned ticks[PLACES])
{
	uint32_t thread = fixture_thread(
		fixture->timeline, 0, 10 + fixture->timeline->threads.count, "app", 0, 1000 * MS);
	uint64_t ns = 0;

	fixture_interval(fixture->timeline, thread, 0, STATE_RUNNING, REASON_NONE);
	for (enum place place = 0; place < PLACES; place++)
		for (unsigned i = 0; i < ticks[place]; i++) {
			Tick *tick =
				fixture_tick(fixture->timeline, thread, ns += MS, place == USER);

			if (place != USER)
				tick->kernel_stack = fixture->stacks[place];
		}
	fixture_interval(fixture->timeline, thread, ns, STATE_BLOCKED, REASON_SLEEP);
	return thread;
}

/* Two alternate, so that bands of all classes border on each other. */
static uint32_t add_mixed(Fixture *fixture, unsigned rounds)
{
	static const enum place order[] = {USER, SWITCH, OTHER, UNLOCK, INSIDE, USER, SWITCH};
	uint32_t thread = fixture_thread(
		fixture->timeline, 0, 10 + fixture->timeline->threads.count, "app", 0, 1000 * MS);
	uint64_t ns = 0;

	for (unsigned i = 0; i < rounds; i++) {
		fixture_interval(fixture->timeline, thread, ns, STATE_RUNNING, REASON_NONE);
		for (size_t k = 0; k < ARRAY_LEN(order); k++) {
			Tick *tick =
				fixture_tick(fixture->timeline, thread, ns += MS, order[k] == USER);

			if (order[k] != USER)
				tick->kernel_stack = fixture->stacks[order[k]];
		}
		/* The rest of the run belongs to the next tick. */
		fixture_interval(fixture->timeline, thread, ns += MS / 3, STATE_BLOCKED,
				 REASON_SLEEP);
		ns += MS;
	}
	return thread;
}

typedef struct Sum {
	StackTable *tables;
	const char *name;
	uint64_t ns, running_ns;
	uint64_t painted_ns; /* as the viewer paints it: each row up to half of the way to the next
				one */
	uint64_t last_ns;
	bool last_is_it;
} Sum;

static void add_row(void *user, const Row *row)
{
	Sum *sum = user;
	enum category category = stack_table_leaf_category(sum->tables, row->stack);

	bool is_it;

	assert_true(row->weight_ns <= 1000 * MS);
	if (category == CATEGORY_USER || category == CATEGORY_KERNEL ||
	    category == CATEGORY_RECORDING)
		sum->running_ns += row->weight_ns;
	is_it = !strcmp(stack_table_leaf_name(sum->tables, row->stack), sum->name);
	if (is_it)
		sum->ns += row->weight_ns;
	if (sum->last_ns) {
		uint64_t half_ns = (row->ns - sum->last_ns) / 2;

		sum->painted_ns += (sum->last_is_it ? half_ns : 0) + (is_it ? half_ns : 0);
	}
	sum->last_ns = row->ns;
	sum->last_is_it = is_it;
}

/* Sums all rows, at a fold. */
static Sum sum_of(Fixture *fixture, const char *name, uint64_t fold_ns)
{
	StackTable *tables = stack_table_new(fixture->timeline, fixture->frames);
	Sum sum = {.tables = tables, .name = name};
	RowPlan plan;

	row_plan_init(&plan, fixture->timeline, 0);
	plan.fold_ns = fold_ns;
	for (uint32_t i = 0; i < fixture->timeline->threads.count; i++)
		sample_rows_walk(tables, &plan, i, true, add_row, &sum);
	row_plan_free(&plan);
	stack_table_free(tables);
	return sum;
}

static void expect_near(Fixture *fixture, const char *name, uint64_t ns)
{
	static const uint64_t folds[] = {0, 5 * MS};

	for (size_t i = 0; i < ARRAY_LEN(folds); i++) {
		uint64_t got = sum_of(fixture, name, folds[i]).ns;

		assert_true(got + 2000 >= ns && got <= ns + 2000);
	}
}

/* The picture shows recording's share as the weights have it, except for bands too small to see. */
static void expect_painted(Fixture *fixture, uint64_t ns)
{
	uint64_t got = sum_of(fixture, RECORDING_FUNCTION, 0).painted_ns;

	assert_true(got <= ns + MS / 100 && got + 2 * MS >= ns);
}

static void test_classes(void **state)
{
	Fixture *fixture = *state;
	uint32_t thread = add_thread(
		fixture,
		(const unsigned[PLACES]){
			[USER] = 50, [INSIDE] = 10, [SWITCH] = 20, [UNLOCK] = 10, [OTHER] = 10});

	fixture->timeline->threads.items[thread].recording =
		(RecordingCost){.switches_ns = 8 * MS, .others_ns = 15 * MS};
	recording_cost_find(fixture->timeline, fixture->frames);
	expect_near(fixture, RECORDING_FUNCTION, 23 * MS);
	expect_painted(fixture, 23 * MS);
	expect_near(fixture, "finish_task_switch.isra.0", 12 * MS);
	expect_near(fixture, "_raw_spin_unlock_irqrestore", 5 * MS);
	expect_near(fixture, "clear_page_erms", 10 * MS);
	expect_near(fixture, "[kernel]", 0);
	assert_int_equal(sum_of(fixture, "", 0).running_ns, 100 * MS);
}

/* In a paravirtualized guest interrupts are enabled by a function, which is called there. */
static void test_paravirtualized(void **state)
{
	static const struct {
		uint64_t address;
		const char *name;
	} inner[] = {{0xffffffff81000310ULL, "pvm_irq_enable"},
		     {0xffffffff81000410ULL, "__raw_callee_save_pvm_irq_enable"}};
	Fixture *fixture = *state;
	uint32_t thread;

	for (size_t i = 0; i < ARRAY_LEN(inner); i++) {
		struct record *symbol =
			make_symbol(0, 0, inner[i].address, inner[i].address, inner[i].name, NULL);

		frames_add(fixture->frames, symbol);
		free(symbol);
	}
	for (enum place place = SWITCH; place < PLACES; place++) {
		uint32_t stack = fixture_stack(fixture->timeline, inner[0].address, false);

		/* Return addresses. */
		*vec_push(&fixture->timeline->frames) = inner[1].address + 1;
		*vec_push(&fixture->timeline->frames) = kernel[place].address + 1;
		fixture->timeline->stacks.items[stack].count = 3;
		fixture->stacks[place] = stack;
	}
	thread = add_thread(
		fixture,
		(const unsigned[PLACES]){[USER] = 50, [SWITCH] = 20, [UNLOCK] = 20, [OTHER] = 10});
	fixture->timeline->threads.items[thread].recording =
		(RecordingCost){.switches_ns = 8 * MS, .others_ns = 5 * MS};
	recording_cost_find(fixture->timeline, fixture->frames);
	expect_near(fixture, RECORDING_FUNCTION, 13 * MS);
	expect_near(fixture, "pvm_irq_enable", 37 * MS);
	expect_near(fixture, "[kernel]", 0);
}

/* If there are too few such ticks, every tick gives a little. */
static void test_too_few(void **state)
{
	Fixture *fixture = *state;
	uint32_t thread = add_thread(
		fixture, (const unsigned[PLACES]){[OTHER] = 80, [SWITCH] = 10, [UNLOCK] = 10});

	fixture->timeline->threads.items[thread].recording =
		(RecordingCost){.switches_ns = 14 * MS, .others_ns = 14 * MS};
	recording_cost_find(fixture->timeline, fixture->frames);
	expect_near(fixture, RECORDING_FUNCTION, 28 * MS);
	expect_near(fixture, "clear_page_erms", 72 * MS);
	expect_near(fixture, "finish_task_switch.isra.0", 0);
}

/* A BPF program that no tick hit. */
static void test_no_ticks(void **state)
{
	Fixture *fixture = *state;
	uint32_t thread = fixture_thread(fixture->timeline, 0, 10, "app", 0, 1000 * MS);

	for (int i = 0; i < 40; i++) {
		fixture_interval(fixture->timeline, thread, i * 2 * MS, STATE_RUNNING, REASON_NONE);
		fixture_interval(fixture->timeline, thread, i * 2 * MS + MS / 4, STATE_BLOCKED,
				 REASON_SLEEP);
	}
	fixture->timeline->threads.items[thread].recording = (RecordingCost){.switches_ns = MS};
	recording_cost_find(fixture->timeline, fixture->frames);
	expect_near(fixture, RECORDING_FUNCTION, MS);
	assert_int_equal(sum_of(fixture, "", 0).running_ns, 10 * MS);
}

/* Weights sum to the running time for any order of classes. */
static void test_mixed(void **state)
{
	Fixture *fixture = *state;
	uint32_t thread = add_mixed(fixture, 20);
	uint64_t running = 20 * (7 * MS + MS / 3);

	fixture->timeline->threads.items[thread].recording =
		(RecordingCost){.switches_ns = 25 * MS, .others_ns = 30 * MS};
	recording_cost_find(fixture->timeline, fixture->frames);
	expect_near(fixture, RECORDING_FUNCTION, 55 * MS);
	expect_painted(fixture, 55 * MS);
	assert_int_equal(sum_of(fixture, "", 0).running_ns, running);
	assert_int_equal(sum_of(fixture, "", 5 * MS).running_ns, running);
}

/* Recording's share is never more than the time that there is. */
static void test_all(void **state)
{
	Fixture *fixture = *state;
	uint32_t thread = add_mixed(fixture, 3);
	uint64_t running = 3 * (7 * MS + MS / 3);

	fixture->timeline->threads.items[thread].recording =
		(RecordingCost){.switches_ns = 500 * MS, .others_ns = 500 * MS};
	recording_cost_find(fixture->timeline, fixture->frames);
	expect_near(fixture, RECORDING_FUNCTION, running);
	assert_int_equal(sum_of(fixture, "", 0).running_ns, running);
}

static void test_text(void **state)
{
	Fixture *fixture = *state;
	Timeline *t = fixture->timeline;
	uint32_t thread = add_thread(fixture, (const unsigned[PLACES]){[USER] = 100});
	_cleanup_free_ char *little = NULL, *much = NULL;
	RecordingSum sum;

	fixture_finish(t);
	t->threads.items[thread].recording = (RecordingCost){MS, MS};
	little = recording_cost_text(t);
	assert_string_equal(little, "recording cost: 2.000 ms, 2.0 % of running time");
	/* Interrupts are apart from what the programs measure. */
	fixture_meta(t, "frequency", "999");
	fixture_meta(t, "tick_interrupt_ns", "30000");
	sum = recording_cost_sum(t);
	assert_int_equal(sum.recording_ns, 2 * MS);
	assert_int_equal(sum.interrupts_ns, 3 * MS);
	much = recording_cost_text(t);
	assert_string_equal(much, "recording cost: 5.000 ms, 5.0 % of running time (3.000 ms: "
				  "interrupts)");
	t->cost_known = false;
	assert_null(recording_cost_text(t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_classes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_paravirtualized, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_few, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_ticks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_mixed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_text, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
