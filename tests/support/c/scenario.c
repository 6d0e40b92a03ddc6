/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scenario.h"
#include "cpu_users.h"
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

/* The window's start: late enough that there is room before it. */
#define ORIGIN_NS (10 * NSEC_PER_SEC)

uint64_t scenario_ns(int ms)
{
	return ORIGIN_NS + (int64_t)ms * (int64_t)NSEC_PER_MSEC;
}

void scenario_begin_early(Scenario *scenario, int length, bool attached)
{
	assert_uint_in_range(length, 1, SCENARIO_LENGTH);
	*scenario = (Scenario){
		.builder = timeline_builder_new(),
		.length = length,
		.attached = attached,
	};
}

void scenario_window_start(Scenario *scenario)
{
	struct rec_window record = {
		.h = {sizeof(record), REC_WINDOW, WINDOW_START, 0, scenario_ns(0)},
		.realtime_ns = 1700000000 * NSEC_PER_SEC,
	};

	if (scenario->attached)
		record.h.flags |= WINDOW_ATTACHED;
	timeline_builder_add(scenario->builder, &record.h);
}

void scenario_begin(Scenario *scenario, int length, bool attached)
{
	scenario_begin_early(scenario, length, attached);
	scenario_window_start(scenario);
}

Scenario *at(Scenario *scenario, int ms)
{
	scenario->ms = ms;
	scenario->lose = false;
	return scenario;
}

Scenario *lost_at(Scenario *scenario, int ms)
{
	scenario->ms = ms;
	scenario->lose = true;
	return scenario;
}

static struct record header(const Scenario *scenario, uint32_t len, uint8_t kind, uint8_t flags)
{
	return (struct record){len, kind, flags, 0, scenario_ns(scenario->ms)};
}

static void emit(Scenario *scenario, const struct record *record)
{
	if (!scenario->lose)
		timeline_builder_add(scenario->builder, record);
	scenario->lose = false;
}

static uint16_t *seq_of(Scenario *scenario, uint32_t tid)
{
	for (size_t i = 0; i < scenario->thread_count; i++)
		if (scenario->threads[i].tid == tid)
			return &scenario->threads[i].seq;
	assert_uint_in_range(scenario->thread_count, 0, SCENARIO_THREADS - 1);
	scenario->threads[scenario->thread_count] = (struct scenario_thread){tid, 0};
	return &scenario->threads[scenario->thread_count++].seq;
}

void scenario_set_seq(Scenario *scenario, uint32_t tid, uint16_t seq)
{
	*seq_of(scenario, tid) = seq;
}

static void task(Scenario *scenario, uint8_t flags, uint32_t tid, uint32_t tgid, const char *comm)
{
	struct rec_task record = {
		.h = header(scenario, sizeof(record), REC_TASK, flags),
		.tid = tid,
		.tgid = tgid,
		.ns_tid = tid + 1000,
		.ns_tgid = tgid + 1000,
		.own_tid = scenario->first_namespace ? tid : tid + 2000,
		.creator_tid = scenario->next_creator,
		.start_boottime = flags & TASK_BIRTH ? scenario_ns(scenario->ms) : 0,
	};

	scenario->next_creator = 0;

	snprintf(record.comm, sizeof(record.comm), "%s", comm);
	emit(scenario, &record.h);
}

void birth(Scenario *scenario, uint32_t tid, uint32_t tgid)
{
	*seq_of(scenario, tid) = 0;
	task(scenario, TASK_BIRTH, tid, tgid, "born");
}

void described(Scenario *scenario, uint32_t tid, uint32_t tgid, const char *comm)
{
	task(scenario, 0, tid, tgid, comm);
}

void renamed(Scenario *scenario, uint32_t tid, uint32_t tgid, const char *comm)
{
	task(scenario, TASK_RENAME, tid, tgid, comm);
}

void joined(Scenario *scenario, uint32_t tid, uint32_t tgid, const char *comm)
{
	task(scenario, TASK_JOINED, tid, tgid, comm);
}

void non_target(Scenario *scenario, uint32_t tid, const char *comm)
{
	task(scenario, TASK_NON_TARGET, tid, tid, comm);
}

void kernel_thread(Scenario *scenario, uint32_t tid, const char *comm)
{
	task(scenario, TASK_NON_TARGET | TASK_KTHREAD, tid, tid, comm);
}

