/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A wait for a CPU, divided among what had that CPU meanwhile. */
#include "cpu_users_fixture.h"
#include "report_sections.h"
#include "test_tools.h"
#include "timeline_fixture.h"
#include <asm/unistd_64.h>
#include <limits.h>
#include <setjmp.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define MS NSEC_PER_MSEC
#define S  0x1 /* TASK_INTERRUPTIBLE */

static void expect_text(const Timeline *t, uint32_t thread, size_t i, const char *expected)
{
	char *text = cpu_users_of(t, &t->threads.items[thread], i);

	assert_string_equal(text, expected);
	free(text);
}

/* ---- timelines made by hand ---------------------------------------------------------------- */

static uint32_t add_thread(Timeline *t, const char *name)
{
	return fixture_thread(t, 0, 10 + t->threads.count, name, 0, t->end_ns - t->start_ns);
}

static Timeline *new_timeline(void)
{
	Timeline *t = fixture_new(200 * MS);

	fixture_process(t, 10, "app", 0, 200 * MS);
	return t;
}

/* It runs on the CPU between two times, and sleeps afterwards. */
static void runs(Timeline *t, uint32_t thread, uint64_t from, uint64_t to, uint16_t cpu)
{
	fixture_interval(t, thread, from, STATE_RUNNING, REASON_NONE)->cpu = cpu;
	fixture_interval(t, thread, to, STATE_BLOCKED, REASON_SLEEP);
}

/* Interval 1 is a wait for CPU 1, between two times. */
static uint32_t add_victim(Timeline *t, uint64_t from, uint64_t to)
{
	uint32_t victim = add_thread(t, "victim");

	fixture_interval(t, victim, 0, STATE_BLOCKED, REASON_SLEEP);
	fixture_interval(t, victim, from, STATE_RUNNABLE, REASON_WOKEN)->cpu = 1;
	runs(t, victim, to, to + 5 * MS, 1);
	return victim;
}

static Interval *wait_of(Timeline *t, uint32_t victim)
{
	return &t->threads.items[victim].intervals.items[1];
}

static uint32_t add_non_target(Timeline *t, const char *name)
{
	Task task = {.tid = 900 + t->tasks.count, .thread = THREAD_NONE};

	strncpy(task.comm, name, sizeof(task.comm) - 1);
	*vec_push(&t->tasks) = task;
	return t->tasks.count - 1;
}

/* The task had the CPU before the victim for a moment only, the other one for nearly all of it. */
static void test_last_is_not_all(void **state)
{
	(void)state;
	Timeline *t = new_timeline();
	uint32_t hog = add_thread(t, "hog"), blip = add_thread(t, "blip");
	uint32_t victim = add_victim(t, 10 * MS, 151 * MS);

	runs(t, hog, 0, 150 * MS, 1);
	fixture_interval(t, blip, 0, STATE_BLOCKED, REASON_SLEEP);
	runs(t, blip, 150 * MS, 151 * MS, 1);
	wait_of(t, victim)->cpu_user = t->threads.items[blip].task;
	cpu_users_index(t);
	expect_text(t, victim, 1, "hog 140.000 ms, blip 1.000 ms");
	timeline_free(t);
}

/* Time in which no recorded thread is known to have run is not seen. */
static void test_gaps(void **state)
{
	(void)state;
	Timeline *t = new_timeline();
	uint32_t first = add_thread(t, "first"), second = add_thread(t, "second");
	uint32_t victim = add_victim(t, 10 * MS, 60 * MS);

	runs(t, first, 5 * MS, 15 * MS, 1);
	runs(t, first, 20 * MS, 30 * MS, 1);
	runs(t, first, 50 * MS, 70 * MS, 0);
	runs(t, second, 30 * MS, 40 * MS, 1);
	fixture_interval(t, second, 40 * MS, STATE_UNKNOWN, REASON_LOST);
	cpu_users_index(t);
	expect_text(t, victim, 1, "not seen 25.000 ms, first 15.000 ms, second 10.000 ms");
	timeline_free(t);
}

