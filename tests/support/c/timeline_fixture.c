/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timeline_fixture.h"
#include <string.h>

Timeline *fixture_new(uint64_t window_ns)
{
	Timeline *t = xcalloc(1, sizeof(*t));

	t->start_ns = FIXTURE_START;
	t->end_ns = FIXTURE_START + window_ns;
	t->realtime_start_ns = 1795176000123456789ULL;
	t->complete = true;
	t->command_thread = THREAD_NONE;
	return t;
}

void fixture_meta(Timeline *t, const char *key, const char *value)
{
	strings_intern(&t->meta_keys, key);
	*vec_push(&t->meta_values) = xstrdup(value);
}

uint32_t fixture_process(Timeline *t, uint32_t pid, const char *name, uint64_t start, uint64_t end)
{
	*vec_push(&t->processes) = (Process){
		.tgid = pid + 100000,
		.ns_tgid = pid,
		.parent = THREAD_NONE,
		.name = xstrdup(name),
		.label = xstrdup(name),
		.start_ns = FIXTURE_START + start,
		.end_ns = FIXTURE_START + end,
		.exited_in_window = FIXTURE_START + end < t->end_ns,
	};
	return t->processes.count - 1;
}

uint32_t fixture_thread(Timeline *t, uint32_t process, uint32_t tid, const char *name,
			uint64_t start, uint64_t end)
{
	Process *p = &t->processes.items[process];
	uint32_t number = t->threads.count;
	Task task = {.tid = tid + 100000, .ns_tid = tid, .ns_tgid = p->ns_tgid, .thread = number};

	strncpy(task.comm, name, sizeof(task.comm) - 1);
	*vec_push(&t->tasks) = task;
	*vec_push(&t->threads) = (Thread){
		.tid = tid + 100000,
		.ns_tid = tid,
		.process = process,
		.task = t->tasks.count - 1,
		.creator = THREAD_NONE,
		.name = xstrdup(name),
		.start_ns = FIXTURE_START + start,
		.end_ns = FIXTURE_START + end,
		.exited_in_window = FIXTURE_START + end < t->end_ns,
		.is_main = tid == p->ns_tgid,
	};
	*vec_push(&p->threads) = number;
	return number;
}

Interval *fixture_interval(Timeline *t, uint32_t thread, uint64_t start, enum thread_state state,
			   enum reason reason)
{
	Interval *interval = vec_push(&t->threads.items[thread].intervals);

	*interval = (Interval){
		.start_ns = FIXTURE_START + start,
		.user_stack = STACK_NONE,
		.kernel_stack = STACK_NONE,
		.waker = THREAD_NONE,
		.cpu_user = THREAD_NONE,
		.syscall = -1,
		.state = state,
		.reason = reason,
	};
	return interval;
}

Tick *fixture_tick(Timeline *t, uint32_t thread, uint64_t ns, bool user_mode)
{
	Tick *tick = vec_push(&t->threads.items[thread].ticks);

	*tick = (Tick){.ns = FIXTURE_START + ns,
		       .user_stack = STACK_NONE,
		       .kernel_stack = STACK_NONE,
		       .user_mode = user_mode};
	return tick;
}

void fixture_simple_thread(Timeline *t, uint32_t process, uint32_t tid, const char *name,
			   enum thread_state state, enum reason reason)
{
	uint64_t end = t->end_ns - t->start_ns;
	uint32_t thread = fixture_thread(t, process, tid, name, 0, end);

	fixture_interval(t, thread, 0, state, reason);
}

void fixture_running_process(Timeline *t, uint32_t pid, const char *name, uint64_t start,
			     uint64_t end)
{
	uint32_t thread =
		fixture_thread(t, fixture_process(t, pid, name, start, end), pid, name, start, end);

	fixture_interval(t, thread, start, STATE_RUNNING, REASON_NONE);
}

uint32_t fixture_stack(Timeline *t, uint64_t address, bool user)
{
	*vec_push(&t->stacks) = (StackDef){
		.id = address,
		.first = t->frames.count,
		.count = 1,
		.flags = user ? STACK_USER : 0,
		.defined = true,
	};
	*vec_push(&t->frames) = address;
	return t->stacks.count - 1;
}

void fixture_finish(Timeline *t)
{
	for (size_t i = 0; i < t->threads.count; i++) {
		Thread *thread = &t->threads.items[i];

		for (size_t k = 0; k < thread->intervals.count; k++) {
			const Interval *interval = &thread->intervals.items[k];
			uint64_t ns = interval_end(thread, k) - interval->start_ns;

			thread->ledger[interval->state] += ns;
			if (interval->state == STATE_BLOCKED || interval->state == STATE_RUNNABLE)
				thread->reason_ledger[interval->reason] += ns;
		}
	}
}
