/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How CPUs are divided into groups, and how large their rings are. */
#include "ring_buffers.h"
#include "test_tools.h"

#define MIB (1ULL << 20)

static void check(uint64_t size, uint32_t group_cpus, uint32_t cpus, RingLayout expected)
{
	RingLayout layout = ring_layout(size, group_cpus, cpus, UINT64_MAX);

	assert_int_equal(layout.size, expected.size);
	assert_int_equal(layout.group_cpus, expected.group_cpus);
	assert_int_equal(layout.groups, expected.groups);
}

static void test_default(void **state)
{
	(void)state;
	check(0, 0, 1, (RingLayout){16 * MIB, 1, 1});
	check(0, 0, 2, (RingLayout){8 * MIB, 1, 2});
	check(0, 0, 3, (RingLayout){4 * MIB, 1, 3});
	check(0, 0, 16, (RingLayout){4 * MIB, 1, 16});
	check(0, 0, 17, (RingLayout){4 * MIB, 2, 9});
	check(0, 0, 64, (RingLayout){4 * MIB, 4, 16});
	check(0, 0, 500, (RingLayout){4 * MIB, 32, 16});
}

static void test_options(void **state)
{
	(void)state;
	check(64 * MIB, 0, 64, (RingLayout){64 * MIB, 4, 16});
	check(0, 8, 8, (RingLayout){16 * MIB, 8, 1});
	check(0, 100, 8, (RingLayout){16 * MIB, 100, 1});
	check(4096, 8, 20, (RingLayout){4096, 8, 3});
	check(4096, 1, 1000, (RingLayout){4096, 1, RING_GROUPS_MAX});
}

/* Each CPU has a group, each group has CPUs, and neighbours share one. */
static void test_groups(void **state)
{
	RingLayout layout = ring_layout(0, 0, 40, UINT64_MAX);
	uint32_t cpus[RING_GROUPS_MAX] = {};

	(void)state;
	for (uint32_t cpu = 0; cpu < 40; cpu++) {
		uint32_t group = ring_layout_group(&layout, cpu);

		assert_true(group < layout.groups);
		assert_true(cpu == 0 || group - ring_layout_group(&layout, cpu - 1) <= 1);
		cpus[group]++;
	}
	for (uint32_t group = 0; group < layout.groups; group++)
		assert_uint_in_range(cpus[group], 1, layout.group_cpus);
	assert_true(ring_layout_group(&layout, 4000) < layout.groups);
}

/* The size is that of each ring, so with many CPUs their sum could exceed all memory. */
static void test_memory(void **state)
{
	static const uint64_t sizes[] = {0, 4096, 1 << 20, 64 * MIB, 1024 * MIB};
	static const uint32_t cpus[] = {1, 2, 3, 16, 64, 500};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		for (size_t j = 0; j < ARRAY_LEN(cpus); j++) {
			for (uint64_t most = 4 * MIB; most <= 65536 * MIB; most *= 2) {
				RingLayout all = ring_layout(sizes[i], 0, cpus[j], UINT64_MAX);
				RingLayout layout = ring_layout(sizes[i], 0, cpus[j], most);
				uint64_t bytes = layout.groups * 3 * layout.size;

				assert_int_equal(ring_layout_bytes(&layout), bytes);
				assert_true(bytes <= most);
				assert_int_equal(layout.groups, all.groups);
				/* It is no smaller than it must be, and a power of two. */
				assert_true(layout.size == all.size || 2 * bytes > most);
				assert_int_equal(layout.size & (layout.size - 1), 0);
			}
		}
	}
	/* 16 groups of 4 CPUs: 48 GiB were asked for. */
	assert_int_equal(ring_layout(1024 * MIB, 0, 64, 8192 * MIB).size, 128 * MIB);
	assert_int_equal(ring_layout(0, 0, 64, 1).size, 4096);
	assert_true(ring_memory_max() >= 16 * MIB);
}

static void test_size_text(void **state)
{
	static const struct {
		uint64_t size;
		const char *text;
	} cases[] = {{4096, "4K"}, {512 << 10, "512K"}, {MIB, "1M"}, {1024 * MIB, "1024M"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *text = ring_size_text(cases[i].size);

		assert_string_equal(text, cases[i].text);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),	  cmocka_unit_test(test_options),
		cmocka_unit_test(test_groups),	  cmocka_unit_test(test_memory),
		cmocka_unit_test(test_size_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