static void waking(Scenario *scenario, uint8_t flags, uint32_t tid, uint32_t waker)
{
	struct rec_waking record = {
		.h = header(scenario, sizeof(record), REC_WAKING, flags),
		.tid = tid,
		.waker_tid = waker,
		.parts = WAKING_HAS_STACKS,
		.kstack = scenario->waker_kstack,
		.ustack = scenario->waker_ustack,
	};

	if (!record.kstack && !record.ustack) {
		record.h.len = WAKING_SHORT_LEN;
		record.parts = scenario->waker_unsampled ? WAKING_UNSAMPLED : 0;
	}
	scenario->waker_kstack = scenario->waker_ustack = 0;
	scenario->waker_unsampled = false;

	emit(scenario, &record.h);
}

void wake_new(Scenario *scenario, uint32_t tid, uint32_t waker)
{
	waking(scenario, WAKING_NEW, tid, waker);
}

void wake(Scenario *scenario, uint32_t tid, uint32_t waker)
{
	waking(scenario, 0, tid, waker);
}

void wake_by_irq(Scenario *scenario, uint32_t tid)
{
	waking(scenario, WAKING_HARDIRQ, tid, 4242);
}

void in(Scenario *scenario, uint32_t tid, uint16_t cpu)
{
	struct rec_switch record = {
		.h = header(scenario, SWITCH_SHORT_LEN, REC_SWITCH, SWITCH_NEXT),
		.next_tid = tid,
		.next_seq = *seq_of(scenario, tid),
		.prev_tid = scenario->ran_before,
		.syscall = -1,
	};

	record.h.cpu = cpu;
	emit(scenario, &record.h);
}

static void switch_out(Scenario *scenario, uint8_t flags, uint32_t tid, uint16_t state, int syscall)
{
	struct rec_switch record = scenario->next_out;

	flags |= record.h.flags;
	record.h = header(scenario, record.inode ? sizeof(record) : SWITCH_OUT_LEN, REC_SWITCH,
			  SWITCH_PREV | flags);
	record.parts |= SWITCH_HAS_OUT | (record.inode ? SWITCH_HAS_OBJECT : 0);
	record.prev_tid = tid;
	record.prev_seq = ++*seq_of(scenario, tid);
	record.prev_state = state;
	record.syscall = syscall;
	memset(&scenario->next_out, 0, sizeof(scenario->next_out));
	emit(scenario, &record.h);
}

void out(Scenario *scenario, uint32_t tid, uint16_t state)
{
	switch_out(scenario, 0, tid, state, -1);
}

void out_preempted(Scenario *scenario, uint32_t tid)
{
	switch_out(scenario, SWITCH_PREEMPT, tid, 0, -1);
}

void out_call(Scenario *scenario, uint32_t tid, uint16_t state, int syscall)
{
	switch_out(scenario, 0, tid, state, syscall);
}

void tick(Scenario *scenario, uint32_t tid, uint16_t cpu)
{
	struct rec_sample record = {
		.h = header(scenario, sizeof(record), REC_SAMPLE, SAMPLE_USER),
		.tid = tid,
		.ustack = 77,
	};

	record.h.cpu = cpu;
	emit(scenario, &record.h);
}

void exiting(Scenario *scenario, uint32_t tid, uint32_t tgid, uint32_t code, uint8_t flags)
{
	struct rec_exit record = {
		.h = header(scenario, sizeof(record), REC_EXIT, flags),
		.tid = tid,
		.tgid = tgid,
		.exit_code = code,
		.parts = EXIT_HAS_STARTS,
	};

	emit(scenario, &record.h);
}

void dead(Scenario *scenario, uint32_t tid)
{
	switch_out(scenario, 0, tid, 0x80, -1);
}

void ends(Scenario *scenario, uint32_t tid, uint32_t tgid, int born_ms, uint64_t runtime)
{
	struct rec_exit record = {
		.h = header(scenario, sizeof(record), REC_EXIT, EXIT_GROUP_DEAD),
		.tid = tid,
		.tgid = tgid,
		.parts = EXIT_HAS_STARTS,
		.start_boottime = scenario_ns(born_ms),
		.process_start_boottime = scenario_ns(born_ms),
	};

	emit(scenario, &record.h);
	dead(scenario, tid);
	stats(scenario, tid, runtime);
}

void exec_as(Scenario *scenario, uint32_t old_tid, uint32_t tid, uint32_t tgid)
{
	struct rec_exec record = {
		.h = header(scenario, sizeof(record), REC_EXEC, 0),
		.tid = tid,
		.old_tid = old_tid,
		.tgid = tgid,
		.comm = "new",
		.path = "/bin/new",
	};

	if (tid != old_tid)
		*seq_of(scenario, tid) = *seq_of(scenario, old_tid);
	emit(scenario, &record.h);
}

