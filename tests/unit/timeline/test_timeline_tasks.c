/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The identity of tasks, and what else the timeline keeps beside the chains. */
#include "scenario.h"
#include <asm/unistd_64.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define S 0x1 /* TASK_INTERRUPTIBLE */

static void add_meta(Scenario *s, const char *text)
{
	char buffer[256] = {};
	struct rec_meta *record = (struct rec_meta *)buffer;

	snprintf(record->text, 200, "%s", text);
	record->h.kind = REC_META;
	record->h.len = sizeof(*record) + (strlen(text) + 8) / 8 * 8;
	timeline_builder_add(s->builder, &record->h);
}

static void add_walked(Scenario *s, int flags, uint64_t id, uint16_t count, uint32_t room)
{
	char buffer[sizeof(struct rec_stack) + 8 * 8] = {};
	struct rec_stack *record = (struct rec_stack *)buffer;

	record->h.kind = REC_STACK;
	record->h.flags = STACK_USER | flags;
	record->h.len = sizeof(*record) + room * 8;
	record->id = id;
	record->result = count;
	record->tables_ns = 1000 + count;
	record->count = count;
	for (uint32_t i = 0; i < room; i++)
		record->frames[i] = id * 100 + i;
	timeline_builder_add(s->builder, &record->h);
}

static void add_stack(Scenario *s, uint64_t id, uint16_t count, uint32_t room)
{
	add_walked(s, 0, id, count, room);
}

/* The comparison itself: any change of the picture is seen. */
static void test_strips_differ(void **state)
{
	(void)state;
	Scenario s;
	char drawn[SCENARIO_LENGTH + 1], altered[SCENARIO_LENGTH + 1];

	scenario_begin(&s, 8, true);
	described(at(&s, 0), 10, 10, "a");
	snapshot(at(&s, 0), 10, SNAPSHOT_ON_CPU, 0, -1);
	out(at(&s, 2), 10, S);
	wake(at(&s, 5), 10, 11);
	in(at(&s, 6), 10, 0);
	scenario_finish(&s);
	track_draw(&s, scenario_thread(&s, 10, 0), drawn);
	assert_string_equal(drawn, "RRBBBrRR");
	assert_int_equal(track_difference("RRBBBrRR", drawn), -1);
	for (int i = 0; i < 8; i++) {
		for (const char *letter = "RrB?."; *letter; letter++) {
			strcpy(altered, drawn);
			altered[i] = *letter;
			assert_int_equal(track_difference(altered, drawn),
					 *letter == drawn[i] ? -1 : i);
		}
	}
	assert_int_equal(track_difference("RRBBBrR", drawn), 7);
	assert_int_equal(track_difference("RRBBBrRRR", drawn), 8);
	scenario_free(&s);
}

static void test_undescribed_thread(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 8, true);
	in(at(&s, 2), 33, 0);
	out(at(&s, 4), 33, S);
	wake(at(&s, 6), 34, 33); /* nothing else is known about 34 */
	scenario_finish(&s);
	expect_track(&s, 33, "..RRBBBB");
	expect_track(&s, 34, "......??");

	const Thread *thread = scenario_thread(&s, 33, 0);

	assert_string_equal(thread->name, "TID 33");
	assert_string_equal(s.timeline->processes.items[thread->process].name, "unknown");
	assert_int_not_equal(thread->process, scenario_thread(&s, 34, 0)->process);
	assert_int_equal(s.timeline->missed_switches, 0);
	assert_int_equal(scenario_thread(&s, 34, 0)->intervals.items[0].reason, REASON_LOST);
	scenario_free(&s);
}

static void test_late_descriptions(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 8, true);
	in(at(&s, 2), 33, 0);
	out(at(&s, 4), 33, S);
	described(at(&s, 5), 33, 30, "late");
	in(at(&s, 3), 40, 0);
	birth(at(&s, 1), 40, 30); /* the birth itself comes late */
	birth(at(&s, 1), 40, 30); /* and again */
	scenario_finish(&s);
	expect_track(&s, 33, "..RRBBBB");
	expect_track(&s, 40, ".rrRRRRR");
	assert_string_equal(scenario_thread(&s, 33, 0)->name, "late");
	assert_int_equal(scenario_thread(&s, 33, 0)->ns_tid, 1033);
	assert_int_equal(s.timeline->processes.count, 1);
	assert_true(scenario_thread(&s, 40, 0)->born_in_window);
	scenario_free(&s);
}

