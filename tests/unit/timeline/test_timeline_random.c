/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that do anything that a kernel allows, whose records get lost at random,
 * as losses report: whatever the timeline claims to know must be true.
 */
#include "critical_path.h"
#include "make_record.h"
#include "scenario.h"
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h wants the above. */
#include <cmocka.h>

#define WINDOW_NS  (50 * NSEC_PER_MSEC)
#define ORIGIN_NS  ((uint64_t)(1000 * NSEC_PER_SEC))
#define END_NS	   (ORIGIN_NS + WINDOW_NS)
#define THREADS	   6
#define ROUNDS	   600
#define BURSTS_MAX 6

struct truth {
	uint64_t ns;
	int state; /* enum thread_state, or -1: no more */
};

struct event {
	union {
		struct record h;
		struct rec_switch sw;
		struct rec_waking waking;
		struct rec_task task;
		struct rec_exit exit;
		struct rec_snapshot snapshot;
		struct rec_loss loss;
	};
	size_t order;
	bool dropped;
};

typedef VEC(struct truth) Truths;

struct world {
	uint64_t random;
	VEC(struct event) events;
	Truths truths[THREADS];
	uint64_t births[THREADS];
};

/* One thread on its way. */
struct walk {
	struct world *world;
	Truths *truths;
	uint32_t tid;
	uint16_t seq;
	uint64_t ns;
};

static uint64_t random_below(struct world *world, uint64_t limit)
{
	world->random = hash_mix(world->random, 0x1234567);
	return world->random % limit;
}

static bool chance(struct world *world, unsigned percent)
{
	return random_below(world, 100) < percent;
}

static struct event *emit(struct world *world, uint8_t kind, uint32_t len, uint64_t ns)
{
	struct event *event = vec_push(&world->events);

	memset(event, 0, sizeof(*event));
	event->h = (struct record){.len = len, .kind = kind, .ns = ns};
	fill_parts(&event->h);
	event->order = world->events.count;
	return event;
}

static void becomes(struct walk *walk, int state)
{
	*vec_push(walk->truths) = (struct truth){walk->ns, state};
}

static void pass(struct walk *walk)
{
	walk->ns += 1 + random_below(walk->world, 2 * NSEC_PER_MSEC);
}

static void woken(struct walk *walk, uint64_t ns, uint8_t flags)
{
	struct event *event = emit(walk->world, REC_WAKING, sizeof(event->waking), ns);

	/* Woken by a timer, by a non-target, or by a target. */
	if (!flags && chance(walk->world, 30))
		flags = WAKING_HARDIRQ;
	event->h.flags = flags;
	event->waking.tid = walk->tid;
	event->waking.waker_tid =
		chance(walk->world, 20) ? 1 : 100 + random_below(walk->world, THREADS);
}

static void switched_in(struct walk *walk)
{
	struct event *event = emit(walk->world, REC_SWITCH, SWITCH_SHORT_LEN, walk->ns);

	event->h.flags = SWITCH_NEXT;
	event->sw.next_tid = walk->tid;
	event->sw.next_seq = walk->seq;
	becomes(walk, STATE_RUNNING);
}

static void switched_out(struct walk *walk, uint16_t task_state, int state)
{
	struct event *event = emit(walk->world, REC_SWITCH, sizeof(event->sw), walk->ns);

	event->h.flags = SWITCH_PREV;
	event->sw.prev_tid = walk->tid;
	event->sw.prev_seq = ++walk->seq;
	event->sw.prev_state = task_state;
	event->sw.syscall = -1;
	becomes(walk, state);
}

static void waits(struct walk *walk, uint64_t running_since)
{
	bool early = chance(walk->world, 25);

	if (early)
		woken(walk, running_since + random_below(walk->world, walk->ns - running_since), 0);
	if (early && chance(walk->world, 50)) {
		switched_out(walk, 1, STATE_RUNNABLE);
		return;
	}
	switched_out(walk, 1, STATE_BLOCKED);
	pass(walk);
	/* A pending signal ends a wait without a waking; an earlier one would be a lie. */
	if (!early && chance(walk->world, 5))
		return;
	woken(walk, walk->ns, 0);
	becomes(walk, STATE_RUNNABLE);
}

static void dies(struct walk *walk)
{
	struct event *event = emit(walk->world, REC_EXIT, sizeof(event->exit), walk->ns);

	event->exit.tid = walk->tid;
	event->exit.tgid = 100;
	pass(walk);
	switched_out(walk, 0x80, -1);
}

static void describe(struct walk *walk, uint8_t flags)
{
	struct event *event = emit(walk->world, REC_TASK, sizeof(event->task), walk->ns);

	event->h.flags = flags;
	event->task.tid = event->task.ns_tid = walk->tid;
	event->task.tgid = event->task.ns_tgid = 100;
	event->task.start_boottime = walk->tid;
}