void stats_ahead(Scenario *scenario, uint32_t tid, uint64_t runtime, int64_t clock_ahead)
{
	struct rec_stats record = {
		.h = header(scenario, sizeof(record), REC_STATS, 0),
		.tid = tid,
		.parts = STATS_HAS_BYTES,
		.sum_exec_runtime = runtime,
		.run_delay = UINT64_MAX,
		.nvcsw = runtime / 2,
		.clock_ahead = clock_ahead,
	};

	if (clock_ahead != SCENARIO_CLOCK_UNKNOWN)
		record.parts |= STATS_HAS_CLOCK;
	emit(scenario, &record.h);
}

void stats(Scenario *scenario, uint32_t tid, uint64_t runtime)
{
	stats_ahead(scenario, tid, runtime, SCENARIO_CLOCK_UNKNOWN);
}

void snapshot(Scenario *scenario, uint32_t tid, uint8_t flags, uint16_t state, int syscall)
{
	struct rec_snapshot record = {
		.h = header(scenario, sizeof(record), REC_SNAPSHOT, flags),
		.tid = tid,
		.seq = *seq_of(scenario, tid),
		.state = state,
		.ns_after = scenario_ns(scenario->ms) + NSEC_PER_MSEC / 4,
		.ustack = scenario->snapshot_ustack,
		.task_cpu = scenario->snapshot_cpu,
		.syscall = syscall,
		.fd_count = 2,
		.parts = SNAPSHOT_HAS_OBJECT | SNAPSHOT_HAS_OWNER,
	};

	scenario->snapshot_ustack = 0;
	emit(scenario, &record.h);
}

void read_completes(Scenario *scenario, uint32_t tid, int submitted, uint16_t cpu)
{
	struct rec_request record = {
		.h = header(scenario, sizeof(record), REC_REQUEST,
			    REQUEST_SUBMITTED | REQUEST_TARGET),
		.device = SCENARIO_DEVICE,
		.bytes = 4096,
		.tid = tid,
		.submit_ns = scenario_ns(submitted),
		.issue_ns = scenario_ns(submitted) + 1000,
		.inode = 5,
		.file_device = SCENARIO_DEVICE | 1,
		.offset = 8192,
		.issues = 1,
	};

	record.h.cpu = cpu;
	emit(scenario, &record.h);
}

void loss(Scenario *scenario, uint32_t kind, int from_ms, int to_ms)
{
	struct rec_loss record = {
		.h = header(scenario, sizeof(record), REC_LOSS, 0),
		.lost_kind = kind,
		.count = 1,
		.from_ns = scenario_ns(from_ms),
		.to_ns = scenario_ns(to_ms),
	};

	emit(scenario, &record.h);
}

void scenario_window_end(Scenario *scenario)
{
	struct rec_window record = {
		.h = {sizeof(record), REC_WINDOW, WINDOW_END, 0, scenario_ns(scenario->length)},
	};

	timeline_builder_add(scenario->builder, &record.h);
}

void scenario_finish(Scenario *scenario)
{
	struct rec_end end = {.h = {sizeof(end), REC_END, 0, 0, scenario_ns(scenario->length)}};

	scenario_window_end(scenario);
	timeline_builder_add(scenario->builder, &end.h);
	scenario->timeline = timeline_builder_finish(scenario->builder);
	cpu_users_index(scenario->timeline);
	for (size_t i = 0; i < scenario->timeline->threads.count; i++)
		check_thread(scenario->timeline, &scenario->timeline->threads.items[i]);
}

void scenario_free(Scenario *scenario)
{
	timeline_free(scenario->timeline);
}

const Thread *scenario_thread(const Scenario *scenario, uint32_t tid, int nth)
{
	for (size_t i = 0; i < scenario->timeline->threads.count; i++) {
		const Thread *thread = &scenario->timeline->threads.items[i];

		if (thread->tid == tid && nth-- == 0)
			return thread;
	}
	return NULL;
}

static char state_at(const Thread *thread, uint64_t ns)
{
	static const char letters[STATE_COUNT] = {'?', 'R', 'r', 'B'};

	for (size_t i = 0; i < thread->intervals.count; i++)
		if (thread->intervals.items[i].start_ns <= ns && ns < interval_end(thread, i))
			return letters[thread->intervals.items[i].state];
	return '.';
}

