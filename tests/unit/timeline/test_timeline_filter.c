/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which threads a timeline has: selected ones, kernel threads, and the users of each CPU. */
#include "scenario.h"
#include "timeline_builder_private.h"
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define S 0x1 /* TASK_INTERRUPTIBLE */

/* Two processes, one of them with two threads, in a window of 20 ms. */
static void play(Scenario *s, const TimelineFilter *filter)
{
	scenario_begin_early(s, 20, true);
	timeline_builder_filter(s->builder, filter);
	scenario_window_start(s);
	described(at(s, 0), 10, 10, "first");
	snapshot(at(s, 0), 10, SNAPSHOT_ON_CPU, 0, -1);
	described(at(s, 0), 11, 10, "helper");
	snapshot(at(s, 0), 11, 0, S, -1);
	described(at(s, 0), 20, 20, "second");
	snapshot(at(s, 0), 20, 0, S, -1);
	out(at(s, 4), 10, S);
	wake(at(s, 6), 20, 10);
	in(at(s, 8), 20, 0);
	wake(at(s, 10), 10, 20);
	out(at(s, 12), 20, S);
	in(at(s, 14), 10, 0);
	scenario_finish(s);
}

static void test_all(void **state)
{
	(void)state;
	Scenario s;

	play(&s, &(TimelineFilter){});
	expect_track(&s, 10, "RRRRBBBBBBrrrrRRRRRR");
	expect_track(&s, 11, "BBBBBBBBBBBBBBBBBBBB");
	expect_track(&s, 20, "BBBBBBrrRRRRBBBBBBBB");
	assert_false(s.timeline->cut);
	scenario_free(&s);
}

/* Strips are of the window's own milliseconds. */
static void test_range(void **state)
{
	(void)state;
	TimelineFilter filter = {.from_ns = 5 * NSEC_PER_MSEC, .to_ns = 13 * NSEC_PER_MSEC};
	Scenario s;

	play(&s, &filter);
	assert_true(s.timeline->cut);
	assert_int_equal(s.timeline->start_ns, scenario_ns(5));
	assert_int_equal(s.timeline->end_ns, scenario_ns(13));
	for (size_t i = 0; i < s.timeline->threads.count; i++) {
		const Thread *thread = &s.timeline->threads.items[i];

		assert_int_equal(thread->start_ns, scenario_ns(5));
		assert_int_equal(thread->end_ns, scenario_ns(13));
		assert_false(thread->kernel.known);
		check_thread(s.timeline, thread);
	}
	assert_int_equal(scenario_thread(&s, 10, 0)->ledger[STATE_BLOCKED], 5 * NSEC_PER_MSEC);
	assert_int_equal(scenario_thread(&s, 10, 0)->ledger[STATE_RUNNABLE], 3 * NSEC_PER_MSEC);
	assert_int_equal(scenario_thread(&s, 20, 0)->ledger[STATE_RUNNING], 4 * NSEC_PER_MSEC);
	assert_int_equal(scenario_thread(&s, 10, 0)->switch_outs, 0);
	assert_int_equal(scenario_thread(&s, 20, 0)->switch_outs, 1);
	scenario_free(&s);
}

static void test_range_without_end(void **state)
{
	(void)state;
	Scenario s;

	play(&s, &(TimelineFilter){.to_ns = 1000 * NSEC_PER_MSEC});
	assert_int_equal(s.timeline->end_ns, scenario_ns(20));
	scenario_free(&s);
	play(&s, &(TimelineFilter){.from_ns = 1000 * NSEC_PER_MSEC});
	assert_int_equal(s.timeline->threads.count, 0);
	scenario_free(&s);
}

static void expect_threads(const char *processes, const char *threads, size_t count)
{
	Scenario s;

	play(&s, &(TimelineFilter){.processes = processes, .threads = threads});
	assert_int_equal(s.timeline->threads.count, count);
	scenario_free(&s);
}