static void snapshotted(struct walk *walk, uint64_t ns, uint8_t flags)
{
	struct event *event = emit(walk->world, REC_SNAPSHOT, sizeof(event->snapshot), ns);
	int state = walk->truths->items[walk->truths->count - 1].state;

	event->h.flags = flags;
	event->h.flags |= state == STATE_RUNNING    ? SNAPSHOT_ON_CPU
			  : state == STATE_RUNNABLE ? SNAPSHOT_QUEUED
						    : 0;
	event->snapshot.tid = walk->tid;
	event->snapshot.seq = walk->seq;
	event->snapshot.state = state == STATE_BLOCKED ? 1 : 0;
	event->snapshot.syscall = -1;
	event->snapshot.ns_after = ns + 1;
}

static void begins(struct walk *walk, bool born)
{
	struct world *world = walk->world;

	if (born) {
		walk->ns = ORIGIN_NS + random_below(world, WINDOW_NS / 2);
		becomes(walk, STATE_RUNNABLE);
		describe(walk, TASK_BIRTH);
		pass(walk);
		woken(walk, walk->ns, WAKING_NEW);
		return;
	}
	walk->ns = ORIGIN_NS - 1 - random_below(world, 1000);
	walk->seq = random_below(world, 65536);
	becomes(walk, 1 + random_below(world, 3));
	describe(walk, 0);
	snapshotted(walk, walk->ns, 0);
	if (walk->truths->items[0].state == STATE_BLOCKED) {
		pass(walk);
		woken(walk, walk->ns, 0);
		becomes(walk, STATE_RUNNABLE);
	}
}

/* Goes on until the thread exits or its next event is past the window. */
static void walk_lifetimes(struct walk *walk)
{
	struct world *world = walk->world;
	uint64_t since;
	bool running = walk->truths->items[walk->truths->count - 1].state == STATE_RUNNING;

	while (walk->ns < END_NS) {
		if (!running) {
			pass(walk);
			switched_in(walk);
		}
		running = false;
		since = walk->ns;
		pass(walk);
		if (chance(world, 2)) {
			dies(walk);
			return;
		}
		if (!chance(world, 30)) {
			waits(walk, since);
			continue;
		}
		switched_out(walk, 0, STATE_RUNNABLE);
		if (chance(world, 10)) {
			/* It was preempted on its way to sleep, and won't sleep now. */
			pass(walk);
			woken(walk, walk->ns, 0);
		}
	}
}

/* What a thread does after the window is neither recorded nor true. */
static void cut_at_end(struct walk *walk, size_t first_event)
{
	struct world *world = walk->world;
	size_t kept = first_event;
	bool dead;

	for (size_t i = first_event; i < world->events.count; i++) {
		const struct event event = world->events.items[i];

		if (event.h.ns < END_NS)
			world->events.items[kept++] = event;
	}
	world->events.count = kept;
	while (walk->truths->items[walk->truths->count - 1].ns >= END_NS)
		walk->truths->count--;
	dead = walk->truths->items[walk->truths->count - 1].state < 0;
	/* The state at the last switch within the window. */
	for (size_t i = first_event; i < kept; i++) {
		const struct event *event = &world->events.items[i];

		if (event->h.kind == REC_SWITCH)
			walk->seq = event->h.flags & SWITCH_PREV ? event->sw.prev_seq
								 : event->sw.next_seq;
		else if (event->h.kind == REC_SNAPSHOT)
			walk->seq = event->snapshot.seq;
		else if (event->h.flags & TASK_BIRTH && event->h.kind == REC_TASK)
			walk->seq = 0;
	}
	if (!dead)
		snapshotted(walk, END_NS, SNAPSHOT_END);
}

static int by_time(const void *a, const void *b)
{
	const struct event *left = a, *right = b;

	if (left->h.ns != right->h.ns)
		return left->h.ns < right->h.ns ? -1 : 1;
	return left->order < right->order ? -1 : 1;
}