void track_draw(const Scenario *scenario, const Thread *thread, char *drawn)
{
	for (int ms = 0; ms < scenario->length; ms++)
		drawn[ms] = state_at(thread, scenario_ns(ms) + NSEC_PER_MSEC / 2);
	drawn[scenario->length] = 0;
}

int track_difference(const char *expected, const char *actual)
{
	for (int i = 0; expected[i] || actual[i]; i++)
		if (expected[i] != actual[i])
			return i;
	return -1;
}

void expect_track_of(const Scenario *scenario, uint32_t tid, int nth, const char *expected)
{
	const Thread *thread = scenario_thread(scenario, tid, nth);
	char drawn[SCENARIO_LENGTH + 1];
	int column;

	if (!thread)
		fail_msg("thread %u (%d): not there", tid, nth);
	track_draw(scenario, thread, drawn);
	column = track_difference(expected, drawn);
	if (column >= 0)
		fail_msg("thread %u (%d), column %d:\nexpected %s\nis       %s", tid, nth, column,
			 expected, drawn);
}

void expect_track(const Scenario *scenario, uint32_t tid, const char *expected)
{
	expect_track_of(scenario, tid, 0, expected);
	assert_null(scenario_thread(scenario, tid, 1));
}

static void check_interval(const Timeline *timeline, const Thread *thread, size_t i)
{
	const Interval *interval = &thread->intervals.items[i];
	uint8_t public_flags = INTERVAL_OPEN_START | INTERVAL_OPEN_END | INTERVAL_WAKER_IRQ;

	if (interval->state == STATE_RUNNABLE)
		public_flags |= INTERVAL_MIGRATED;

	assert_true(interval->start_ns < interval_end(thread, i));
	assert_uint_in_range(interval->state, 0, STATE_COUNT - 1);
	assert_uint_in_range(interval->reason, 0, REASON_COUNT - 1);
	assert_int_equal(interval->flags & ~public_flags, 0);
	if (interval->waker != THREAD_NONE)
		assert_uint_in_range(interval->waker, 0, timeline->tasks.count - 1);
	if (interval->user_stack != STACK_NONE)
		assert_uint_in_range(interval->user_stack, 0, timeline->stacks.count - 1);
	assert_int_equal(interval->state == STATE_RUNNING, interval->reason == REASON_NONE);
	if (i && interval->state == STATE_UNKNOWN)
		assert_int_not_equal(interval[-1].state, STATE_UNKNOWN);
}

void check_thread(const Timeline *timeline, const Thread *thread)
{
	uint64_t ledger[STATE_COUNT] = {}, reasons = 0, sum = 0;

	assert_true(thread->intervals.count > 0);
	assert_true(thread->start_ns >= timeline->start_ns);
	assert_true(thread->end_ns <= timeline->end_ns);
	assert_int_equal(thread->intervals.items[0].start_ns, thread->start_ns);
	for (size_t i = 0; i < thread->intervals.count; i++) {
		check_interval(timeline, thread, i);
		ledger[thread->intervals.items[i].state] +=
			interval_end(thread, i) - thread->intervals.items[i].start_ns;
	}
	for (int state = 0; state < STATE_COUNT; state++) {
		assert_int_equal(ledger[state], thread->ledger[state]);
		sum += thread->ledger[state];
	}
	for (int reason = 0; reason < REASON_COUNT; reason++)
		reasons += thread->reason_ledger[reason];
	assert_int_equal(sum, thread->end_ns - thread->start_ns);
	assert_int_equal(reasons, ledger[STATE_RUNNABLE] + ledger[STATE_BLOCKED]);
	assert_non_null(thread->name);
	assert_uint_in_range(thread->process, 0, timeline->processes.count - 1);
}

void others_switch(Scenario *scenario, uint32_t prev, uint32_t next, uint16_t cpu, int complete_ms)
{
	struct rec_switch record = {
		.h = header(scenario, SWITCH_SHORT_LEN, REC_SWITCH, 0),
		.prev_tid = prev,
		.next_tid = next,
		.syscall = -1,
		.complete_for = SWITCH_UNITS(complete_ms * NSEC_PER_MSEC),
	};

	record.h.cpu = cpu;
	emit(scenario, &record.h);
}

void meta(Scenario *scenario, const char *text)
{
	size_t length = (sizeof(struct rec_meta) + strlen(text) + 1 + 7) & ~7UL;
	_cleanup_free_ struct rec_meta *record = xcalloc(1, length);

	record->h = (struct record){.len = length, .kind = REC_META};
	strcpy(record->text, text);
	timeline_builder_add(scenario->builder, &record->h);
}
