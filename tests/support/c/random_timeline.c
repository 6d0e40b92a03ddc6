/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "random_timeline.h"

uint64_t random_number(uint64_t limit)
{
	return (((uint64_t)random() << 31) ^ random()) % limit;
}

/* From nanoseconds to most of a second, all sizes alike. */
static uint64_t random_duration(void)
{
	return random_number(1ULL << (1 + random_number(29))) + 1;
}

static void fill_thread(Timeline *t, uint32_t thread, uint64_t start, uint64_t end,
			uint64_t tick_ns, uint64_t scale)
{
	static const enum reason waits[] = {REASON_MUTEX, REASON_DISK_READ, REASON_SLEEP,
					    REASON_NETWORK_RECEIVE, REASON_IDLE_POLL};
	uint64_t next_tick = start + (tick_ns ? random_number(tick_ns) : 0);
	enum thread_state state = STATE_RUNNABLE;

	for (uint64_t ns = start; ns < end;) {
		uint64_t next = MIN(ns + random_duration() / scale + 1, end);
		Interval *interval =
			fixture_interval(t, thread, ns, state,
					 state == STATE_BLOCKED	   ? waits[random_number(5)]
					 : state == STATE_RUNNABLE ? REASON_WOKEN
					 : state == STATE_UNKNOWN  ? REASON_LOST
								   : REASON_NONE);
		if (state != STATE_UNKNOWN && random_number(2))
			interval->user_stack = random_number(t->stacks.count);
		for (; tick_ns && next_tick < next; next_tick += tick_ns) {
			if (state != STATE_RUNNING || next_tick < ns)
				continue;
			Tick *tick = fixture_tick(t, thread, next_tick, random_number(2));
			tick->user_stack = random_number(t->stacks.count);
		}
		state = state == STATE_RUNNING ? (random_number(9) ? STATE_BLOCKED : STATE_UNKNOWN)
			: state == STATE_RUNNABLE ? STATE_RUNNING
						  : STATE_RUNNABLE;
		ns = next;
	}
}

Timeline *random_timeline(unsigned int seed, uint64_t window, uint64_t scale)
{
	Timeline *t = fixture_new(window);
	uint32_t process;

	srandom(seed);
	for (size_t i = 0; i < 20; i++)
		fixture_stack(t, 0x400000 + 16 * i, true);
	process = fixture_process(t, 100, "app", 0, window);
	for (size_t i = 0; i < 6; i++) {
		uint64_t start = i == 0 ? 0 : random_number(window / 2);
		uint64_t end = i < 2 ? window : start + 1 + random_number(window - start);
		uint32_t thread = fixture_thread(t, process, 100 + i, "worker", start, end);

		fill_thread(t, thread, start, end, i % 3 == 2 ? 0 : NSEC_PER_MSEC, scale);
	}
	fixture_finish(t);
	return t;
}