static void test_who(void **state)
{
	(void)state;
	expect_threads("first", NULL, 2);
	expect_threads("f*,nobody", NULL, 2);
	expect_threads("1020", NULL, 1); /* its number in the recorder's namespace */
	expect_threads("20", NULL, 0);
	expect_threads("first,second", NULL, 3);
	expect_threads(NULL, "helper", 1);
	expect_threads(NULL, "1010,helper", 2);
	expect_threads("second", "helper", 0);
	expect_threads("", NULL, 0);
}

/* An excluded thread is a non-target with a name. */
static void test_stranger(void **state)
{
	(void)state;
	const Interval *woken;
	const Task *waker;
	Scenario s;

	play(&s, &(TimelineFilter){.processes = "second"});
	woken = &scenario_thread(&s, 20, 0)->intervals.items[0];
	assert_int_equal(woken->state, STATE_BLOCKED);
	waker = &s.timeline->tasks.items[woken->waker];
	assert_int_equal(waker->thread, THREAD_NONE);
	assert_string_equal(waker->comm, "first");
	assert_null(scenario_thread(&s, 10, 0));
	scenario_free(&s);
}

/* ---- late targets ---------------------------------------------------------------------------
 */

/*
 * A process that enters a recorded cgroup is recorded from there on: its threads are described only
 * a while later, and what a thread did before it joined is unknown.
 */
static void test_joined(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 10, true);
	described(at(&s, 0), 10, 10, "first");
	snapshot(at(&s, 0), 10, 0, S, -1);
	joined(at(&s, 4), 20, 20, "joins");
	out(at(&s, 5), 20, S);
	described(at(&s, 6), 20, 20, "joins");
	snapshot(at(&s, 6), 20, 0, S, -1);
	described(at(&s, 6), 21, 20, "sleeps");
	snapshot(at(&s, 6), 21, 0, S, -1);
	scenario_finish(&s);
	expect_track(&s, 10, "BBBBBBBBBB");
	expect_track(&s, 20, "....?BBBBB");
	expect_track(&s, 21, "....BBBBBB");
	scenario_free(&s);
}

/* ---- threads of the kernel ------------------------------------------------------------------- */

static void kthread(Scenario *s, uint32_t tid, const char *comm)
{
	struct rec_task record = {
		.h = {sizeof(record), REC_TASK, TASK_KTHREAD, 0, scenario_ns(s->ms)},
		.tid = tid,
		.tgid = tid,
		.ns_tid = tid,
		.ns_tgid = tid,
	};

	snprintf(record.comm, sizeof(record.comm), "%s", comm);
	timeline_builder_add(s->builder, &record.h);
}

static void test_kernel_threads(void **state)
{
	(void)state;
	const Process *process;
	Scenario s;

	scenario_begin(&s, 10, true);
	kthread(at(&s, 0), 30, "kworker/0:1");
	snapshot(at(&s, 0), 30, 0, S, -1);
	kthread(at(&s, 0), 2, "kthreadd");
	snapshot(at(&s, 0), 2, 0, S, -1);
	kthread(at(&s, 0), 31, "kworker/1:1");
	snapshot(at(&s, 0), 31, SNAPSHOT_ON_CPU, 0, -1);
	exiting(at(&s, 5), 31, 31, 0, EXIT_GROUP_DEAD);
	dead(at(&s, 5), 31);
	scenario_finish(&s);
	assert_int_equal(s.timeline->processes.count, 1);
	process = &s.timeline->processes.items[0];
	assert_int_equal(process->ns_tgid, 2);
	assert_string_equal(process->name, "kernel threads");
	assert_false(process->exited_in_window);
	assert_int_equal(process->threads.count, 3);
	/* The leader is the first. */
	assert_int_equal(s.timeline->threads.items[process->threads.items[0]].tid, 2);
	expect_track(&s, 30, "BBBBBBBBBB");
	expect_track(&s, 31, "RRRRR.....");
	scenario_free(&s);
}

/* ---- CPUs --------------------------------------------------------------------------------------
 */

static void begin_window(Scenario *s)
{
	struct rec_window record = {
		.h = {sizeof(record), REC_WINDOW, WINDOW_START | WINDOW_ATTACHED | WINDOW_SYSTEM, 0,
		      scenario_ns(0)},
	};

	timeline_builder_add(s->builder, &record.h);
}

