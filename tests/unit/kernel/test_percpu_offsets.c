/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The offsets of per-CPU variables, from invented BTF of kernels. */
#include "percpu_offsets.h"
#include "util.h"
#include <bpf/btf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define RUNQUEUES 0x3000
#define HARDIRQ	  0x000f0000
#define ABOVE	  0x0f000000

typedef struct Variable {
	const char *name;
	unsigned int offset;
} Variable;

typedef struct Kernel {
	Variable variables[5]; /* beside runqueues */
	bool hot;	       /* pcpu_hot has the members */
	bool ungrouped;	       /* sched_entity has no cfs_rq */
	bool known;
	PercpuOffsets offsets;
} Kernel;

static int add_types(struct btf *btf, const Kernel *kernel)
{
	int number = btf__add_int(btf, "long", 8, 0), inner;

	assert_true(number > 0);
	assert_true(btf__add_struct(btf, "sched_entity", 16) > 0);
	assert_int_equal(btf__add_field(btf, kernel->ungrouped ? "load" : "cfs_rq", number, 64, 0),
			 0);
	if (!kernel->hot)
		return number;
	/* 6.2 has an anonymous struct within an anonymous union. */
	inner = btf__add_struct(btf, NULL, 32);
	assert_int_equal(btf__add_field(btf, "current_task", number, 0, 0), 0);
	assert_int_equal(btf__add_field(btf, "preempt_count", number, 64, 0), 0);
	assert_int_equal(btf__add_field(btf, "hardirq_stack_ptr", number, 128, 0), 0);
	assert_int_equal(btf__add_field(btf, "hardirq_stack_inuse", number, 192, 0), 0);
	number = btf__add_union(btf, NULL, 32);
	assert_int_equal(btf__add_field(btf, NULL, inner, 0, 0), 0);
	inner = btf__add_struct(btf, "pcpu_hot", 32);
	assert_int_equal(btf__add_field(btf, NULL, number, 0, 0), 0);
	return inner;
}

static struct btf *make_kernel(const Kernel *kernel)
{
	struct btf *btf = btf__new_empty();
	int type = add_types(btf, kernel), ids[ARRAY_LEN(kernel->variables) + 1] = {};
	size_t count = 0;

	ids[count++] = btf__add_var(btf, "runqueues", BTF_VAR_GLOBAL_ALLOCATED, type);
	for (; count < ARRAY_LEN(ids) && kernel->variables[count - 1].name; count++)
		ids[count] = btf__add_var(btf, kernel->variables[count - 1].name,
					  BTF_VAR_GLOBAL_ALLOCATED, type);
	assert_true(btf__add_datasec(btf, ".data..percpu", 0x10000) > 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(btf__add_datasec_var_info(
					 btf, ids[i],
					 i == 0 ? RUNQUEUES : kernel->variables[i - 1].offset, 8),
				 0);
	return btf;
}

static void test_offsets(void **state)
{
	static const Kernel kernels[] = {
		/* Before 6.2, and from 6.15 on. */
		{.variables = {{"__preempt_count", 0x3100},
			       {"hardirq_stack_ptr", 0x2ff0},
			       {"hardirq_stack_inuse", 0x4000}},
		 .known = true,
		 .offsets = {0x100, HARDIRQ, -0x10, 0x1000, true}},
		{.variables = {{"pcpu_hot", 0x3200}},
		 .hot = true,
		 .known = true,
		 .offsets = {0x208, HARDIRQ, 0x210, 0x218, true}},
		/* From 7.3 on. */
		{.variables = {{"__preempt_count", 0x3100},
			       {"local_interrupt_disable_state", 0x3108}},
		 .known = true,
		 .offsets = {.preempt_count = 0x100, .hardirq_mask = ABOVE}},
		/* Preemptible RT. */
		{.variables = {{"__preempt_count", 0x3100}, {"softirq_ctrl", 0x3108}}},
		{.variables = {{"__preempt_count", 0x3100}}, .ungrouped = true},
		{.variables = {{"hardirq_stack_ptr", 0x3100}}},
		{.variables = {{"pcpu_hot", 0x3200}}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kernels); i++) {
		const PercpuOffsets *wanted = &kernels[i].offsets;
		struct btf *btf = make_kernel(&kernels[i]);
		PercpuOffsets offsets = {};

		print_message("%zu\n", i);
		assert_int_equal(percpu_offsets(btf, &offsets), kernels[i].known);
		assert_int_equal(offsets.preempt_count, wanted->preempt_count);
		assert_int_equal(offsets.hardirq_mask, wanted->hardirq_mask);
		assert_int_equal(offsets.irq_stack_known, wanted->irq_stack_known);
		if (wanted->irq_stack_known) {
			assert_int_equal(offsets.irq_stack, wanted->irq_stack);
			assert_int_equal(offsets.irq_stack_in_use, wanted->irq_stack_in_use);
		}
		btf__free(btf);
	}
}

static void test_no_variables(void **state)
{
	struct btf *btf = btf__new_empty();
	PercpuOffsets offsets;

	(void)state;
	assert_false(percpu_offsets(btf, &offsets));
	btf__free(btf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offsets),
		cmocka_unit_test(test_no_variables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
