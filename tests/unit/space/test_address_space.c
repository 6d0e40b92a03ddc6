/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "address_space.h"
#include "make_record.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PROCESS 100
#define CHILD	200

static void give(AddressSpaces *spaces, struct record *record)
{
	address_spaces_add(spaces, record);
	free(record);
}

static AddressSpaces *with_files(uint32_t count)
{
	AddressSpaces *spaces = address_spaces_new();

	for (uint32_t id = 1; id <= count; id++)
		give(spaces, make_file(id, 0, "/lib/libfoo.so", 0));
	return spaces;
}

/* The id of the file at an address, 0 if nothing is there. */
static uint32_t file_at(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t ns, uint64_t avma)
{
	Location location = address_spaces_locate(spaces, ns_tgid, ns, avma);

	return location.file ? location.file->id : 0;
}

static void test_files(void **state)
{
	AddressSpaces *spaces = address_spaces_new();
	struct record *record = make_file(2, FILE_DELETED, "/lib/libbar.so", 0x400000);

	(void)state;
	((struct rec_file *)record)->build_id_len = 3;
	memcpy(((struct rec_file *)record)->build_id, "abc", 3);
	give(spaces, record);
	give(spaces, make_file(0, 0, "/no/such/id", 0));
	give(spaces, make_file(UINT32_MAX, 0, "/absurd/id", 0));
	assert_int_equal(address_spaces_file_count(spaces), 2);
	assert_null(address_spaces_file(spaces, 0));
	assert_null(address_spaces_file(spaces, 1));
	assert_null(address_spaces_file(spaces, 3));
	assert_string_equal(address_spaces_file(spaces, 2)->path, "/lib/libbar.so");
	assert_int_equal(address_spaces_file(spaces, 2)->flags, FILE_DELETED);
	assert_int_equal(address_spaces_file(spaces, 2)->base_svma, 0x400000);
	assert_int_equal(address_spaces_file(spaces, 2)->build_id_len, 3);
	assert_memory_equal(address_spaces_file(spaces, 2)->build_id, "abc", 3);
	address_spaces_free(spaces);
}

static void test_bounds_and_bias(void **state)
{
	AddressSpaces *spaces = with_files(1);

	(void)state;
	give(spaces, make_mapping(10, 0, PROCESS, 1, 0x5000, 0x7000, 0x4000));
	assert_int_equal(file_at(spaces, PROCESS, 10, 0x4fff), 0);
	assert_int_equal(file_at(spaces, PROCESS, 10, 0x5000), 1);
	assert_int_equal(file_at(spaces, PROCESS, 10, 0x6fff), 1);
	assert_int_equal(file_at(spaces, PROCESS, 10, 0x7000), 0);
	assert_int_equal(file_at(spaces, PROCESS, 9, 0x5000), 0);
	assert_int_equal(file_at(spaces, CHILD, 10, 0x5000), 0);
	assert_int_equal(address_spaces_locate(spaces, PROCESS, 10, 0x5123).svma, 0x1123);
	address_spaces_free(spaces);
}

/* Data lies behind what is mapped to be executed: of the last file below, as it was then. */
static void test_data(void **state)
{
	AddressSpaces *spaces = with_files(3);
	Location location;

	(void)state;
	give(spaces, make_mapping(10, 0, PROCESS, 1, 0x5000, 0x7000, 0x4000));
	give(spaces, make_mapping(10, 0, PROCESS, 2, 0x9000, 0xa000, 0x9000));
	give(spaces, make_mapping(20, 0, PROCESS, 3, 0xb000, 0xc000, 0xb000));
	assert_null(address_spaces_locate_data(spaces, PROCESS, 10, 0x4fff).file);
	location = address_spaces_locate_data(spaces, PROCESS, 10, 0x8123);
	assert_int_equal(location.file->id, 1);
	assert_int_equal(location.svma, 0x4123);
	assert_int_equal(address_spaces_locate_data(spaces, PROCESS, 10, 0x5123).file->id, 1);
	assert_int_equal(address_spaces_locate_data(spaces, PROCESS, 19, 0xd000).file->id, 2);
	assert_int_equal(address_spaces_locate_data(spaces, PROCESS, 20, 0xd000).file->id, 3);
	assert_null(address_spaces_locate_data(spaces, PROCESS, 9, 0xd000).file);
	assert_null(address_spaces_locate_data(spaces, CHILD, 20, 0xd000).file);
	address_spaces_free(spaces);
}

