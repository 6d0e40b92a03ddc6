/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "deadlock.h"
#include "futex_kinds.h"
#include "short_names.h"
#include "text.h"
#include "wait_fields.h"

/* So many threads of a circle are named. */
#define NAMED_MOST 4
/* A longer circle is a damaged capture's. */
#define CIRCLE_MOST 256
/* Names of locks are shortened to so many characters. */
#define LOCK_NAME 32
#define NO_WAIT	  SIZE_MAX

static bool is_mutex_wait(const Timeline *timeline, const Interval *wait)
{
	uint32_t basis = wait->user_stack < timeline->stacks.count
				 ? timeline->stacks.items[wait->user_stack].basis
				 : 0;

	return wait->state == STATE_BLOCKED && !wait->unsampled &&
	       wait_reason(wait) == REASON_MUTEX && basis &&
	       futex_kind_is_owned_mutex(strings_get(&timeline->basis, basis - 1));
}

/* Returns whether a signal has ended wait i: the thread did not get what it waited for. */
static bool ended_by_signal(const Thread *thread, size_t i)
{
	const WakerStack *stack = thread_waker_stack(thread, i);

	return stack && !stack->unsampled && stack->by_signal;
}

/*
 * Returns the wait for a mutex in which a thread was at the end: of the window, or when a signal
 * came after which it has not slept again: the process was killed. NO_WAIT: it was in none.
 */
static size_t last_wait(const Timeline *timeline, const Thread *thread)
{
	size_t i = thread->intervals.count;
	const Interval *wait;

	while (i > 0 && thread->intervals.items[i - 1].state != STATE_BLOCKED)
		i--;
	if (i == 0)
		return NO_WAIT;
	wait = &thread->intervals.items[--i];
	if (!is_mutex_wait(timeline, wait))
		return NO_WAIT;
	return wait->flags & INTERVAL_OPEN_END || ended_by_signal(thread, i) ? i : NO_WAIT;
}

/* Returns the thread that has the mutex for which a thread waits at the end; or THREAD_NONE. */
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

/*
 * Returns whether another thread may have got the mutex since a time: a wait for it ended, or
 * nothing is known of what a thread did.
 */
static bool was_taken(const Timeline *timeline, const Process *process, uint32_t object,
		      uint64_t since_ns)
{
	for (size_t t = 0; t < process->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[process->threads.items[t]];
		size_t last = last_wait(timeline, thread);

		for (size_t i = thread->intervals.count; i-- > 0;) {
			const Interval *interval = &thread->intervals.items[i];

			if (interval_end(thread, i) <= since_ns)
				break;
			if (interval->state == STATE_UNKNOWN)
				return true;
			if (i != last && interval->state == STATE_BLOCKED &&
			    !ended_by_signal(thread, i) &&
			    wait_object(timeline, thread, i) == object)
				return true;
		}
	}
	return false;
}

/* Processes share the memory of a futex: its waiters in another one are not known by it. */
static bool is_shared(const Object *object)
{
	const struct record *about = object->description;

	return about && about->kind == REC_FUTEX &&
	       ((const struct rec_futex *)about)->memory == MEMORY_SHARED;
}

/* Returns whether it is certain that the thread for which another one waits has the mutex. */
static bool still_holds(const Timeline *timeline, uint32_t waiter)
{
	const Thread *thread = &timeline->threads.items[waiter];
	const Thread *holder = &timeline->threads.items[awaited(timeline, waiter)];
	const Interval *wait = &thread->intervals.items[last_wait(timeline, thread)];
	uint32_t object = awaited_object(timeline, waiter);

	/* What happened since the wait began is not all in the window. */
	if (wait->flags & INTERVAL_OPEN_START && timeline_is_part(timeline))
		return false;
	return object != OBJECT_NONE && holder->process == thread->process &&
	       !is_shared(&timeline->objects.list.items[object]) &&
	       !was_taken(timeline, &timeline->processes.items[thread->process], object,
			  wait->start_ns);
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

		if (length == CIRCLE_MOST || !still_holds(timeline, number))
			return 0;
		start_ns = MAX(start_ns, thread->intervals.items[wait].start_ns);
		end_ns = MIN(end_ns, interval_end(thread, wait));
		number = awaited(timeline, number);
		length++;
	} while (number != first);
	/* They wait at the same time. A thread's own mutex is not known as such. */
	return length > 1 && start_ns < end_ns ? length : 0;
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
	bool is_named = short_names_exists(object);
	_cleanup_free_ char *name =
		is_named ? short_names_object(object) : text_printable(object->name);
	_cleanup_free_ char *shortened = short_names_cut(name, LOCK_NAME);

	return xasprintf("%s%s", is_named ? "" : "a lock at ", shortened);
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
		char *longer = xasprintf("%s%s waits for %s, held by %s", text,
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

	/* Another thread of a process may have got a lock. */
	if (timeline->partial)
		return NULL;
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
