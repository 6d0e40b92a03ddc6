/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows of any numbers, the largest ones included, come back as they were added, thread by thread.
 */
#include "kept_rows.h"
#include "test_tools.h"

#define THREADS	 5
#define ROWS_MAX 300

typedef VEC(Row) Rows;

static void collect(void *user, const Row *row)
{
	Rows *rows = user;

	*vec_push(rows) = *row;
}

/* Numbers of all lengths are equally likely. */
static uint64_t any_number(void)
{
	uint64_t high = random_below(1ULL << 32), low = random_below(1ULL << 32);

	return (high << 32 | low) >> random_below(64);
}

static bool is_same(const Row *a, const Row *b)
{
	return a->ns == b->ns && a->weight_ns == b->weight_ns && a->running_ns == b->running_ns &&
	       a->stack == b->stack;
}

static void test_any_rows(void **state)
{
	Rows added[THREADS] = {};
	KeptRows kept = {};

	(void)state;
	for (size_t t = 0; t < THREADS; t++) {
		/* The second thread has no rows. */
		size_t count = t == 1 ? 0 : 1 + random_below(ROWS_MAX);

		for (size_t i = 0; i < count; i++) {
			Row row = {any_number(), any_number(), any_number(), any_number()};

			*vec_push(&added[t]) = row;
			kept_rows_add(&kept, &row);
		}
		kept_rows_end_thread(&kept);
	}
	for (size_t t = THREADS; t-- > 0;) {
		Rows found = {};

		kept_rows_visit(&kept, t, collect, &found);
		assert_int_equal(found.count, added[t].count);
		for (size_t i = 0; i < found.count; i++)
			assert_true(is_same(&found.items[i], &added[t].items[i]));
		/* The comparison sees a change of any number. */
		if (found.count > 0) {
			found.items[found.count - 1].running_ns++;
			assert_false(is_same(&found.items[found.count - 1],
					     &added[t].items[found.count - 1]));
		}
		vec_free(&found);
		vec_free(&added[t]);
	}
	kept_rows_free(&kept);
}

static void test_ends_of_range(void **state)
{
	static const Row rows[] = {
		{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT32_MAX},
		{0, 0, 0, 0},
		{1ULL << 63, 0x7f, 0x80, 0x3fff},
		{(1ULL << 63) - 1, 0x80, 0x7f, 0x4000},
	};
	KeptRows kept = {};
	Rows found = {};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		kept_rows_add(&kept, &rows[i]);
	kept_rows_end_thread(&kept);
	kept_rows_visit(&kept, 0, collect, &found);
	assert_int_equal(found.count, ARRAY_LEN(rows));
	for (size_t i = 0; i < found.count; i++)
		assert_true(is_same(&found.items[i], &rows[i]));
	vec_free(&found);
	kept_rows_free(&kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_rows),
		cmocka_unit_test(test_ends_of_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
