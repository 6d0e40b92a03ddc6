/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the critical path waited for: 20 is the first thread, whose end is the path's. */
#include "critical_path.h"
#include "path_scenario.h"
#include "path_waits.h"
#include "test_tools.h"
#include <asm/unistd_64.h>

#define S 0x1 /* TASK_INTERRUPTIBLE */
#define D 0x2 /* TASK_UNINTERRUPTIBLE */

/* Returns the sum of what the path has of the waits of a thread. */
static PathWait sum_of(const Scenario *s, uint32_t tid)
{
	PathWaits waits = path_waits_find(s->timeline);
	PathWait sum = {};

	for (size_t i = 0; i < waits.count; i++) {
		if (s->timeline->threads.items[waits.items[i].thread].tid != tid)
			continue;
		sum.ns += waits.items[i].ns;
		sum.other_ns += waits.items[i].other_ns;
	}
	vec_free(&waits);
	return sum;
}

/* Returns how many ms of the path are charged to the waits of a thread. */
static uint64_t charged_ms(const Scenario *s, uint32_t tid)
{
	return sum_of(s, tid).ns / NSEC_PER_MSEC;
}

/* Returns how many ms of the path lie in the waits of a thread, but are charged to others. */
static uint64_t other_ms(const Scenario *s, uint32_t tid)
{
	return sum_of(s, tid).other_ns / NSEC_PER_MSEC;
}

static void find_path(Scenario *s)
{
	scenario_finish(s);
	critical_path_find(s->timeline, critical_path_thread(s->timeline, FIRST + 1000));
}

/* 20 waits from 1 to 10 for 21, which waits from 2 to 7 for 22. */
static void test_innermost(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 14);
	create(&s, 0, 21, 20, 0);
	create(&s, 0, 22, 20, 0);
	out_call(at(&s, 1), 20, S, __NR_futex);
	out_call(at(&s, 2), 21, S, __NR_futex);
	wake(at(&s, 7), 21, 22);
	in(at(&s, 7), 21, 1);
	wake(at(&s, 10), 20, 21);
	in(at(&s, 10), 20, 0);
	find_path(&s);
	assert_int_equal(charged_ms(&s, 21), 5);
	assert_int_equal(charged_ms(&s, 20), 4);
	assert_int_equal(charged_ms(&s, 22), 0);
	scenario_free(&s);
}

/* What 21 did before 20 began to wait for it is on the path, but no thread waited for it. */
static void test_before_the_wait(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 16);
	create(&s, 0, 21, 20, 0);
	out_call(at(&s, 9), 20, S, __NR_futex);
	wake(at(&s, 12), 20, 21);
	in(at(&s, 12), 20, 0);
	find_path(&s);
	assert_int_equal(charged_ms(&s, 20), 3);
	scenario_free(&s);
}

/* A sleep of the thread that holds up another is charged to the other's wait. */
static void test_sleep_below_a_wait(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 16);
	create(&s, 0, 21, 20, 0);
	out_call(at(&s, 4), 20, S, __NR_futex);
	out_call(at(&s, 6), 21, S, __NR_nanosleep);
	wake_by_irq(at(&s, 9), 21);
	in(at(&s, 9), 21, 1);
	wake(at(&s, 12), 20, 21);
	in(at(&s, 12), 20, 0);
	find_path(&s);
	assert_int_equal(charged_ms(&s, 20), 8);
	assert_int_equal(charged_ms(&s, 21), 0);
	assert_int_equal(other_ms(&s, 21), 3);
	assert_int_equal(other_ms(&s, 20), 0);
	scenario_free(&s);
}

/* A wait for a disk is charged to itself, although it is not known for which file it is. */
static void test_disk_below_a_wait(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 16);
	create(&s, 0, 21, 20, 0);
	out_call(at(&s, 4), 20, S, __NR_futex);
	out_call(at(&s, 6), 21, D, __NR_fsync);
	wake_by_irq(at(&s, 9), 21);
	in(at(&s, 9), 21, 1);
	wake(at(&s, 12), 20, 21);
	in(at(&s, 12), 20, 0);
	find_path(&s);
	assert_int_equal(charged_ms(&s, 20), 5);
	assert_int_equal(charged_ms(&s, 21), 3);
	scenario_free(&s);
}

/* A sleep that no other thread waits for is charged to itself; running is charged to none. */
static void test_own_sleep(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 12);
	out_call(at(&s, 3), 20, S, __NR_nanosleep);
	wake_by_irq(at(&s, 8), 20);
	in(at(&s, 8), 20, 0);
	find_path(&s);
	assert_int_equal(charged_ms(&s, 20), 5);
	assert_int_equal(other_ms(&s, 20), 0);
	scenario_free(&s);
}

/* Without a path there is nothing. */
static void test_no_path(void **state)
{
	Scenario s;

	(void)state;
	begin(&s, 4);
	scenario_finish(&s);
	assert_int_equal(charged_ms(&s, 20), 0);
	scenario_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_innermost),	   cmocka_unit_test(test_before_the_wait),
		cmocka_unit_test(test_sleep_below_a_wait), cmocka_unit_test(test_disk_below_a_wait),
		cmocka_unit_test(test_own_sleep),	   cmocka_unit_test(test_no_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