static void test_lost_birth(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 8, true);
	birth(lost_at(&s, 1), 40, 30);
	wake_new(at(&s, 2), 40, 30);
	in(at(&s, 3), 40, 0);
	exiting(at(&s, 4), 40, 30, 0, 0);
	dead(at(&s, 5), 40);
	birth(lost_at(&s, 6), 40, 30);
	wake_new(at(&s, 6), 40, 30);
	in(at(&s, 7), 40, 0);
	scenario_finish(&s);
	expect_track_of(&s, 40, 0, "..rRR...");
	expect_track_of(&s, 40, 1, "......rR");
	assert_int_equal(s.timeline->missed_switches, 0);
	scenario_free(&s);
}

static void test_ticks(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin_early(&s, 12, true);
	described(at(&s, -4), 10, 10, "a");
	snapshot(at(&s, -4), 10, SNAPSHOT_ON_CPU, 0, -1);
	tick(at(&s, -2), 10, 0); /* before the window: ignored */
	scenario_window_start(&s);
	tick(at(&s, 1), 10, 0);
	tick(at(&s, 2), 10, 0);
	out(at(&s, 3), 10, S);
	tick(at(&s, 4), 10, 0); /* not running */
	wake(at(&s, 5), 10, 11);
	in(at(&s, 6), 10, 0);
	tick(at(&s, 6), 10, 0);
	out(lost_at(&s, 8), 10, S);
	tick(at(&s, 9), 10, 0); /* in doubt */
	loss(at(&s, 10), REC_SWITCH, 8, 8);
	tick(at(&s, 13), 10, 0); /* after the window; its end is reported later */
	scenario_finish(&s);
	expect_track(&s, 10, "RRRBBrRR????");

	const Thread *thread = scenario_thread(&s, 10, 0);

	assert_int_equal(thread->ticks.count, 3);
	assert_int_equal(thread->ticks.items[2].ns, scenario_ns(6));
	assert_true(thread->ticks.items[2].user_mode);
	assert_int_equal(s.timeline->stacks.items[thread->ticks.items[0].user_stack].id, 77);
	assert_int_equal(s.timeline->orphan_ticks, 2);
	scenario_free(&s);
}

static void test_open_waits(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin_early(&s, 8, true);
	described(at(&s, -5), 10, 10, "a");
	snapshot(at(&s, -5), 10, SNAPSHOT_ON_CPU, 0, -1);
	in(at(&s, -4), 10, 0); /* contradicts, but only the window counts */
	out(at(&s, -3), 10, S);
	scenario_window_start(&s);
	wake(at(&s, 2), 10, 11);
	in(at(&s, 3), 10, 0);
	out(at(&s, 5), 10, S);
	scenario_window_end(&s);
	tick(at(&s, 9), 10, 0);
	wake(at(&s, 9), 10, 11); /* after the window */
	in(at(&s, 10), 10, 0);
	scenario_finish(&s);
	expect_track(&s, 10, "BBrRRBBB");
	assert_int_equal(s.timeline->missed_switches, 0);

	const Thread *thread = scenario_thread(&s, 10, 0);

	assert_int_equal(thread->intervals.count, 4);
	assert_int_equal(thread->intervals.items[0].flags, INTERVAL_OPEN_START);
	assert_int_equal(thread->intervals.items[1].flags, 0);
	assert_int_equal(thread->intervals.items[3].flags, INTERVAL_OPEN_END);
	assert_int_equal(thread->switch_outs, 1);
	assert_int_equal(s.timeline->events, 3);
	assert_int_equal(s.timeline->orphan_ticks, 0);
	scenario_free(&s);
}