/* What was mapped before the fork, and what each mapped since. */
static void test_data_of_child(void **state)
{
	AddressSpaces *spaces = with_files(3);

	(void)state;
	give(spaces, make_mapping(10, 0, PROCESS, 1, 0x5000, 0x7000, 0));
	give(spaces, make_space(20, SPACE_FORK, CHILD, PROCESS));
	give(spaces, make_mapping(30, 0, CHILD, 2, 0x9000, 0xa000, 0));
	give(spaces, make_mapping(30, 0, PROCESS, 3, 0xb000, 0xc000, 0));
	assert_int_equal(address_spaces_locate_data(spaces, CHILD, 29, 0xd000).file->id, 1);
	assert_int_equal(address_spaces_locate_data(spaces, CHILD, 30, 0xd000).file->id, 2);
	assert_int_equal(address_spaces_locate_data(spaces, CHILD, 30, 0x8000).file->id, 1);
	assert_int_equal(address_spaces_locate_data(spaces, PROCESS, 30, 0xd000).file->id, 3);
	address_spaces_free(spaces);
}

static void test_empty_ranges_are_ignored(void **state)
{
	AddressSpaces *spaces = with_files(1);

	(void)state;
	give(spaces, make_mapping(1, 0, PROCESS, 1, 0x5000, 0x5000, 0));
	give(spaces, make_mapping(2, 0, PROCESS, 1, 0x6000, 0x5000, 0));
	assert_int_equal(file_at(spaces, PROCESS, 3, 0x5000), 0);
	give(spaces, make_mapping(4, 0, CHILD, 1, 0, UINT64_MAX, 0));
	assert_int_equal(file_at(spaces, CHILD, 4, UINT64_MAX - 1), 1);
	assert_int_equal(file_at(spaces, CHILD, 4, UINT64_MAX), 0);
	address_spaces_free(spaces);
}

/* dlclose, then dlopen of another library that reaches into the same range. */
static void test_replaced_in_part(void **state)
{
	AddressSpaces *spaces = with_files(2);

	(void)state;
	give(spaces, make_mapping(10, 0, PROCESS, 1, 0x1000, 0x5000, 0));
	give(spaces, make_mapping(20, 0, PROCESS, 2, 0x3000, 0x8000, 0));
	assert_int_equal(file_at(spaces, PROCESS, 19, 0x3000), 1);
	assert_int_equal(file_at(spaces, PROCESS, 20, 0x3000), 2);
	assert_int_equal(file_at(spaces, PROCESS, 20, 0x2fff), 1);
	assert_int_equal(file_at(spaces, PROCESS, 19, 0x7000), 0);
	assert_int_equal(file_at(spaces, PROCESS, 20, 0x7000), 2);
	address_spaces_free(spaces);
}

static void test_initial_holds_since_ever(void **state)
{
	AddressSpaces *spaces = with_files(2);

	(void)state;
	/* The side-band saw a replacement before the scan of /proc was written down. */
	give(spaces, make_mapping(50, 0, PROCESS, 2, 0x2000, 0x3000, 0));
	give(spaces, make_mapping(60, MAPPING_INITIAL, PROCESS, 1, 0x1000, 0x4000, 0));
	assert_int_equal(file_at(spaces, PROCESS, 1, 0x2000), 1);
	assert_int_equal(file_at(spaces, PROCESS, 50, 0x2000), 2);
	assert_int_equal(file_at(spaces, PROCESS, 70, 0x2000), 2);
	assert_int_equal(file_at(spaces, PROCESS, 70, 0x1000), 1);
	address_spaces_free(spaces);
}

static void test_fork_copies_that_moment(void **state)
{
	AddressSpaces *spaces = with_files(4);

	(void)state;
	give(spaces, make_mapping(10, 0, PROCESS, 1, 0x1000, 0x2000, 0));
	give(spaces, make_space(20, SPACE_FORK, CHILD, PROCESS));
	give(spaces, make_mapping(30, 0, PROCESS, 2, 0x1000, 0x2000, 0));
	give(spaces, make_mapping(40, 0, CHILD, 3, 0x8000, 0x9000, 0));
	/* A grandchild of a parent with mappings of its own, then one without. */
	give(spaces, make_space(50, SPACE_FORK, 300, CHILD));
	give(spaces, make_space(60, SPACE_FORK, 400, 300));
	give(spaces, make_mapping(70, 0, 300, 4, 0x1000, 0x2000, 0));
	assert_int_equal(file_at(spaces, CHILD, 25, 0x1000), 1);
	assert_int_equal(file_at(spaces, CHILD, 100, 0x1000), 1);
	assert_int_equal(file_at(spaces, PROCESS, 100, 0x1000), 2);
	assert_int_equal(file_at(spaces, PROCESS, 100, 0x8000), 0);
	assert_int_equal(file_at(spaces, 400, 100, 0x1000), 1);
	assert_int_equal(file_at(spaces, 400, 100, 0x8000), 3);
	assert_int_equal(file_at(spaces, 300, 69, 0x1000), 1);
	assert_int_equal(file_at(spaces, 300, 70, 0x1000), 4);
	address_spaces_free(spaces);
}