/* The tasks at the ends of the wait had the CPU, but it is unknown for how long. */
static void test_named_without_time(void **state)
{
	(void)state;
	Timeline *t = new_timeline();
	uint32_t hog = add_thread(t, "hog");
	uint32_t victim = add_victim(t, 10 * MS, 60 * MS);

	runs(t, hog, 10 * MS, 40 * MS, 1);
	wait_of(t, victim)->cpu_user = add_non_target(t, "rcu_preempt");
	cpu_users_index(t);
	expect_text(t, victim, 1,
		    "hog 30.000 ms, not seen 20.000 ms, rcu_preempt for an unknown time");
	wait_of(t, victim)->cpu_user = CPU_IDLE;
	expect_text(t, victim, 1,
		    "hog 30.000 ms, not seen 20.000 ms, CPU idle for an unknown time");
	wait_of(t, victim)->cpu = INTERVAL_CPU_UNKNOWN;
	wait_of(t, victim)->cpu_user = THREAD_NONE;
	expect_text(t, victim, 1, "not seen 50.000 ms");
	wait_of(t, victim)->cpu = 7;
	expect_text(t, victim, 1, "not seen 50.000 ms");
	timeline_free(t);
}

static void test_migrated(void **state)
{
	(void)state;
	Timeline *t = new_timeline();
	uint32_t hog = add_thread(t, "hog");
	uint32_t victim = add_victim(t, 10 * MS, 60 * MS);

	runs(t, hog, 10 * MS, 60 * MS, 1);
	*wait_of(t, victim) = (Interval){
		.start_ns = wait_of(t, victim)->start_ns,
		.state = STATE_RUNNABLE,
		.reason = REASON_PREEMPTED,
		.cpu = 1,
		.flags = INTERVAL_MIGRATED,
		.cpu_user = t->threads.items[hog].task,
	};
	cpu_users_index(t);
	expect_text(t, victim, 1, "migrated 50.000 ms, hog for an unknown time");
	timeline_free(t);
}

static void add_move(Timeline *t, uint32_t victim, uint64_t start, uint64_t at, bool again)
{
	*vec_push(&t->threads.items[victim].queue_moves) =
		(QueueMove){t->start_ns + start, t->start_ns + at, 2, again};
}

/* If it is known when the thread was moved, it waited for one CPU first, and then for the other. */
static void test_moved(void **state)
{
	(void)state;
	Timeline *t = new_timeline();
	uint32_t first = add_thread(t, "first"), second = add_thread(t, "second");
	uint32_t victim = add_victim(t, 10 * MS, 60 * MS);

	runs(t, first, 0, 60 * MS, 1);
	runs(t, second, 20 * MS, 60 * MS, 2);
	wait_of(t, victim)[0].reason = REASON_PREEMPTED;
	wait_of(t, victim)[0].flags = INTERVAL_MIGRATED;
	wait_of(t, victim)[1].cpu = 2;
	add_move(t, victim, 10 * MS, 25 * MS, false);
	cpu_users_index(t);
	expect_text(t, victim, 1, "second 35.000 ms, first 15.000 ms");
	/* Moved twice: its queue in between is not known. */
	t->threads.items[victim].queue_moves.items[0].again = true;
	expect_text(t, victim, 1, "second 35.000 ms, migrated 15.000 ms");
	/* Nor is the queue known that a wakeup put it into. */
	t->threads.items[victim].queue_moves.items[0].again = false;
	wait_of(t, victim)[0].reason = REASON_WOKEN;
	expect_text(t, victim, 1, "second 35.000 ms, migrated 15.000 ms");
	timeline_free(t);
}

static void taken(Timeline *t, size_t cpu, uint64_t from, uint64_t to, TakenTime time)
{
	while (t->proven_cpus.count <= cpu)
		*vec_push(&t->proven_cpus) = (ProvenCpu){};
	time.start_ns = t->start_ns + from;
	time.end_ns = t->start_ns + to;
	*vec_push(&t->proven_cpus.items[cpu].taken) = time;
}

/*
 * What interrupts and the hypervisor took belongs to no task. As far as it may lie outside of the
 * wait, it is "not seen".
 */
static void test_taken(void **state)
{
	(void)state;
	Timeline *t = new_timeline();
	uint32_t hog = add_thread(t, "hog"), blip = add_thread(t, "blip");
	uint32_t victim = add_victim(t, 10 * MS, 60 * MS);

	runs(t, hog, 0, 40 * MS, 1);
	fixture_interval(t, blip, 0, STATE_BLOCKED, REASON_SLEEP);
	runs(t, blip, 40 * MS, 60 * MS, 1);
	/* 30 of hog's 40 ms lie in the wait, so at least 2 of 12 and 4 of 14 ms do as well. */
	taken(t, 1, 0, 40 * MS, (TakenTime){.interrupts_ns = 12 * MS, .stolen_ns = 14 * MS});
	taken(t, 1, 40 * MS, 60 * MS, (TakenTime){.interrupts_ns = 5 * MS, .stolen_ns = 3 * MS});
	cpu_users_index(t);
	expect_text(t, victim, 1,
		    "not seen 20.000 ms, blip 12.000 ms, the hypervisor 7.000 ms, interrupts 7.000 "
		    "ms, 1 other 4.000 ms");
	timeline_free(t);
}