/* A switch during the snapshot is used instead of it, and is no missed switch. */
static void test_snapshot_overtaken(void **state)
{
	(void)state;
	Scenario s;

	/* Looked at after it went to sleep, but stamped before. */
	scenario_begin(&s, 8, true);
	described(at(&s, 0), 10, 10, "a");
	scenario_set_seq(&s, 10, 1);
	snapshot(at(&s, 2), 10, 0, S, __NR_read);
	scenario_set_seq(&s, 10, 0);
	out(at(&s, 2), 10, S);
	scenario_finish(&s);
	expect_track(&s, 10, "RRBBBBBB");
	assert_int_equal(s.timeline->missed_switches, 0);
	scenario_free(&s);

	/* Looked at after it was switched in: it was off CPU, in an unknown state. */
	scenario_begin(&s, 8, true);
	described(at(&s, 0), 10, 10, "a");
	snapshot(at(&s, 2), 10, SNAPSHOT_ON_CPU, 0, -1);
	in(at(&s, 2), 10, 0);
	scenario_finish(&s);
	expect_track(&s, 10, "??RRRRRR");
	assert_int_equal(s.timeline->missed_switches, 0);
	scenario_free(&s);
}

/* Looked at once more when tables are there: a thread that fell asleep since has its own stack.
 */
static void test_second_snapshot(void **state)
{
	Scenario s;
	const Thread *thread;

	(void)state;
	scenario_begin_early(&s, 8, true);
	for (uint32_t tid = 10; tid < 13; tid++) {
		described(at(&s, -6), tid, tid, "a");
		snapshot(at(&s, -6), tid, SNAPSHOT_ON_CPU, 0, -1);
		out(at(&s, -4), tid, S);
	}
	s.snapshot_ustack = 70;
	snapshot(at(&s, -2), 10, 0, S, -1);
	scenario_set_seq(&s, 11, 7); /* read before it fell asleep, or after it was woken */
	s.snapshot_ustack = 71;
	snapshot(at(&s, -2), 11, 0, S, -1);
	scenario_set_seq(&s, 11, 1);
	snapshot(at(&s, -2), 12, 0, S, -1);
	scenario_window_start(&s);
	scenario_finish(&s);
	expect_track(&s, 10, "BBBBBBBB");
	thread = scenario_thread(&s, 10, 0);
	assert_int_equal(s.timeline->stacks.items[thread->intervals.items[0].user_stack].id, 70);
	for (uint32_t tid = 11; tid < 13; tid++)
		assert_int_equal(scenario_thread(&s, tid, 0)->intervals.items[0].user_stack,
				 STACK_NONE);
	assert_int_equal(s.timeline->missed_switches, 0);
	scenario_free(&s);
}

/* Nothing is known of a thread that existed before and has its first account within the window. */
static void test_no_base(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin_early(&s, 6, true);
	birth(at(&s, -9), 10, 10);
	described(at(&s, -5), 20, 20, "earlier");
	described(at(&s, -5), 21, 20, "with base");
	in(at(&s, -5), 20, 0);
	in(at(&s, -5), 21, 0);
	in(at(&s, -5), 10, 0);
	stats(at(&s, -4), 21, 1000);
	scenario_window_start(&s);
	birth(at(&s, 1), 11, 10);
	in(at(&s, 2), 11, 0);
	for (uint32_t i = 0; i < 4; i++) {
		static const uint32_t tids[] = {10, 11, 20, 21};

		exiting(at(&s, 4), tids[i], tids[i], 0, 0);
		dead(&s, tids[i]);
		stats(&s, tids[i], 9000);
	}
	scenario_finish(&s);
	assert_false(scenario_thread(&s, 10, 0)->kernel.known);
	assert_true(scenario_thread(&s, 11, 0)->kernel.known);
	assert_false(scenario_thread(&s, 20, 0)->kernel.known);
	assert_true(scenario_thread(&s, 21, 0)->kernel.known);
	scenario_free(&s);
}

