/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ids that are used again, in both PID namespaces, and ends that are reported late. */
#include "test_tools.h"

#include "make_record.h"
#include "process_table.h"

static void describe(ProcessTable *table, uint32_t tid, uint32_t tgid, uint32_t ns_tgid,
		     uint64_t start)
{
	struct record *record = make_task(tid, tgid, ns_tgid);

	((struct rec_task *)record)->start_boottime = start;
	process_table_describe(table, (struct rec_task *)record);
	free(record);
}

static void test_two_numbers_of_a_process(void **state)
{
	ProcessTable table = {};

	(void)state;
	assert_null(process_table_find(&table, 10));
	assert_true(process_table_want(&table, 10, 5)); /* a fork, before BPF's report of it */
	assert_null(process_table_find_tgid(&table, 1010));
	describe(&table, 1011, 1010, 10, 77); /* a thread that is not the main one */
	assert_int_equal(process_table_find_tgid(&table, 1010)->ns_tgid, 10);
	assert_int_equal(process_table_find_tgid(&table, 1010)->start_boottime, 0);
	describe(&table, 1010, 1010, 10, 70);
	assert_int_equal(process_table_find_tgid(&table, 1010)->start_boottime, 70);
	assert_int_equal(table.list.count, 1);
	process_table_free(&table);
}

static void test_number_used_again(void **state)
{
	ProcessTable table = {};

	(void)state;
	describe(&table, 1010, 1010, 10, 70);
	assert_true(process_table_want(&table, 10, 5));
	describe(&table, 1020, 1020, 10, 80);
	assert_null(process_table_find_tgid(&table, 1010));
	assert_int_equal(process_table_find_tgid(&table, 1020)->start_boottime, 80);
	describe(&table, 1031, 1030, 10, 90); /* of this one's main thread nothing is known */
	assert_int_equal(process_table_find_tgid(&table, 1030)->start_boottime, 0);
	process_table_free(&table);
}

static void test_ends(void **state)
{
	ProcessTable table = {};

	(void)state;
	process_table_end(&table, 10, 5); /* of a process that is not in the table */
	assert_true(process_table_want(&table, 10, 5));
	assert_false(process_table_want(&table, 10, 7));
	process_table_end(&table, 10, 6); /* of the one before, reported late */
	assert_int_equal(process_table_find(&table, 10)->state, PROCESS_WANTED);
	process_table_end(&table, 10, 8);
	assert_int_equal(process_table_find(&table, 10)->state, PROCESS_ENDED);
	assert_false(process_table_want(&table, 10, 8)); /* it was alive before that */
	assert_int_equal(process_table_find(&table, 10)->state, PROCESS_ENDED);
	assert_true(process_table_want(&table, 10, 9));
	assert_int_equal(process_table_find(&table, 10)->state, PROCESS_WANTED);
	process_table_free(&table);
}

/* Entries stay what they are while others are added. */
static void test_many(void **state)
{
	ProcessTable table = {};
	uint32_t count = 1000 + random_below(1000);

	(void)state;
	for (uint32_t i = 1; i <= count; i++)
		describe(&table, i + 5000, i + 5000, i, i * 3);
	for (uint32_t i = 1; i <= count; i++) {
		const Process *process = process_table_find_tgid(&table, i + 5000);

		assert_int_equal(process->ns_tgid, i);
		assert_int_equal(process->start_boottime, i * 3);
		assert_ptr_equal(process, process_table_find(&table, i));
	}
	assert_null(process_table_find(&table, count + 1));
	process_table_free(&table);
}

/* A day of short processes takes no more room than those that live, and those that ended lately. */
static void test_forget(void **state)
{
	ProcessTable table = {};

	(void)state;
	describe(&table, 1007, 1007, 7, 70); /* this one lives on */
	assert_true(process_table_want(&table, 7, 1));
	for (uint32_t i = 0; i < 200000; i++) {
		uint32_t id = 10 + i;

		describe(&table, 100000 + id, 100000 + id, id, 70);
		assert_true(process_table_want(&table, id, 1000 + i));
		process_table_end(&table, id, 1000 + i);
		if (i % 100 == 0)
			process_table_forget(&table, 1000 + i - MIN(i, 500U));
		assert_uint_in_range(table.list.count, 1, 2 * 8192);
	}
	assert_int_equal(process_table_find(&table, 7)->state, PROCESS_WANTED);
	assert_int_equal(process_table_find_tgid(&table, 1007)->ns_tgid, 7);
	assert_null(process_table_find(&table, 10));
	assert_non_null(process_table_find(&table, 10 + 199999));
	assert_int_equal(process_table_find_tgid(&table, 100000 + 10 + 199999)->ns_tgid,
			 10 + 199999);
	process_table_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_numbers_of_a_process),
		cmocka_unit_test(test_number_used_again),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
