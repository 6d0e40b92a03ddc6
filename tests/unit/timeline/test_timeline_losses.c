/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which losses are reported, when there are very many; what is unknown because of them. */
#include "scenario.h"
#include "timeline_builder_private.h"
#include <setjmp.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define REPORTED_MAX 500

static void add(Timeline *timeline, uint32_t kind, uint16_t cpu, uint64_t count, uint64_t ms)
{
	*vec_push(&timeline->losses) = (LossSpan){
		.kind = kind,
		.cause = LOSS_RING_FULL,
		.cpu = cpu,
		.count = count,
		.from_ns = ms * NSEC_PER_MSEC,
		.to_ns = (ms + 1) * NSEC_PER_MSEC,
	};
}

static uint64_t sum(const Timeline *timeline, uint32_t kind, uint16_t cpu)
{
	uint64_t count = 0;

	for (size_t i = 0; i < timeline->losses.count; i++)
		if (timeline->losses.items[i].kind == kind && timeline->losses.items[i].cpu == cpu)
			count += timeline->losses.items[i].count;
	return count;
}

/* A minute of overload on 64 CPUs, and a pause in it. */
static void test_overload(void **state)
{
	(void)state;
	Timeline *timeline = xcalloc(1, sizeof(*timeline));
	size_t most = 0, before = 0;

	for (uint64_t ms = 0; ms < 60000; ms += 25)
		for (uint16_t cpu = 0; cpu < 64; cpu++)
			if (ms < 20000 || ms >= 40000)
				add(timeline, cpu % 2 ? REC_SWITCH : REC_SAMPLE, cpu, cpu, ms);
	losses_finish(timeline);
	assert_int_equal(timeline->losses.count, 2 * 64);
	for (size_t i = 0; i < timeline->losses.count; i++) {
		const LossSpan *loss = &timeline->losses.items[i];

		assert_true(loss->from_ns >= before);
		assert_int_equal(loss->to_ns - loss->from_ns, 19976 * NSEC_PER_MSEC);
		before = loss->from_ns;
		most = MAX(most, loss->cpu);
	}
	assert_int_equal(most, 63);
	assert_int_equal(sum(timeline, REC_SWITCH, 63), 63 * 1600);
	assert_int_equal(sum(timeline, REC_SAMPLE, 62), 62 * 1600);
	assert_int_equal(sum(timeline, REC_SWITCH, 62), 0);
	timeline_free(timeline);
}

/* They are far from each other: what lies between them is reported with them all the same. */
static void test_far_apart(void **state)
{
	(void)state;
	Timeline *timeline = xcalloc(1, sizeof(*timeline));

	for (uint64_t i = 0; i < 10000; i++)
		add(timeline, REC_SWITCH, 0, 1, i * 1000);
	losses_finish(timeline);
	assert_uint_in_range(timeline->losses.count, 1, REPORTED_MAX);
	assert_int_equal(sum(timeline, REC_SWITCH, 0), 10000);
	timeline_free(timeline);
}

/* There are few: each one is kept as it was recorded. */
static void test_few(void **state)
{
	(void)state;
	Timeline *timeline = xcalloc(1, sizeof(*timeline));

	for (uint64_t i = 0; i < REPORTED_MAX; i++)
		add(timeline, REC_SWITCH, 0, 1, i);
	losses_finish(timeline);
	assert_int_equal(timeline->losses.count, REPORTED_MAX);
	timeline_free(timeline);
}

static enum reason reason_of_unknown(const Thread *thread)
{
	for (size_t i = 0; i < thread->intervals.count; i++)
		if (thread->intervals.items[i].state == STATE_UNKNOWN)
			return thread->intervals.items[i].reason;
	return REASON_NONE;
}

static const Interval *first_wait(const Thread *thread)
{
	for (size_t i = 0; i < thread->intervals.count; i++)
		if (thread->intervals.items[i].state == STATE_BLOCKED)
			return &thread->intervals.items[i];
	fail();
	return NULL;
}

/* A recorded wakeup has a waker, whether or not the switch after it was recorded. */
static void test_waker_before_missed_switch(void **state)
{
	(void)state;
	for (int missed = 0; missed < 2; missed++) {
		const Interval *wait;
		Scenario s;

		scenario_begin(&s, 12, true);
		described(at(&s, 0), 10, 10, "app");
		snapshot(at(&s, 0), 10, SNAPSHOT_ON_CPU, 0, -1);
		out(at(&s, 2), 10, 1);
		wake(at(&s, 4), 10, 12);
		in(missed ? lost_at(&s, 5) : at(&s, 5), 10, 0);
		out(at(&s, 8), 10, 1);
		scenario_finish(&s);
		wait = first_wait(scenario_thread(&s, 10, 0));
		assert_int_not_equal(wait->waker, THREAD_NONE);
		assert_int_equal(s.timeline->tasks.items[wait->waker].tid, 12);
		scenario_free(&s);
	}
}

/* What is unknown says whether anything was lost, or the kernel did not trace a switch. */
static void test_why_unknown(void **state)
{
	(void)state;
	Scenario s;

	for (int reported = 0; reported < 2; reported++) {
		scenario_begin(&s, 12, true);
		described(at(&s, 0), 10, 10, "app");
		snapshot(at(&s, 0), 10, SNAPSHOT_ON_CPU, 0, -1);
		out(at(&s, 2), 10, 1);
		wake(at(&s, 4), 10, 12);
		in(lost_at(&s, 5), 10, 0);
		out(at(&s, 8), 10, 1);
		if (reported)
			loss(at(&s, 9), REC_SWITCH, 5, 6);
		scenario_finish(&s);
		assert_int_equal(reason_of_unknown(scenario_thread(&s, 10, 0)),
				 reported ? REASON_LOST : REASON_NOT_TRACED);
		scenario_free(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_why_unknown),
		cmocka_unit_test(test_waker_before_missed_switch),
		cmocka_unit_test(test_overload),
		cmocka_unit_test(test_far_apart),
		cmocka_unit_test(test_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