/* Threads that were gone before the window, or came after it, are not in the timeline. */
static void test_outside_the_window(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin_early(&s, 4, true);
	birth(at(&s, -9), 10, 10);
	in(at(&s, -8), 10, 0);
	dead(at(&s, -7), 10);
	described(at(&s, -5), 20, 20, "zombie");
	snapshot(at(&s, -5), 20, 0, 0x80, -1);
	described(at(&s, -5), 21, 20, "rest");
	snapshot(at(&s, -5), 21, 0, S, __NR_pause);
	scenario_window_start(&s);
	birth(at(&s, 6), 30, 30);
	in(at(&s, 7), 30, 0);
	wake(at(&s, 2), 21, 10); /* by a task that is in no timeline */
	scenario_finish(&s);
	assert_int_equal(s.timeline->threads.count, 1);
	assert_int_equal(s.timeline->processes.count, 1);
	expect_track(&s, 21, "BBrr");

	const Interval *wait = &scenario_thread(&s, 21, 0)->intervals.items[0];

	assert_int_equal(s.timeline->tasks.items[wait->waker].tid, 10);
	assert_int_equal(s.timeline->tasks.items[wait->waker].thread, THREAD_NONE);
	scenario_free(&s);
}

static void test_nobody_in_the_window(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin_early(&s, 4, true);
	birth(at(&s, -9), 10, 10);
	in(at(&s, -8), 10, 0);
	dead(at(&s, -7), 10);
	scenario_window_start(&s);
	scenario_finish(&s);
	assert_int_equal(s.timeline->threads.count, 0);
	assert_int_equal(s.timeline->processes.count, 0);
	scenario_free(&s);
}

static void test_command(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 10, false);
	add_meta(&s, "command_tid=1010");
	add_meta(&s, "kernel=6.1");
	add_meta(&s, "kernel=6.18");
	add_meta(&s, "no equals sign");
	add_meta(&s, "empty=");
	described(at(&s, 0), 10, 10, "sh");
	snapshot(at(&s, 0), 10, SNAPSHOT_ON_CPU, 0, -1);
	exec_as(at(&s, 1), 10, 10, 10);
	s.next_out.fd_count = 3;
	s.next_out.fd_kind = FD_INET;
	out_call(at(&s, 2), 10, S, __NR_poll); /* the only thread: never idle */
	wake(at(&s, 3), 10, 11);
	in(at(&s, 3), 10, 0);
	birth(at(&s, 4), 11, 10);
	s.next_out.fd_count = 3;
	s.next_out.fd_kind = FD_INET;
	out_call(at(&s, 5), 10, S, __NR_poll);
	scenario_finish(&s);
	expect_track(&s, 10, "RRBRRBBBBB");

	const Thread *thread = scenario_thread(&s, 10, 0);

	assert_int_equal(thread->intervals.items[1].reason, REASON_NETWORK_POLL);
	assert_int_equal(thread->intervals.items[3].reason, REASON_POLL);
	assert_true(&s.timeline->threads.items[s.timeline->command_thread] == thread);
	assert_string_equal(timeline_meta(s.timeline, "kernel"), "6.18");
	assert_string_equal(timeline_meta(s.timeline, "empty"), "");
	assert_null(timeline_meta(s.timeline, "no equals sign"));
	assert_string_equal(s.timeline->processes.items[0].path, "/bin/new");
	assert_string_equal(thread->name, "new");
	assert_true(s.timeline->complete);
	scenario_free(&s);
}