static void begin_system(Scenario *s, int length)
{
	scenario_begin_early(s, length, true);
	begin_window(s);
}

/* A letter a millisecond: i idle, ? unknown, else the last digit of the tid. */
static void expect_cpu(const Scenario *s, size_t number, const char *expected)
{
	const Cpu *cpu = &s->timeline->cpus.items[number];
	char drawn[SCENARIO_LENGTH + 1] = {};

	for (size_t i = 0; i < cpu->runs.count; i++) {
		const CpuRun *run = &cpu->runs.items[i];
		uint64_t end = cpu_run_end(s->timeline, cpu, i);

		for (uint64_t ns = run->start_ns; ns < end; ns += NSEC_PER_MSEC)
			drawn[(ns - s->timeline->start_ns) / NSEC_PER_MSEC] =
				run->task == CPU_IDLE ? 'i'
				: run->task == CPU_UNKNOWN
					? '?'
					: '0' + s->timeline->tasks.items[run->task].tid % 10;
	}
	assert_string_equal(drawn, expected);
}

static void test_cpus(void **state)
{
	(void)state;
	Scenario s;

	begin_system(&s, 12);
	non_target(at(&s, 0), 41, "non-target");
	others_switch(at(&s, 2), 41, 0, 0, /* complete_ms= */ 0);
	others_switch(at(&s, 4), 0, 42, 0, /* complete_ms= */ 0);
	others_switch(at(&s, 7), 42, 41, 0, /* complete_ms= */ 0);
	others_switch(at(&s, 3), 0, 43, 2, /* complete_ms= */ 0);
	scenario_finish(&s);
	expect_cpu(&s, 0, "11ii22211111");
	expect_cpu(&s, 1, "");
	expect_cpu(&s, 2, "iii333333333");
	assert_string_equal(
		s.timeline->tasks.items[s.timeline->cpus.items[0].runs.items[0].task].comm,
		"non-target");
	scenario_free(&s);
}

/* Of two that come in the wrong order, the first one's time counts for both. */
static void test_cpu_late(void **state)
{
	(void)state;
	Scenario s;

	begin_system(&s, 10);
	others_switch(at(&s, 2), 41, 42, 0, /* complete_ms= */ 0);
	others_switch(at(&s, 6), 43, 44, 0, /* complete_ms= */ 0);
	others_switch(at(&s, 4), 42, 43, 0, /* complete_ms= */ 0);
	others_switch(at(&s, 8), 43, 0, 0, /* complete_ms= */ 0);
	scenario_finish(&s);
	expect_cpu(&s, 0, "11????33ii");
	scenario_free(&s);
}

/* A switch that is missing makes unknown what lies between those around it. */
static void test_cpu_gap(void **state)
{
	(void)state;
	Scenario s;

	begin_system(&s, 10);
	others_switch(at(&s, 1), 41, 42, 0, /* complete_ms= */ 0);
	others_switch(lost_at(&s, 3), 42, 43, 0, /* complete_ms= */ 0);
	others_switch(at(&s, 5), 43, 44, 0, /* complete_ms= */ 0);
	others_switch(at(&s, 8), 44, 0, 0, /* complete_ms= */ 0);
	scenario_finish(&s);
	expect_cpu(&s, 0, "1????444ii");
	scenario_free(&s);
}

/* Two that are missing may cancel out; where a loss is reported, the counts are not used. */
static void test_cpu_loss(void **state)
{
	(void)state;
	Scenario s;

	begin_system(&s, 10);
	others_switch(at(&s, 2), 41, 42, 0, /* complete_ms= */ 0);
	others_switch(at(&s, 8), 42, 0, 0, /* complete_ms= */ 0);
	loss(at(&s, 9), REC_SWITCH, 4, 5);
	scenario_finish(&s);
	expect_cpu(&s, 0, "11??????ii");
	scenario_free(&s);
}

