/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page faults as spans over a thread's chain: which waits lie in one, and what stack it has.
 */
#include "timeline_builder.h"

void faults_add(TimelineBuilder *builder, const struct rec_fault *record)
{
	BuildThread *life = tasks_target(builder, record->tid, record->h.ns);

	*vec_push(&life->thread.faults) = (Fault){
		.start_ns = MIN(record->start_ns, record->h.ns),
		.end_ns = record->h.ns,
		.address = record->address,
		.offset = record->offset,
		.file = objects_reference(&builder->timeline->objects, OBJECT_FILE, record->device,
					  record->inode, record->generation),
		.wait = WAIT_NONE,
		.user_stack = stack_reference(builder, record->ustack),
		.flags = record->h.flags,
		.memory = record->memory < MEMORY_COUNT ? record->memory : MEMORY_UNKNOWN,
		.page = record->page < PAGE_COUNT ? record->page : PAGE_UNKNOWN,
		.hook = record->hook,
	};
}

/* Of one fault what was told at its end comes before what was told when it slept. */
static int compare_faults(const void *a, const void *b)
{
	const Fault *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->hook == FAULT_HOOK_SLEEP) - (y->hook == FAULT_HOOK_SLEEP);
}

/* The interval that ns lies in; a thread has one at least. */
static size_t interval_at(const Thread *thread, uint64_t ns)
{
	size_t next = partition_point(middle, thread->intervals.count,
				      thread->intervals.items[middle].start_ns <= ns);

	return MAX(next, 1u) - 1;
}

/*
 * One that slept, and whose end was not told, went on when the thread ran again, if not in another
 * fault by then. That is at least as long as it took.
 */
static void end_sleep(const Thread *thread, Fault *fault, uint64_t next_ns)
{
	size_t i = interval_at(thread, fault->end_ns);

	while (i < thread->intervals.count && fault->end_ns < next_ns &&
	       (thread->intervals.items[i].state == STATE_BLOCKED ||
		thread->intervals.items[i].state == STATE_RUNNABLE)) {
		fault->end_ns = interval_end(thread, i);
		i++;
	}
}

static void drop_duplicates(Thread *thread)
{
	uint64_t before_ns = UINT64_MAX; /* when the one before began, be it before the window */
	size_t kept = 0;

	for (size_t i = 0; i < thread->faults.count; i++) {
		Fault *fault = &thread->faults.items[i];

		if (fault->start_ns == before_ns)
			continue;
		before_ns = fault->start_ns;
		if (fault->hook == FAULT_HOOK_SLEEP)
			end_sleep(thread, fault,
				  i + 1 < thread->faults.count ? fault[1].start_ns : UINT64_MAX);
		if (fault->end_ns <= thread->start_ns || fault->start_ns >= thread->end_ns)
			continue;
		fault->start_ns = MAX(fault->start_ns, thread->start_ns);
		fault->end_ns = MIN(fault->end_ns, thread->end_ns);
		/* A thread is in one at a time: what overlaps was not seen to end. */
		if (kept && thread->faults.items[kept - 1].end_ns > fault->start_ns)
			thread->faults.items[kept - 1].end_ns = fault->start_ns;
		thread->faults.items[kept++] = *fault;
	}
	thread->faults.count = kept;
}

/*
 * It waits for a lock (of the mappings, say), too, or for memory: the wait itself must say that it
 * was for a disk.
 */
static bool is_io(const Interval *wait)
{
	enum category category = reason_info[wait->reason].category;

	return wait->sleep == SLEEP_FOR_DISK || category == CATEGORY_DISK ||
	       category == CATEGORY_FAULT;
}

void thread_explain(Thread *thread, size_t i, enum reason reason, enum reason_rule rule)
{
	Interval *wait = &thread->intervals.items[i];
	uint64_t ns = interval_end(thread, i) - wait->start_ns;

	thread->reason_ledger[wait->reason] -= ns;
	thread->reason_ledger[reason] += ns;
	wait->reason = reason;
	wait->rule = rule;
}

static void explain_waits(Thread *thread, Fault *fault)
{
	for (size_t i = interval_at(thread, fault->start_ns); i < thread->intervals.count; i++) {
		Interval *wait = &thread->intervals.items[i];

		if (wait->start_ns >= fault->end_ns)
			return;
		if (wait->state != STATE_BLOCKED || wait->start_ns < fault->start_ns)
			continue;
		if (fault->wait == WAIT_NONE)
			fault->wait = i;
		if (fault->user_stack == STACK_NONE)
			fault->user_stack = wait->user_stack;
		fault->waited_ns += interval_end(thread, i) - wait->start_ns;
		if (is_io(wait))
			thread_explain(thread, i, REASON_FAULT, RULE_FAULT);
	}
}

void faults_finish(Thread *thread)
{
	if (thread->faults.count == 0)
		return;
	qsort(thread->faults.items, thread->faults.count, sizeof(Fault), compare_faults);
	drop_duplicates(thread);
	for (size_t i = 0; i < thread->faults.count; i++)
		explain_waits(thread, &thread->faults.items[i]);
}