static void test_processes(void **state)
{
	(void)state;
	Scenario s;
	struct rec_task child = {
		.h = {sizeof(child), REC_TASK, TASK_BIRTH, 0, scenario_ns(2)},
		.tid = 20,
		.tgid = 20,
		.parent_tgid = 10,
	};

	/* No NUL: as an initializer, gcc 15 warns of it. */
	memcpy(child.comm, "sixteen letters!", sizeof(child.comm));
	scenario_begin(&s, 6, true);
	described(at(&s, 0), 11, 10, "second"); /* before its leader */
	described(at(&s, 0), 10, 10, "leader");
	timeline_builder_add(s.builder, &child.h);
	scenario_finish(&s);

	const Process *parent = &s.timeline->processes.items[0];

	assert_int_equal(s.timeline->processes.count, 2);
	assert_string_equal(parent->name, "leader");
	assert_int_equal(parent->threads.items[0], 1);
	assert_int_equal(parent->threads.items[1], 0);
	assert_int_equal(parent->parent, THREAD_NONE);
	assert_int_equal(s.timeline->processes.items[1].parent, 0);
	assert_string_equal(s.timeline->processes.items[1].name, "sixteen letters");
	assert_true(s.timeline->processes.items[1].born_in_window);
	assert_int_equal(s.timeline->command_thread, THREAD_NONE);
	scenario_free(&s);
}

static void test_kernel_accounts(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin_early(&s, 8, true);
	for (uint32_t tid = 10; tid < 14; tid++) {
		described(at(&s, -1), tid, 10, "a");
		snapshot(at(&s, -1), tid, 0, S, -1);
	}
	stats_ahead(at(&s, -1), 10, 5000, 70);
	stats_ahead(at(&s, -1), 13, 5000, INT64_MIN + 5);
	stats(at(&s, -1), 11, 7000);
	scenario_window_start(&s);
	birth(at(&s, 1), 20, 10);
	in(at(&s, 2), 20, 0);
	dead(at(&s, 4), 20);
	stats_ahead(at(&s, 4), 20, 600, -30);
	birth(at(&s, 4), 21, 10);
	in(at(&s, 5), 21, 0);
	dead(at(&s, 6), 21);
	stats(at(&s, 6), 21, 900);
	stats_ahead(at(&s, 8), 10, 5400, 50);
	stats(at(&s, 8), 12, 100);
	stats_ahead(at(&s, 8), 13, 5400, INT64_MAX);
	scenario_finish(&s);
	assert_true(scenario_thread(&s, 10, 0)->kernel.known);
	assert_int_equal(scenario_thread(&s, 10, 0)->kernel.sum_exec_runtime, 400);
	assert_int_equal(scenario_thread(&s, 10, 0)->kernel.nvcsw, 200);
	assert_int_equal(scenario_thread(&s, 10, 0)->kernel.run_delay, UINT64_MAX);
	assert_false(scenario_thread(&s, 11, 0)->kernel.known); /* the final one is missing */
	assert_false(scenario_thread(&s, 12, 0)->kernel.known); /* the first one is */
	assert_int_equal(scenario_thread(&s, 20, 0)->kernel.sum_exec_runtime, 600);
	/* The scheduler's clock: since the first account, since the birth, and not known. */
	assert_true(scenario_thread(&s, 10, 0)->kernel.clock_known);
	assert_int_equal(scenario_thread(&s, 10, 0)->kernel.clock_ahead, -20);
	assert_true(scenario_thread(&s, 20, 0)->kernel.clock_known);
	assert_int_equal(scenario_thread(&s, 20, 0)->kernel.clock_ahead, -30);
	assert_true(scenario_thread(&s, 21, 0)->kernel.known);
	assert_false(scenario_thread(&s, 21, 0)->kernel.clock_known);
	/* No clock advances by so much: a damaged capture's. */
	assert_true(scenario_thread(&s, 13, 0)->kernel.known);
	assert_false(scenario_thread(&s, 13, 0)->kernel.clock_known);
	scenario_free(&s);
}