/* Drops records of one kind in some stretch; reports it later. */
static void burst(struct world *world)
{
	static const uint8_t kinds[] = {REC_SWITCH, REC_WAKING, REC_SWITCH,  REC_WAKING,
					REC_TASK,   REC_EXIT,	REC_SNAPSHOT};
	uint64_t from = ORIGIN_NS - NSEC_PER_MSEC + random_below(world, WINDOW_NS + 2000000);
	uint64_t to = from + random_below(world, 10 * NSEC_PER_MSEC), count = 0;
	uint64_t first = 0, last = 0;
	uint8_t kind = kinds[random_below(world, ARRAY_LEN(kinds))];
	unsigned percent = 20 + random_below(world, 81);
	struct event *event;

	for (size_t i = 0; i < world->events.count; i++) {
		event = &world->events.items[i];
		if (event->h.kind != kind || event->h.ns < from || event->h.ns > to ||
		    event->dropped || !chance(world, percent))
			continue;
		event->dropped = true;
		first = count++ ? first : event->h.ns;
		last = event->h.ns;
	}
	if (!count)
		return;
	event = emit(world, REC_LOSS, sizeof(event->loss),
		     last + random_below(world, 5 * NSEC_PER_MSEC));
	event->loss.lost_kind = kind;
	event->loss.count = count;
	event->loss.from_ns = first;
	event->loss.to_ns = last;
}

static void make_world(struct world *world, uint64_t seed, bool lossy)
{
	*world = (struct world){.random = seed};
	for (uint32_t i = 0; i < THREADS; i++) {
		struct walk walk = {world, &world->truths[i], 100 + i, 0, 0};
		size_t first_event = world->events.count;
		bool born = i && chance(world, 50);

		begins(&walk, born);
		walk_lifetimes(&walk);
		cut_at_end(&walk, first_event);
	}
	qsort(world->events.items, world->events.count, sizeof(struct event), by_time);
	for (uint64_t i = lossy ? 1 + random_below(world, BURSTS_MAX) : 0; i; i--)
		burst(world);
	qsort(world->events.items, world->events.count, sizeof(struct event), by_time);
}

static Timeline *make_timeline(const struct world *world)
{
	TimelineBuilder *builder = timeline_builder_new();
	struct rec_window start = {
		.h = {sizeof(start), REC_WINDOW, WINDOW_START | WINDOW_ATTACHED, 0, ORIGIN_NS}};
	struct rec_window end = {.h = {sizeof(end), REC_WINDOW, WINDOW_END, 0, END_NS}};
	bool started = false;

	for (size_t i = 0; i < world->events.count; i++) {
		const struct event *event = &world->events.items[i];

		if (!started && event->h.ns >= ORIGIN_NS) {
			timeline_builder_add(builder, &start.h);
			started = true;
		}
		if (!event->dropped)
			timeline_builder_add(builder, &event->h);
	}
	timeline_builder_add(builder, &end.h);
	return timeline_builder_finish(builder);
}

/* Whether the truth is that state all through [from, to). */
static bool is_true(const Truths *truths, int state, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < truths->count; i++) {
		uint64_t end = i + 1 < truths->count ? truths->items[i + 1].ns : UINT64_MAX;

		if (end > from && truths->items[i].ns < to && truths->items[i].state != state)
			return false;
	}
	return truths->items[0].ns <= from || from == ORIGIN_NS;
}

static void check_truth(const struct world *world, const Timeline *timeline, uint64_t seed,
			uint64_t *watermark_ns, uint64_t *unknown_ns)
{
	bool seen[THREADS] = {};

	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];
		uint32_t number = thread->tid - 100;

		check_thread(timeline, thread);
		assert_uint_in_range(number, 0, THREADS - 1);
		if (seen[number])
			fail_msg("seed %lu: thread %u is there twice", seed, thread->tid);
		seen[number] = true;
		for (size_t j = 0; j < thread->intervals.count; j++) {
			const Interval *interval = &thread->intervals.items[j];
			uint64_t end = interval_end(thread, j);

			if (interval->state != STATE_UNKNOWN &&
			    !is_true(&world->truths[number], interval->state, interval->start_ns,
				     end))
				fail_msg("seed %lu: thread %u was not in state %d from %lu to %lu",
					 seed, thread->tid, interval->state,
					 interval->start_ns - ORIGIN_NS, end - ORIGIN_NS);
			*(interval->state == STATE_UNKNOWN ? unknown_ns : watermark_ns) +=
				end - interval->start_ns;
		}
	}
}

/* Each moment of the path is what its owner's own row has there. */
static void check_path(Timeline *timeline, uint64_t seed)
{
	const Thread *path_track = &timeline->path.track;
	uint32_t end = seed % MAX(timeline->threads.count, 1);
	uint64_t ns = 0;

	if (timeline->threads.count == 0)
		return;
	critical_path_find(timeline, end);
	assert_true(path_track->intervals.count > 0);
	assert_int_equal(path_track->intervals.count, path_track->owners.count);
	assert_int_equal(path_track->intervals.items[0].start_ns, path_track->start_ns);
	assert_int_equal(path_track->end_ns, timeline->threads.items[end].end_ns);
	for (size_t i = 0; i < path_track->intervals.count; i++) {
		const Thread *owner = interval_owner(timeline, path_track, i);
		const Interval *interval = &path_track->intervals.items[i];
		size_t at = partition_point(middle, owner->intervals.count,
					    owner->intervals.items[middle].start_ns <=
						    interval->start_ns) -
			    1;

		assert_true(interval->start_ns < interval_end(path_track, i));
		assert_true(interval->start_ns >= owner->start_ns);
		assert_true(interval_end(path_track, i) <= interval_end(owner, at));
		assert_int_equal(interval->state, owner->intervals.items[at].state);
		ns += interval_end(path_track, i) - interval->start_ns;
	}
	assert_int_equal(ns, path_track->end_ns - path_track->start_ns);
	/* Back to where a thread with an unknown creator was first seen. */
	if (interval_owner(timeline, path_track, 0)->start_ns != path_track->start_ns)
		fail_msg("seed %lu: the path begins within a thread's lifetime", seed);
}