static void test_no_wait_for_a_cpu(void **state)
{
	(void)state;
	Timeline *t = new_timeline();
	uint32_t hog = add_thread(t, "hog");
	uint32_t victim = add_victim(t, 10 * MS, 60 * MS);

	runs(t, hog, 10 * MS, 60 * MS, 1);
	wait_of(t, victim)->reason = REASON_THROTTLED;
	cpu_users_index(t);
	for (size_t i = 0; i < t->threads.items[victim].intervals.count; i++)
		expect_text(t, victim, i, "");
	timeline_free(t);
}

/* There are many parts: the largest are reported, and the sum of the rest. */
static void test_many(void **state)
{
	(void)state;
	Timeline *t = new_timeline();
	uint32_t victim = add_victim(t, 0, 100 * MS);

	wait_of(t, victim)->start_ns = t->start_ns + MS;
	for (uint64_t i = 0; i < 7; i++) {
		char name[] = {'a' + i, 0};
		uint32_t thread = add_thread(t, name);

		/* Each runs twice: 1, 2, … ms after the victim was woken, and as long at 50 ms. */
		runs(t, thread, (1 + i * 7) * MS, (1 + i * 7 + i) * MS, 1);
		runs(t, thread, (50 + i * 7) * MS, (50 + i * 7 + i) * MS, 1);
	}
	cpu_users_index(t);
	expect_text(t, victim, 1,
		    "not seen 57.000 ms, g 12.000 ms, f 10.000 ms, e 8.000 ms, 3 others 12.000 ms");
	timeline_free(t);
}

/* Two threads that are said to run on one CPU at one time: nothing is believed of that. */
static void test_overlap(void **state)
{
	(void)state;
	Timeline *t = new_timeline();
	uint32_t first = add_thread(t, "first"), second = add_thread(t, "second");
	uint32_t third = add_thread(t, "third"), victim = add_victim(t, 10 * MS, 60 * MS);

	runs(t, first, 10 * MS, 40 * MS, 1);
	runs(t, second, 30 * MS, 50 * MS, 1);
	runs(t, third, 32 * MS, 35 * MS, 1);
	cpu_users_index(t);
	expect_text(t, victim, 1, "not seen 30.000 ms, first 20.000 ms");
	timeline_free(t);
}

/* ---- the table ----------------------------------------------------------------------------- */

/* A wait counts once for each task that ran in it; a task without a known time has none. */
static void test_table(void **state)
{
	(void)state;
	Timeline *t = new_timeline();
	uint32_t hog = add_thread(t, "hog");
	uint32_t first = add_victim(t, 10 * MS, 60 * MS), second = add_victim(t, 20 * MS, 70 * MS);
	char *text;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	const Page page = {.file = stream};
	const Report report = {.page = &page, .timeline = t, .rows = SIZE_MAX, .max_rank = INT_MAX};

	runs(t, hog, 10 * MS, 30 * MS, 1);
	runs(t, hog, 40 * MS, 45 * MS, 1);
	wait_of(t, first)->cpu_user = CPU_IDLE;
	wait_of(t, second)->cpu_user = t->threads.items[first].task;
	t->threads.items[first].intervals.items[2].cpu = 0;
	cpu_users_index(t);
	report_cpu_users_print(&report);
	fclose(stream);
	assert_string_equal(
		text,
		"\n"
		"      waited     times         mean      longest  CPU contention: ran instead\n"
		"   60.000 ms         2    30.000 ms    35.000 ms  not seen\n"
		"   40.000 ms         2    20.000 ms    25.000 ms  hog (10)\n"
		"           -         1            -            -  victim (11)\n"
		"           -         1            -            -  CPU idle\n");
	free(text);
	timeline_free(t);
}

/* ---- with the switches of all CPUs --------------------------------------------------------- */

static void cpu_run(Timeline *t, size_t cpu, uint64_t from, uint32_t task)
{
	while (t->cpus.count <= cpu)
		*vec_push(&t->cpus) = (Cpu){};
	*vec_push(&t->cpus.items[cpu].runs) = (CpuRun){t->start_ns + from, task};
}

