/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Page faults as spans over a thread's chain: which waits lie in one, and which stack it has. */
#include "timeline_builder_private.h"

void faults_add(TimelineBuilder *builder, const struct rec_fault *record)
{
	BuildThread *target = tasks_target(builder, record->tid, record->h.ns);

	*vec_push(&target->thread.faults) = (Fault){
		.start_ns = MIN(record->start_ns, record->h.ns),
		.end_ns = record->h.ns,
		.address = record->address,
		.offset = record->offset,
		.file = objects_reference(&builder->timeline->objects, OBJECT_FILE, record->device,
					  record->inode, record->generation),
		.wait = WAIT_NONE,
		.user_stack = scripts_stack(builder, stack_reference(builder, record->ustack),
					    record->tid, record->h.ns),
		.flags = record->h.flags,
		.memory = record->memory < MEMORY_COUNT ? record->memory : MEMORY_UNKNOWN,
		.page = record->page < PAGE_COUNT ? record->page : PAGE_UNKNOWN,
		.hook = record->hook,
	};
}

/* The record of a fault's end takes precedence over the one of its sleep. */
static int compare_faults(const void *a, const void *b)
{
	const Fault *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->hook == FAULT_HOOK_SLEEP) - (y->hook == FAULT_HOOK_SLEEP);
}

/* Returns the interval at ns; a thread has at least one. */
static size_t interval_at(const Thread *thread, uint64_t ns)
{
	size_t next = partition_point(middle, thread->intervals.count,
				      thread->intervals.items[middle].start_ns <= ns);

	return MAX(next, 1u) - 1;
}

/*
 * A fault whose sleep, but not whose end was recorded lasted at least until the thread ran again,
 * or until its next fault.
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
	/* When the previous fault began, even if before the window. */
	uint64_t before_ns = UINT64_MAX;
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
		/*
		 * A thread has one fault at a time: if two overlap, the end of the first was not
		 * recorded.
		 */
		if (kept && thread->faults.items[kept - 1].end_ns > fault->start_ns)
			thread->faults.items[kept - 1].end_ns = fault->start_ns;
		thread->faults.items[kept++] = *fault;
	}
	thread->faults.count = kept;
}

/*
 * In a fault a thread also waits for locks (of the mappings) or for memory; only a wait with I/O
 * wait set is for a disk.
 */
static bool is_io(const Interval *wait)
{
	enum category category = reason_info[wait->reason].category;

	return wait->sleep == SLEEP_FOR_DISK || category == CATEGORY_DISK ||
	       category == CATEGORY_FAULT;
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