static void test_exec_begins_anew(void **state)
{
	AddressSpaces *spaces = with_files(2);

	(void)state;
	give(spaces, make_mapping(10, 0, PROCESS, 1, 0x1000, 0x2000, 0));
	give(spaces, make_space(20, SPACE_EXEC, PROCESS, 0));
	give(spaces, make_mapping(30, 0, PROCESS, 2, 0x5000, 0x6000, 0));
	assert_int_equal(file_at(spaces, PROCESS, 19, 0x1000), 1);
	assert_int_equal(file_at(spaces, PROCESS, 20, 0x1000), 0);
	assert_int_equal(file_at(spaces, PROCESS, 30, 0x5000), 2);
	assert_int_equal(file_at(spaces, PROCESS, 29, 0x5000), 0);
	address_spaces_free(spaces);
}

/* The number of a dead process goes to the child of another, or to its own. */
static void test_reused_number(void **state)
{
	AddressSpaces *spaces = with_files(2);

	(void)state;
	give(spaces, make_mapping(10, 0, PROCESS, 1, 0x1000, 0x2000, 0));
	give(spaces, make_mapping(10, 0, CHILD, 2, 0x1000, 0x2000, 0));
	give(spaces, make_space(30, SPACE_FORK, CHILD, PROCESS));
	give(spaces, make_space(40, SPACE_FORK, PROCESS, PROCESS));
	assert_int_equal(file_at(spaces, CHILD, 29, 0x1000), 2);
	assert_int_equal(file_at(spaces, CHILD, 30, 0x1000), 1);
	assert_int_equal(file_at(spaces, PROCESS, 50, 0x1000), 1);
	address_spaces_free(spaces);
}

static void test_generation(void **state)
{
	AddressSpaces *spaces = with_files(1);
	uint32_t first, second, third, fourth;

	(void)state;
	give(spaces, make_mapping(10, 0, PROCESS, 1, 0x1000, 0x2000, 0));
	give(spaces, make_mapping(20, 0, PROCESS, 1, 0x3000, 0x4000, 0));
	give(spaces, make_space(30, SPACE_EXEC, PROCESS, 0));
	give(spaces, make_mapping(40, 0, PROCESS, 1, 0x3000, 0x4000, 0));
	first = address_spaces_generation(spaces, PROCESS, 15);
	second = address_spaces_generation(spaces, PROCESS, 25);
	third = address_spaces_generation(spaces, PROCESS, 35);
	fourth = address_spaces_generation(spaces, PROCESS, 45);
	assert_int_equal(first, address_spaces_generation(spaces, PROCESS, 19));
	assert_int_not_equal(first, second);
	assert_int_not_equal(second, third);
	assert_int_not_equal(third, fourth);
	assert_int_not_equal(first, third);
	assert_int_not_equal(first, fourth);
	assert_int_not_equal(second, fourth);
	address_spaces_free(spaces);
}

static void collect_file(void *user, const MappedFile *file, uint64_t svma)
{
	(void)svma;
	*(unsigned *)user |= 1U << file->id;
}

static unsigned ever_at(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t avma)
{
	unsigned ids = 0;

	address_spaces_locate_any(spaces, ns_tgid, avma, collect_file, &ids);
	return ids;
}