static void test_whole_system(void **state)
{
	(void)state;
	Timeline *t = new_timeline();
	uint32_t hog = add_thread(t, "hog"), victim = add_victim(t, 10 * MS, 60 * MS);
	uint32_t non_target = add_non_target(t, "kworker/1:0");

	runs(t, hog, 0, 30 * MS, 1);
	cpu_run(t, 1, 0, t->threads.items[hog].task);
	cpu_run(t, 1, 30 * MS, CPU_IDLE);
	cpu_run(t, 1, 45 * MS, CPU_UNKNOWN);
	cpu_run(t, 1, 55 * MS, non_target);
	cpu_run(t, 1, 56 * MS, CPU_IDLE);
	cpu_run(t, 1, 60 * MS, t->threads.items[victim].task);
	wait_of(t, victim)->cpu_user = CPU_IDLE;
	cpu_users_index(t);
	expect_text(t, victim, 1,
		    "hog 20.000 ms, CPU idle 19.000 ms, not seen 10.000 ms, kworker/1:0 1.000 ms");
	wait_of(t, victim)->cpu = 9;
	expect_text(t, victim, 1, "not seen 50.000 ms, CPU idle for an unknown time");
	timeline_free(t);
}

/* The CPU's switches do not show that some are missing; the thread's own chain does. */
static void test_chain_contradicts(void **state)
{
	(void)state;
	Timeline *t = new_timeline();
	uint32_t hog = add_thread(t, "hog"), victim = add_victim(t, 10 * MS, 60 * MS);

	fixture_interval(t, hog, 0, STATE_RUNNING, REASON_NONE)->cpu = 1;
	fixture_interval(t, hog, 20 * MS, STATE_UNKNOWN, REASON_NOT_TRACED);
	fixture_interval(t, hog, 35 * MS, STATE_RUNNING, REASON_NONE)->cpu = 1;
	fixture_interval(t, hog, 45 * MS, STATE_RUNNING, REASON_NONE)->cpu = 0;
	fixture_interval(t, hog, 60 * MS, STATE_BLOCKED, REASON_SLEEP);
	cpu_run(t, 1, 0, t->threads.items[hog].task);
	cpu_run(t, 1, 60 * MS, t->threads.items[victim].task);
	cpu_users_index(t);
	expect_text(t, victim, 1, "not seen 30.000 ms, hog 20.000 ms");
	timeline_free(t);
}

/* ---- at random ----------------------------------------------------------------------------- */

#define THREADS 6
#define CPUS	2
#define SLOTS	120 /* of a millisecond */
#define ROUNDS	400

enum slot { ASLEEP, WAITS, RUNS, HIDDEN }; /* HIDDEN: it runs, and its chain does not prove it */

/* What each thread does in each slot, and what each CPU does, including non-targets. */
typedef struct World {
	enum slot slots[THREADS][SLOTS];
	uint8_t cpu_of[THREADS][SLOTS]; /* where it runs, or which CPU it waits for */
	uint32_t tasks[CPUS][SLOTS];
	uint32_t non_target;
} World;

/* What a CPU does goes on for a while, unless it is a thread that another CPU has. */
static void fill_cpu(World *world, const Timeline *t, size_t cpu)
{
	const uint32_t others[] = {CPU_IDLE, CPU_UNKNOWN, world->non_target};

	for (size_t slot = 0, end; slot < SLOTS; slot = end) {
		uint64_t what = random_below(THREADS + ARRAY_LEN(others));
		bool hidden = random_below(8) == 0;

		end = slot + 1 + random_below(6);
		end = MIN(end, (size_t)SLOTS);
		for (size_t i = slot; i < end; i++) {
			if (what >= THREADS) {
				world->tasks[cpu][i] = others[what - THREADS];
			} else if (world->slots[what][i] != ASLEEP) {
				world->tasks[cpu][i] = CPU_IDLE;
			} else {
				world->slots[what][i] = hidden ? HIDDEN : RUNS;
				world->cpu_of[what][i] = cpu;
				world->tasks[cpu][i] = t->threads.items[what].task;
			}
		}
	}
}

/* Where a thread does not run it sleeps or waits for one of the CPUs, for some time. */
static void fill_thread(World *world, size_t thread)
{
	bool waits = false;
	uint8_t cpu = 0;

	for (size_t i = 0; i < SLOTS; i++) {
		if (i == 0 || random_below(5) == 0) {
			waits = random_below(2);
			cpu = random_below(CPUS);
		}
		if (world->slots[thread][i] != ASLEEP || !waits)
			continue;
		world->slots[thread][i] = WAITS;
		world->cpu_of[thread][i] = cpu;
	}
}

