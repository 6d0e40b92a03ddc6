/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "deadlock.h"
#include "reason.h"
#include "short_names.h"
#include "text.h"
#include "wait_fields.h"
#include <sys/wait.h>

/* So many threads of a circle are named. */
#define NAMED_MOST 4
/* A thread of a killed process ends in less time after its last wait. */
#define KILLED_NS (200 * NSEC_PER_MSEC)
#define NO_WAIT	  SIZE_MAX

static bool is_lock_wait(const Interval *interval)
{
	return interval->state == STATE_BLOCKED &&
	       reason_info[wait_reason(interval)].category == CATEGORY_LOCK;
}

static bool was_killed(const Timeline *timeline, const Thread *thread)
{
	const Process *process = &timeline->processes.items[thread->process];

	return process->exited_in_window && WIFSIGNALED(process->exit_code);
}

/*
 * Returns the wait for a lock in which a thread was at the end: of the window, or of a process that
 * was killed. After that its threads only end. NO_WAIT: it was in none.
 */
static size_t last_wait(const Timeline *timeline, const Thread *thread)
{
	size_t i = thread->intervals.count;

	if (i == 0)
		return NO_WAIT;
	if (was_killed(timeline, thread))
		while (i > 1 && thread->intervals.items[i - 1].state != STATE_BLOCKED &&
		       thread->end_ns - thread->intervals.items[i - 1].start_ns < KILLED_NS)
			i--;
	i--;
	if (!is_lock_wait(&thread->intervals.items[i]) ||
	    (i + 1 == thread->intervals.count &&
	     !(thread->intervals.items[i].flags & INTERVAL_OPEN_END)))
		return NO_WAIT;
	return i;
}

/* Returns the thread that has the lock for which a thread waits at the end; or THREAD_NONE. */
static uint32_t awaited(const Timeline *timeline, uint32_t number)
{
	const Thread *thread = &timeline->threads.items[number];
	size_t wait = last_wait(timeline, thread);
	uint32_t holder = wait == NO_WAIT ? THREAD_NONE : thread->intervals.items[wait].lock_holder;

	return holder < timeline->tasks.count ? timeline->tasks.items[holder].thread : THREAD_NONE;
}

static uint32_t awaited_object(const Timeline *timeline, uint32_t number)
{
	const Thread *thread = &timeline->threads.items[number];

	return wait_object(timeline, thread, last_wait(timeline, thread));
}

/* Returns whether a wait for the object ended since a time: another thread may have it now. */
static bool was_taken(const Timeline *timeline, uint32_t object, uint64_t since_ns)
{
	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];
		size_t last = last_wait(timeline, thread);

		for (size_t i = thread->intervals.count; i-- > 0;) {
			const Interval *interval = &thread->intervals.items[i];

			if (interval_end(thread, i) <= since_ns)
				break;
			if (i != last && is_lock_wait(interval) &&
			    wait_object(timeline, thread, i) == object)
				return true;
		}
	}
	return false;
}

static bool still_holds(const Timeline *timeline, uint32_t waiter)
{
	const Thread *thread = &timeline->threads.items[waiter];
	uint64_t since_ns = thread->intervals.items[last_wait(timeline, thread)].start_ns;
	uint32_t object = awaited_object(timeline, waiter);

	return object != OBJECT_NONE && !was_taken(timeline, object, since_ns);
}

/* Returns the number of threads in the circle that a thread is in; 0: it may not be one. */
static size_t circle_length(const Timeline *timeline, uint32_t first)
{
	uint64_t start_ns = 0, end_ns = UINT64_MAX;
	uint32_t number = first;
	size_t length = 0;

	do {
		const Thread *thread = &timeline->threads.items[number];
		size_t wait = last_wait(timeline, thread);

		if (!still_holds(timeline, number))
			return 0;
		start_ns = MAX(start_ns, thread->intervals.items[wait].start_ns);
		end_ns = MIN(end_ns, interval_end(thread, wait));
		number = awaited(timeline, number);
		length++;
	} while (number != first);
	return start_ns < end_ns ? length : 0; /* they wait at the same time */
}

static char *label_of(const Timeline *timeline, uint32_t number)
{
	const Thread *thread = &timeline->threads.items[number];
	_cleanup_free_ char *label = short_names_own(timeline, thread)
					     ? text_printable(thread->name)
					     : short_names_thread(timeline, thread);

	return xasprintf("%s (%u)", label, thread->ns_tid);
}

/* A lock without a name has an address, by which a debugger finds it. */
static char *lock_name(const Timeline *timeline, uint32_t waiter)
{
	const Object *object = &timeline->objects.list.items[awaited_object(timeline, waiter)];
	_cleanup_free_ char *address = NULL;

	if (short_names_exists(object))
		return short_names_object(object);
	address = text_printable(object->name);
	return xasprintf("a lock at %s", address);
}

static char *circle_text(const Timeline *timeline, uint32_t first, size_t length)
{
	_cleanup_free_ char *first_label = label_of(timeline, first);
	char *text = xasprintf("deadlock: %s", first_label);
	uint32_t number = first;

	for (size_t i = 0; i < length && i < NAMED_MOST; i++) {
		uint32_t holder = awaited(timeline, number);
		_cleanup_free_ char *lock = lock_name(timeline, number);
		_cleanup_free_ char *label = label_of(timeline, holder);
		char *longer =
			length == 1 ? xasprintf("%s waits for %s, which it has itself", text, lock)
				    : xasprintf("%s%s waits for %s, held by %s", text,
						i > 0 ? ", which" : "", lock, label);

		free(text);
		text = longer;
		number = holder;
	}
	if (length > NAMED_MOST) {
		char *longer = xasprintf("%s, and so on: %zu threads", text, length);

		free(text);
		text = longer;
	}
	return text;
}

char *deadlock_text(const Timeline *timeline)
{
	/* By thread: the chain in which it was first seen, counted from 1. */
	_cleanup_free_ uint32_t *seen = xcalloc(timeline->threads.count + 1, sizeof(*seen));

	for (uint32_t t = 0; t < timeline->threads.count; t++) {
		uint32_t number = t;
		size_t length = 0;

		while (number < timeline->threads.count && !seen[number]) {
			seen[number] = t + 1;
			number = awaited(timeline, number);
		}
		if (number < timeline->threads.count && seen[number] == t + 1)
			length = circle_length(timeline, number);
		if (length > 0)
			return circle_text(timeline, number, length);
	}
	return NULL;
}