static void test_locate_any(void **state)
{
	AddressSpaces *spaces = with_files(4);

	(void)state;
	give(spaces, make_mapping(10, 0, PROCESS, 1, 0x1000, 0x3000, 0));
	give(spaces, make_mapping(20, 0, PROCESS, 2, 0x2000, 0x4000, 0));
	give(spaces, make_space(25, SPACE_FORK, CHILD, PROCESS));
	give(spaces, make_mapping(27, 0, PROCESS, 3, 0x2000, 0x4000, 0));
	give(spaces, make_space(30, SPACE_EXEC, PROCESS, 0));
	give(spaces, make_mapping(40, 0, PROCESS, 4, 0x2000, 0x4000, 0));
	assert_int_equal(ever_at(spaces, PROCESS, 0x1000), 1 << 1);
	assert_int_equal(ever_at(spaces, PROCESS, 0x2000), 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4);
	assert_int_equal(ever_at(spaces, PROCESS, 0x3000), 1 << 2 | 1 << 3 | 1 << 4);
	assert_int_equal(ever_at(spaces, CHILD, 0x2000), 1 << 1 | 1 << 2);
	assert_int_equal(ever_at(spaces, PROCESS, 0x4000), 0);
	address_spaces_free(spaces);
}

/* Against the plain rule: the last mapping that covers the address and is old enough. */
static void test_random_against_scan(void **state)
{
	enum { COUNT = 500, SPAN = 64 };
	struct {
		uint64_t ns, start, end;
	} model[COUNT];

	(void)state;
	for (unsigned seed = 1; seed <= 20; seed++) {
		AddressSpaces *spaces = with_files(COUNT);
		unsigned random = seed;
		uint64_t ns = 1;

		for (uint32_t i = 0; i < COUNT; i++) {
			uint64_t start = rand_r(&random) % SPAN;

			ns += rand_r(&random) % 3;
			model[i].ns = ns;
			model[i].start = start;
			model[i].end = start + 1 + rand_r(&random) % (SPAN / (1 + seed % 8));
			give(spaces, make_mapping(ns, 0, PROCESS, i + 1, start, model[i].end, 0));
		}
		for (int query = 0; query < 5000; query++) {
			uint64_t when = rand_r(&random) % (ns + 2);
			uint64_t avma = rand_r(&random) % (2 * SPAN + 2);
			uint32_t expected = 0;

			for (uint32_t i = 0; i < COUNT; i++)
				if (model[i].ns <= when && model[i].start <= avma &&
				    avma < model[i].end)
					expected = i + 1;
			assert_int_equal(file_at(spaces, PROCESS, when, avma), expected);
		}
		address_spaces_free(spaces);
	}
}

/* Mappings that all overlap: anything quadratic would take minutes here. */
static void test_many_overlapping(void **state)
{
	enum { COUNT = 200000 };
	AddressSpaces *spaces = with_files(2);

	(void)state;
	for (uint64_t i = 0; i < COUNT; i++)
		give(spaces, make_mapping(i + 1, 0, PROCESS, 1 + i % 2, 0x1000 + i,
					  0x1000 + 2 * COUNT - i, 0));
	for (uint64_t i = 0; i < COUNT; i++) {
		assert_int_equal(file_at(spaces, PROCESS, i + 1, 0x1000 + i), 1 + i % 2);
		assert_int_equal(file_at(spaces, PROCESS, i, 0x1000 + COUNT),
				 i ? 1 + (i - 1) % 2 : 0);
	}
	address_spaces_free(spaces);
}

/* Each process forks the next; a query that walked up would take hours. */
static void test_long_fork_chain(void **state)
{
	enum { COUNT = 500000 };
	AddressSpaces *spaces = with_files(1);

	(void)state;
	give(spaces, make_mapping(1, 0, 1, 1, 0x1000, 0x2000, 0));
	for (uint32_t i = 2; i <= COUNT; i++)
		give(spaces, make_space(i, SPACE_FORK, i, i - 1));
	for (uint32_t i = 1; i <= COUNT; i++)
		assert_int_equal(file_at(spaces, i, COUNT, 0x1fff), 1);
	address_spaces_free(spaces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_bounds_and_bias),
		cmocka_unit_test(test_data),
		cmocka_unit_test(test_data_of_child),
		cmocka_unit_test(test_empty_ranges_are_ignored),
		cmocka_unit_test(test_replaced_in_part),
		cmocka_unit_test(test_initial_holds_since_ever),
		cmocka_unit_test(test_fork_copies_that_moment),
		cmocka_unit_test(test_exec_begins_anew),
		cmocka_unit_test(test_reused_number),
		cmocka_unit_test(test_generation),
		cmocka_unit_test(test_locate_any),
		cmocka_unit_test(test_random_against_scan),
		cmocka_unit_test(test_many_overlapping),
		cmocka_unit_test(test_long_fork_chain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