static void draw_thread(const World *world, Timeline *t, uint32_t thread)
{
	static const struct {
		enum thread_state state;
		enum reason reason;
	} kinds[] = {
		[ASLEEP] = {STATE_BLOCKED, REASON_SLEEP},
		[WAITS] = {STATE_RUNNABLE, REASON_PREEMPTED},
		[RUNS] = {STATE_RUNNING, REASON_NONE},
		[HIDDEN] = {STATE_UNKNOWN, REASON_NOT_TRACED},
	};

	for (size_t i = 0; i < SLOTS; i++)
		if (i == 0 || world->slots[thread][i] != world->slots[thread][i - 1] ||
		    world->cpu_of[thread][i] != world->cpu_of[thread][i - 1])
			fixture_interval(t, thread, i * MS, kinds[world->slots[thread][i]].state,
					 kinds[world->slots[thread][i]].reason)
				->cpu = world->cpu_of[thread][i];
}

static void draw_cpu(const World *world, Timeline *t, size_t cpu)
{
	for (size_t i = 0; i < SLOTS; i++)
		if (i == 0 || world->tasks[cpu][i] != world->tasks[cpu][i - 1])
			cpu_run(t, cpu, i * MS, world->tasks[cpu][i]);
}

/* How much of the slots the task had the CPU for, as far as that is proven. */
static uint64_t truth_of(const World *world, const Timeline *t, uint32_t task, uint16_t cpu,
			 size_t from, size_t to)
{
	uint64_t ns = 0;

	for (size_t i = from; i < to; i++) {
		uint32_t had = world->tasks[cpu][i];
		uint32_t thread = had < t->tasks.count ? t->tasks.items[had].thread : THREAD_NONE;

		if (thread != THREAD_NONE && world->slots[thread][i] == HIDDEN)
			had = CPU_UNKNOWN;
		if (t->cpus.count == 0 && thread == THREAD_NONE)
			had = CPU_UNKNOWN;
		ns += had == task ? MS : 0;
	}
	return ns;
}

static void check_wait(const World *world, const Timeline *t, const Thread *thread, size_t i,
		       CpuParts *parts)
{
	const Interval *wait = &thread->intervals.items[i];
	size_t from = (wait->start_ns - t->start_ns) / MS;
	size_t to = (interval_end(thread, i) - t->start_ns) / MS;
	uint64_t sum = 0, largest = UINT64_MAX;

	cpu_users_divide(t, thread, i, parts);
	cpu_parts_sort(parts);
	assert_true(parts->count > 0);
	for (size_t p = 0; p < parts->count; p++) {
		const CpuPart *part = &parts->items[p];

		assert_true(part->ns > 0 && part->ns <= largest);
		assert_int_equal(part->ns, truth_of(world, t, part->task, wait->cpu, from, to));
		assert_int_not_equal(part->task, thread->task);
		for (size_t before = 0; before < p; before++)
			assert_int_not_equal(parts->items[before].task, part->task);
		sum += part->ns;
		largest = part->ns;
	}
	assert_int_equal(sum, interval_end(thread, i) - wait->start_ns);
}

static size_t check_round(bool whole_system)
{
	World world = {};
	Timeline *t = fixture_new(SLOTS * MS);
	CpuParts parts = {};
	size_t waits = 0;

	fixture_process(t, 10, "app", 0, SLOTS * MS);
	for (size_t i = 0; i < THREADS; i++)
		add_thread(t, "thread");
	world.non_target = add_non_target(t, "non-target");
	for (size_t cpu = 0; cpu < CPUS; cpu++)
		fill_cpu(&world, t, cpu);
	for (size_t thread = 0; thread < THREADS; thread++)
		fill_thread(&world, thread);
	for (size_t thread = 0; thread < THREADS; thread++)
		draw_thread(&world, t, thread);
	for (size_t cpu = 0; whole_system && cpu < CPUS; cpu++)
		draw_cpu(&world, t, cpu);
	cpu_users_index(t);
	for (size_t k = 0; k < THREADS; k++) {
		const Thread *thread = &t->threads.items[k];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			if (thread->intervals.items[i].state != STATE_RUNNABLE)
				continue;
			check_wait(&world, t, thread, i, &parts);
			waits++;
		}
	}
	cpu_parts_free(&parts);
	timeline_free(t);
	return waits;
}

static void test_random(void **state)
{
	size_t waits = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++)
		waits += check_round(round % 2);
	assert_true(waits > ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_is_not_all),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_named_without_time),
		cmocka_unit_test(test_migrated),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_no_wait_for_a_cpu),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_whole_system),
		cmocka_unit_test(test_chain_contradicts),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