static void free_world(struct world *world)
{
	vec_free(&world->events);
	for (int i = 0; i < THREADS; i++)
		vec_free(&world->truths[i]);
}

static void test_nothing_lost(void **state)
{
	(void)state;

	for (uint64_t seed = 1; seed <= ROUNDS / 4; seed++) {
		uint64_t watermark_ns = 0, unknown_ns = 0, true_ns = 0;
		struct world world;

		make_world(&world, seed, false);

		Timeline *timeline = make_timeline(&world);

		check_truth(&world, timeline, seed, &watermark_ns, &unknown_ns);
		check_path(timeline, seed);
		for (int i = 0; i < THREADS; i++) {
			const Truths *truths = &world.truths[i];
			struct truth last = truths->items[truths->count - 1];

			true_ns += (last.state < 0 ? last.ns : END_NS) -
				   MAX(truths->items[0].ns, ORIGIN_NS);
		}
		assert_int_equal(timeline->missed_switches, 0);
		assert_int_equal(unknown_ns, 0);
		assert_int_equal(watermark_ns, true_ns);
		timeline_free(timeline);
		free_world(&world);
	}
}

static void test_losses(void **state)
{
	(void)state;
	uint64_t watermark_ns = 0, unknown_ns = 0;

	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct world world;

		make_world(&world, seed, true);

		Timeline *timeline = make_timeline(&world);

		check_truth(&world, timeline, seed, &watermark_ns, &unknown_ns);
		check_path(timeline, seed);
		if (timeline->missed_switches)
			fail_msg("seed %lu: contradictions", seed);
		timeline_free(timeline);
		free_world(&world);
	}
	/* Not by claiming to know nothing. */
	assert_true(watermark_ns > 2 * unknown_ns);
	assert_true(unknown_ns > 0);
}

/* Records that no kernel would send, in no order: the chains are unbroken all the same. */
static void any_record(struct world *world, TimelineBuilder *builder)
{
	static const uint8_t kinds[] = {REC_SWITCH, REC_SWITCH, REC_WAKING, REC_TASK,
					REC_EXEC,   REC_EXIT,	REC_STATS,  REC_SNAPSHOT,
					REC_SAMPLE, REC_STACK,	REC_LOSS,   REC_WINDOW};
	uint64_t words[32];
	struct record *record = (struct record *)words;

	/* Small numbers, so that they meet. */
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		words[i] = random_below(world, 4) | random_below(world, 4) << 16 |
			   random_below(world, 4) << 32 | random_below(world, 4) << 48;
	*record = (struct record){
		.len = chance(world, 10) ? SWITCH_SHORT_LEN : sizeof(words),
		.kind = kinds[random_below(world, ARRAY_LEN(kinds))],
		.flags = random_below(world, 256),
		.ns = chance(world, 2) ? words[5] : 1000 + random_below(world, 1000),
	};
	if (record->kind == REC_WINDOW && chance(world, 90))
		return;
	if (record->kind == REC_STACK)
		record->len = sizeof(struct rec_stack) + 8;
	/* The reader has checked that a record has each part that its mask names. */
	fill_parts(record);
	if (record->kind == REC_SWITCH && record->len < SWITCH_OUT_LEN)
		record->flags &= ~SWITCH_PREV;
	timeline_builder_add(builder, record);
}

static void test_any_records(void **state)
{
	(void)state;

	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct world world = {.random = seed};
		TimelineBuilder *builder = timeline_builder_new();
		Timeline *timeline;

		for (uint64_t i = random_below(&world, 300); i; i--)
			any_record(&world, builder);
		timeline = timeline_builder_finish(builder);
		for (size_t i = 0; i < timeline->threads.count; i++)
			check_thread(timeline, &timeline->threads.items[i]);
		timeline_free(timeline);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_nothing_lost),
	cmocka_unit_test(test_losses),
	cmocka_unit_test(test_any_records),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
