/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "gil.h"

/* A thread releases the lock. */
typedef struct Handover {
	uint32_t process; /* Timeline::processes */
	uint32_t task;	  /* Timeline::tasks: the holder */
	uint64_t ns;
} Handover;

typedef VEC(Handover) Handovers;

static bool is_for_gil(const Interval *wait)
{
	return wait->state == STATE_BLOCKED && wait->reason == REASON_GIL;
}

/* A thread of the same process ended the wait. */
static bool is_handover(const Timeline *timeline, const Thread *thread, const Interval *wait)
{
	uint32_t waker;

	if (wait->flags & (INTERVAL_WAKER_IRQ | INTERVAL_OPEN_END) ||
	    wait->waker >= timeline->tasks.count)
		return false;
	waker = timeline->tasks.items[wait->waker].thread;
	return waker < timeline->threads.count &&
	       timeline->threads.items[waker].process == thread->process;
}

static int compare_handovers(const void *a, const void *b)
{
	const Handover *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

static void collect(const Timeline *timeline, Handovers *handovers)
{
	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			const Interval *wait = &thread->intervals.items[i];

			if (is_for_gil(wait) && is_handover(timeline, thread, wait))
				*vec_push(handovers) = (Handover){.process = thread->process,
								  .task = wait->waker,
								  .ns = interval_end(thread, i)};
		}
	}
	if (handovers->count > 1)
		qsort(handovers->items, handovers->count, sizeof(*handovers->items),
		      compare_handovers);
}

/* Returns the task that next releases the lock, at ns or later. */
static uint32_t holder_at(const Handovers *handovers, const Thread *thread, uint64_t ns)
{
	Handover wanted = {.process = thread->process, .ns = ns};
	size_t i = partition_point(middle, handovers->count,
				   compare_handovers(&handovers->items[middle], &wanted) < 0);

	/* The waiter itself took the lock just when its timeout expired, from an unknown thread. */
	if (i == handovers->count || handovers->items[i].process != thread->process ||
	    handovers->items[i].task == thread->task)
		return THREAD_NONE;
	return handovers->items[i].task;
}

void gil_find_holders(Timeline *timeline)
{
	Handovers handovers = {};

	collect(timeline, &handovers);
	for (size_t t = 0; handovers.count > 0 && t < timeline->threads.count; t++) {
		Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++)
			if (is_for_gil(&thread->intervals.items[i]))
				thread->intervals.items[i].lock_holder =
					holder_at(&handovers, thread, interval_end(thread, i));
	}
	vec_free(&handovers);
}
