/* SPDX-License-Identifier: GPL-2.0-or-later */
/* timeline_fixture.h - makes timelines by hand, for tests of what is written from them. */
#ifndef WALLPROF_TEST_TIMELINE_FIXTURE_H
#define WALLPROF_TEST_TIMELINE_FIXTURE_H

#include "timeline.h"

#define FIXTURE_START 5000000123456ULL

/* The window begins at FIXTURE_START. */
Timeline *fixture_new(uint64_t window_ns);
void fixture_meta(Timeline *t, const char *key, const char *value);
uint32_t fixture_process(Timeline *t, uint32_t pid, const char *name, uint64_t start, uint64_t end);

/* The thread exists from start to end (ns in the window), and has no interval yet. */
uint32_t fixture_thread(Timeline *t, uint32_t process, uint32_t tid, const char *name,
			uint64_t start, uint64_t end);

/* The interval begins at start and has no stacks. */
Interval *fixture_interval(Timeline *t, uint32_t thread, uint64_t start, enum thread_state state,
			   enum reason reason);
Tick *fixture_tick(Timeline *t, uint32_t thread, uint64_t ns, bool user_mode);

/* The thread, or the process of one thread, is in one state from its birth to its exit. */
void fixture_simple_thread(Timeline *t, uint32_t process, uint32_t tid, const char *name,
			   enum thread_state state, enum reason reason);
void fixture_running_process(Timeline *t, uint32_t pid, const char *name, uint64_t start,
			     uint64_t end);

/* The stack has one frame, whose address is its id. Returns its index. */
uint32_t fixture_stack(Timeline *t, uint64_t address, bool user);

/* Sums up the ledgers, when all intervals are there. */
void fixture_finish(Timeline *t);

#endif