/* Events before the start only say which thread has the CPU then. */
static void test_cpu_before(void **state)
{
	(void)state;
	Scenario s;

	begin_system(&s, 10);
	others_switch(at(&s, -5), 41, 42, 0, /* complete_ms= */ 0);
	others_switch(at(&s, -2), 42, 43, 0, /* complete_ms= */ 0);
	others_switch(at(&s, 4), 43, 0, 0, /* complete_ms= */ 0);
	others_switch(at(&s, -3), 44, 45, 1, /* complete_ms= */ 0);
	scenario_finish(&s);
	expect_cpu(&s, 0, "3333iiiiii");
	expect_cpu(&s, 1, "5555555555");
	scenario_free(&s);
}

static void runs_at_end(Scenario *s, uint32_t tid, uint16_t cpu)
{
	struct rec_snapshot record = {
		.h = {sizeof(record), REC_SNAPSHOT, SNAPSHOT_END | SNAPSHOT_ON_CPU, 0,
		      scenario_ns(s->ms)},
		.tid = tid,
		.task_cpu = cpu,
		.syscall = -1,
	};

	timeline_builder_add(s->builder, &record.h);
}

/*
 * CPUs without a switch: a thread that a tick or the last snapshot saw there had the CPU,
 * idle time is the kernel's, and the rest is unknown. One that is offline is none.
 */
static void test_cpu_without_switch(void **state)
{
	(void)state;
	Scenario s;

	begin_system(&s, 10);
	meta(&s, "cpus_online=0-2,4-6");
	described(at(&s, 0), 41, 41, "spinner");
	described(at(&s, 0), 42, 42, "quiet");
	others_switch(at(&s, 2), 40, 0, 0, /* complete_ms= */ 0);
	tick(at(&s, 5), 41, 1);
	runs_at_end(at(&s, 10), 42, 2);
	meta(&s, "cpus_idle=0,1,4,6");
	loss(at(&s, 9), REC_SWITCH, 4, 5);
	scenario_finish(&s);
	assert_int_equal(s.timeline->cpus.count, 7);
	expect_cpu(&s, 0, "00????????"); /* that is where the loss was */
	expect_cpu(&s, 1, "1111111111");
	expect_cpu(&s, 2, "2222222222");
	expect_cpu(&s, 3, "");
	expect_cpu(&s, 4, "iiiiiiiiii");
	expect_cpu(&s, 5, "??????????");
	expect_cpu(&s, 6, "iiiiiiiiii");
	scenario_free(&s);
}

/* For a part of the window, the switches around it say which thread had the CPU. */
static void test_cpu_without_switch_in_range(void **state)
{
	(void)state;
	TimelineFilter filter = {.from_ns = 4 * NSEC_PER_MSEC, .to_ns = 7 * NSEC_PER_MSEC};
	Scenario s;

	scenario_begin_early(&s, 10, true);
	timeline_builder_filter(s.builder, &filter);
	begin_window(&s);
	meta(&s, "cpus_online=0-1");
	others_switch(at(&s, 8), 43, 0, 1, /* complete_ms= */ 0);
	scenario_finish(&s);
	expect_cpu(&s, 0, "???");
	expect_cpu(&s, 1, "333");
	scenario_free(&s);
}

/* What comes behind the window's end is not in it. */
static void test_cpu_end(void **state)
{
	(void)state;
	Scenario s;

	begin_system(&s, 10);
	others_switch(at(&s, 2), 41, 42, 0, /* complete_ms= */ 0);
	others_switch(at(&s, 9), 42, 0, 0, /* complete_ms= */ 0);
	others_switch(at(&s, 11), 0, 42, 0, /* complete_ms= */ 0);
	scenario_finish(&s);
	expect_cpu(&s, 0, "112222222i");
	scenario_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_range_without_end),
		cmocka_unit_test(test_who),
		cmocka_unit_test(test_stranger),
		cmocka_unit_test(test_joined),
		cmocka_unit_test(test_kernel_threads),
		cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_cpu_late),
		cmocka_unit_test(test_cpu_without_switch),
		cmocka_unit_test(test_cpu_without_switch_in_range),
		cmocka_unit_test(test_cpu_gap),
		cmocka_unit_test(test_cpu_loss),
		cmocka_unit_test(test_cpu_before),
		cmocka_unit_test(test_cpu_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