static void test_stacks(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 6, true);
	described(at(&s, 0), 10, 10, "a");
	snapshot(at(&s, 0), 10, SNAPSHOT_ON_CPU, 0, -1);
	add_stack(&s, 5, 3, 3);
	s.next_out.ustack = 5;
	s.next_out.kstack = 6;
	out(at(&s, 2), 10, S);
	add_stack(&s, 6, 9, 4); /* says more than it holds */
	add_stack(&s, 5, 2, 2); /* again: the first stands */
	wake(at(&s, 3), 10, 11);
	scenario_finish(&s);

	const Thread *thread = scenario_thread(&s, 10, 0);
	const StackDef *user = &s.timeline->stacks.items[thread->intervals.items[1].user_stack];
	const StackDef *kernel = &s.timeline->stacks.items[thread->intervals.items[1].kernel_stack];

	assert_true(user->defined);
	assert_int_equal(user->count, 3);
	assert_int_equal(user->flags, STACK_USER);
	assert_int_equal(s.timeline->frames.items[user->first + 2], 502);
	assert_int_equal(kernel->id, 6);
	assert_false(kernel->defined);
	assert_int_equal(thread->intervals.items[0].user_stack,
			 thread->intervals.items[1].user_stack);
	/* What it is going to do next is what it waited for. */
	assert_int_equal(thread->intervals.items[2].user_stack,
			 thread->intervals.items[1].user_stack);
	scenario_free(&s);
}

/* The walk from a copy knows more, whichever comes first; of two such the first stands. */
static void test_stacks_from_copies(void **state)
{
	(void)state;
	Scenario s;

	scenario_begin(&s, 6, true);
	add_walked(&s, 0, 5, 2, 2);
	add_walked(&s, STACK_FROM_COPY, 5, 4, 4);
	add_walked(&s, 0, 5, 3, 3);
	add_walked(&s, STACK_FROM_COPY, 6, 4, 4);
	add_walked(&s, 0, 6, 2, 2);
	add_walked(&s, STACK_FROM_COPY, 6, 5, 5);
	add_walked(&s, STACK_FROM_COPY, 7, 9, 3); /* says more than it holds */
	add_walked(&s, 0, 7, 4, 4);
	scenario_finish(&s);
	assert_int_equal(s.timeline->stacks.count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const StackDef *stack = &s.timeline->stacks.items[i];

		assert_true(stack->defined);
		assert_int_equal(stack->id, 5 + i);
		assert_int_equal(stack->count, 4);
		assert_int_equal(stack->result, 4);
		assert_true(stack->tables_ns == 1004);
		assert_int_equal(stack->flags, i < 2 ? STACK_USER | STACK_FROM_COPY : STACK_USER);
		for (uint32_t k = 0; k < 4; k++)
			assert_int_equal(s.timeline->frames.items[stack->first + k],
					 stack->id * 100 + k);
	}
	scenario_free(&s);
}

static void test_cut_off_capture(void **state)
{
	(void)state;
	Scenario s;
	struct rec_total total = {.h = {sizeof(total), REC_TOTAL, 0, 0, 0},
				  .counted_kind = REC_SWITCH,
				  .sent = 4,
				  .lost = 2};

	scenario_begin_early(&s, 8, true);
	in(at(&s, 1), 10, 0);
	out(at(&s, 5), 10, S);
	loss(at(&s, 5), REC_SAMPLE, 3, 2);
	timeline_builder_add(s.builder, &total.h);
	total.counted_kind = 100000;
	timeline_builder_add(s.builder, &total.h);
	s.timeline = timeline_builder_finish(s.builder);
	assert_false(s.timeline->complete);
	assert_int_equal(s.timeline->start_ns, scenario_ns(1));
	assert_int_equal(s.timeline->end_ns, scenario_ns(5));
	assert_int_equal(s.timeline->totals[REC_SWITCH].sent, 4);
	assert_int_equal(s.timeline->totals[REC_SWITCH].lost, 2);
	assert_int_equal(s.timeline->totals[REC_SWITCH].received, 2);
	assert_int_equal(s.timeline->losses.count, 1);
	assert_true(s.timeline->losses.items[0].from_ns < s.timeline->losses.items[0].to_ns);
	check_thread(s.timeline, scenario_thread(&s, 10, 0));
	scenario_free(&s);

	s.timeline = timeline_builder_finish(timeline_builder_new());
	assert_int_equal(s.timeline->threads.count, 0);
	scenario_free(&s);
}

/* The wait of a command for wallprof's start signal is before the window; waits of others are not.
 */
static void test_launch(void **state)
{
	static const struct {
		const char *recorder;
		int starts_ms;
	} cases[] = {{"recorder_pid=1099", 2}, {"recorder_pid=1098", 0}, {"none=", 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		Scenario s;

		scenario_begin_early(&s, 10, false);
		add_meta(&s, "command_tid=1010");
		add_meta(&s, cases[i].recorder);
		non_target(at(&s, -4), 99, "wallprof");
		described(at(&s, -3), 10, 10, "sh");
		snapshot(at(&s, -3), 10, 0, S, __NR_read);
		scenario_window_start(&s);
		wake(at(&s, 2), 10, 99);
		in(at(&s, 3), 10, 0);
		exec_as(at(&s, 4), 10, 10, 10);
		scenario_finish(&s);
		assert_int_equal(s.timeline->start_ns, scenario_ns(cases[i].starts_ms));
		assert_int_equal(s.timeline->realtime_start_ns - s.timeline->start_ns,
				 1700000000 * NSEC_PER_SEC - scenario_ns(0));
		expect_track(&s, 10, cases[i].starts_ms ? "..rRRRRRRR" : "BBrRRRRRRR");
		scenario_free(&s);
	}
}

/*
 * A robust mutex stores its owner in its word; the owner of a shared one may be in another process.
 */
static void test_holder_by_the_word(void **state)
{
	static const struct {
		bool shared, first_namespace;
		uint32_t owner; /* the owner that the recorder read beside the word */
		uint32_t value; /* the value that the thread expects in the word */
		const char *holder;
	} cases[] = {
		{false, false, 0, 2011 | FUTEX_WAITERS, "thread"},
		{false, false, 0, 2011, NULL},
		{false, false, 0, 2012 | FUTEX_WAITERS, NULL},
		{false, true, 0, 12 | FUTEX_WAITERS, NULL},
		{true, true, 0, 12 | FUTEX_WAITERS, "process"},
		{true, true, 12, 2, "process"},
		{true, true, 10, 2, NULL},
		/* Tids of two namespaces. */
		{true, false, 12, 2, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const Thread *thread;
		uint32_t cpu_user;
		Scenario s;

		scenario_begin(&s, 10, true);
		s.first_namespace = cases[i].first_namespace;
		described(at(&s, 0), 10, 10, "waiter");
		snapshot(at(&s, 0), 10, SNAPSHOT_ON_CPU, 0, -1);
		described(at(&s, 0), 11, 10, "thread");
		described(at(&s, 0), 12, 12, "process");
		s.next_out.args[1] = FUTEX_WAIT | (cases[i].shared ? 0 : FUTEX_PRIVATE_FLAG);
		s.next_out.args[2] = cases[i].value;
		s.next_out.owner = cases[i].owner;
		out_call(at(&s, 2), 10, S, __NR_futex);
		scenario_finish(&s);
		thread = scenario_thread(&s, 10, 0);
		cpu_user = thread->intervals.items[thread->intervals.count - 1].cpu_user;
		print_message("%zu\n", i);
		if (cases[i].holder)
			assert_string_equal(s.timeline->tasks.items[cpu_user].comm,
					    cases[i].holder);
		else
			assert_int_equal(cpu_user, THREAD_NONE);
		scenario_free(&s);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_strips_differ),
	cmocka_unit_test(test_holder_by_the_word),
	cmocka_unit_test(test_undescribed_thread),
	cmocka_unit_test(test_late_descriptions),
	cmocka_unit_test(test_second_snapshot),
	cmocka_unit_test(test_lost_birth),
	cmocka_unit_test(test_ticks),
	cmocka_unit_test(test_open_waits),
	cmocka_unit_test(test_snapshot_overtaken),
	cmocka_unit_test(test_no_base),
	cmocka_unit_test(test_outside_the_window),
	cmocka_unit_test(test_nobody_in_the_window),
	cmocka_unit_test(test_command),
	cmocka_unit_test(test_processes),
	cmocka_unit_test(test_kernel_accounts),
	cmocka_unit_test(test_stacks),
	cmocka_unit_test(test_stacks_from_copies),
	cmocka_unit_test(test_cut_off_capture),
	cmocka_unit_test(test_launch),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
