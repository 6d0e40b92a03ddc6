/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "critical_path.h"

/* Where the walk is: at ns in a thread, and what was before ns is still to be explained. */
typedef struct Place {
	uint32_t thread;
	uint64_t ns;
} Place;

/* The interval that ends at ns or has it inside; SIZE_MAX: the thread was not there yet. */
static size_t interval_before(const Thread *thread, uint64_t ns)
{
	size_t at = partition_point(middle, thread->intervals.count,
				    thread->intervals.items[middle].start_ns < ns);

	return at > 0 ? at - 1 : SIZE_MAX;
}

static uint32_t thread_of_task(const Timeline *timeline, uint32_t task)
{
	return task < timeline->tasks.count ? timeline->tasks.items[task].thread : THREAD_NONE;
}

static bool is_there(const Timeline *timeline, Place place)
{
	return place.thread < timeline->threads.count &&
	       place.ns <= timeline->threads.items[place.thread].end_ns &&
	       interval_before(&timeline->threads.items[place.thread], place.ns) != SIZE_MAX;
}

/* ---- where a sleep came from --------------------------------------------------------------- */

/*
 * The request that ended the wait: the path is on the device since it was submitted. Not if that
 * was done for this thread while it slept already (by a worker of io_uring).
 */
static bool go_to_submitter(const Timeline *timeline, uint32_t thread, size_t wait,
			    Place *ret_place)
{
	const Thread *sleeper = &timeline->threads.items[thread];
	uint32_t number = thread_wait_request(sleeper, wait);
	const Request *request;

	if (number == REQUEST_NONE)
		return false;
	request = &timeline->requests.list.items[number];
	*ret_place = (Place){request->thread, request_begin(request)};
	return is_there(timeline, *ret_place) &&
	       (request->thread != thread ||
		ret_place->ns <= sleeper->intervals.items[wait].start_ns);
}

static bool go_to_waker(const Timeline *timeline, uint32_t thread, size_t wait, Place *ret_place)
{
	const Thread *sleeper = &timeline->threads.items[thread];
	const Interval *interval = &sleeper->intervals.items[wait];

	if (interval->flags & (INTERVAL_WAKER_IRQ | INTERVAL_OPEN_END))
		return false;
	*ret_place =
		(Place){thread_of_task(timeline, interval->waker), interval_end(sleeper, wait)};
	return ret_place->thread != thread && is_there(timeline, *ret_place);
}

static bool go_to_creator(const Timeline *timeline, uint32_t thread, Place *ret_place)
{
	const Thread *born = &timeline->threads.items[thread];

	if (!born->born_in_window)
		return false;
	*ret_place = (Place){thread_of_task(timeline, born->creator), born->start_ns};
	return ret_place->thread != thread && is_there(timeline, *ret_place);
}

static void count_outside(CriticalPath *path, const Interval *wait, uint64_t ns)
{
	if (wait->flags & INTERVAL_OPEN_END)
		path->open_ns += ns;
	else if (wait->flags & INTERVAL_WAKER_IRQ)
		return;
	else if (wait->waker == THREAD_NONE)
		path->unknown_waker_ns += ns;
	else
		path->outside_ns += ns;
}

/* ---- the walk ------------------------------------------------------------------------------ */

/* From from_ns to to.ns. Latest first; reversed at the end. */
static void push_interval(Timeline *timeline, Place to, Interval interval, uint64_t from_ns)
{
	Thread *strip = &timeline->path.strip;

	if (from_ns >= to.ns)
		return;
	strip->ledger[interval.state] += to.ns - from_ns;
	if (interval.state == STATE_BLOCKED || interval.state == STATE_RUNNABLE)
		strip->reason_ledger[interval.reason] += to.ns - from_ns;
	interval.start_ns = from_ns;
	*vec_push(&strip->intervals) = interval;
	*vec_push(&strip->owners) = to.thread;
}

/* From from_ns on, interval i of the thread was on the path. */
static void push_step(Timeline *timeline, Place to, size_t i, uint64_t from_ns)
{
	push_interval(timeline, to, timeline->threads.items[to.thread].intervals.items[i], from_ns);
}

/*
 * Up to end_ns the request was under way, and nobody asleep for it: whoever submitted it did
 * something else, or others. The stack is that of the submission.
 */
static void push_device(Timeline *timeline, const Request *request, uint64_t from_ns,
			uint64_t end_ns)
{
	push_interval(timeline, (Place){request->thread, end_ns},
		      (Interval){
			      .user_stack = request->user_stack,
			      .kernel_stack = STACK_NONE,
			      .waker = THREAD_NONE,
			      .rival = THREAD_NONE,
			      .syscall = -1,
			      .state = STATE_BLOCKED,
			      .sleep = SLEEP_FOR_DISK,
			      .reason = REASON_ON_DEVICE,
			      .rule = RULE_REQUEST,
		      },
		      from_ns);
}

/*
 * The path goes through a sleep to somebody else. What is left of one that a request has cut was
 * ended by nobody; a thread that is recorded, and woke the sleeper, is a better witness than a
 * request of the sleeper's.
 */
static bool leave_sleep(Timeline *timeline, Place *at, size_t wait)
{
	const Thread *sleeper = &timeline->threads.items[at->thread];
	uint64_t asleep_ns = sleeper->intervals.items[wait].start_ns;
	Place next;

	if (at->ns != interval_end(sleeper, wait))
		return false;
	if (go_to_waker(timeline, at->thread, wait, &next)) {
		*at = next;
		return true;
	}
	if (!go_to_submitter(timeline, at->thread, wait, &next))
		return false;
	next.ns = MIN(next.ns, at->ns);
	push_step(timeline, *at, wait, MAX(next.ns, asleep_ns));
	push_device(timeline, &timeline->requests.list.items[thread_wait_request(sleeper, wait)],
		    next.ns, asleep_ns);
	*at = next;
	return true;
}

/* To where the interval i of the thread on the path began. */
static void stay(Timeline *timeline, Place *at, size_t i)
{
	const Interval *interval = &timeline->threads.items[at->thread].intervals.items[i];
	uint64_t ns = at->ns - interval->start_ns;

	if (interval->state == STATE_BLOCKED)
		count_outside(&timeline->path, interval, ns);
	if (interval->state == STATE_UNKNOWN)
		timeline->path.lost_ns += ns;
	push_step(timeline, *at, i, interval->start_ns);
	at->ns = interval->start_ns;
}

/*
 * Threads that woke each other at one moment would send the walk to and fro: after so many of them
 * the last one keeps its sleep to itself.
 */
#define MOVES_MAX 256

/* Returns where the path begins. */
static uint64_t walk(Timeline *timeline, Place at)
{
	unsigned int moves = 0;

	for (;;) {
		const Thread *thread = &timeline->threads.items[at.thread];
		size_t i = interval_before(thread, at.ns);
		uint64_t ns = at.ns;

		if (i == SIZE_MAX) {
			Place creator;

			if (moves++ >= MOVES_MAX || !go_to_creator(timeline, at.thread, &creator))
				return ns;
			at = creator;
			continue;
		}
		if (thread->intervals.items[i].state != STATE_BLOCKED || moves >= MOVES_MAX ||
		    !leave_sleep(timeline, &at, i))
			stay(timeline, &at, i);
		moves = at.ns < ns ? 0 : moves + 1;
	}
}

static void reverse(Thread *strip)
{
	for (size_t i = 0, k = strip->intervals.count; i + 1 < k; i++, k--) {
		Interval interval = strip->intervals.items[i];
		uint32_t owner = strip->owners.items[i];

		strip->intervals.items[i] = strip->intervals.items[k - 1];
		strip->intervals.items[k - 1] = interval;
		strip->owners.items[i] = strip->owners.items[k - 1];
		strip->owners.items[k - 1] = owner;
	}
}

/* Those of the thread on the path while it ran there. */
static void copy_ticks(const Timeline *timeline, Thread *strip, size_t i)
{
	const Thread *thread = &timeline->threads.items[strip->owners.items[i]];
	uint64_t from_ns = strip->intervals.items[i].start_ns, to_ns = interval_end(strip, i);
	size_t at = partition_point(middle, thread->ticks.count,
				    thread->ticks.items[middle].ns < from_ns);

	for (; at < thread->ticks.count && thread->ticks.items[at].ns < to_ns; at++) {
		Tick tick = thread->ticks.items[at];

		tick.owner = strip->owners.items[i];
		*vec_push(&strip->ticks) = tick;
	}
}

void critical_path_find(Timeline *timeline, uint32_t thread)
{
	Thread *strip = &timeline->path.strip;

	if (thread >= timeline->threads.count)
		return;
	timeline->path.end = thread;
	*strip = (Thread){
		.process = timeline->threads.items[thread].process,
		.task = THREAD_NONE,
		.name = xstrdup("critical path"),
		.end_ns = timeline->threads.items[thread].end_ns,
		.is_main = true,
	};
	strip->start_ns = walk(timeline, (Place){thread, strip->end_ns});
	timeline->path.unseen_ns = timeline_time(timeline, strip->start_ns);
	reverse(strip);
	for (size_t i = 0; i < strip->intervals.count; i++)
		if (strip->intervals.items[i].state == STATE_RUNNING)
			copy_ticks(timeline, strip, i);
}

/* The thread of a process that ended last: the process ends with it. */
static uint32_t last_thread(const Timeline *timeline, const Process *process)
{
	uint32_t last = process->threads.items[0];

	for (size_t i = 1; i < process->threads.count; i++)
		if (timeline->threads.items[process->threads.items[i]].end_ns >
		    timeline->threads.items[last].end_ns)
			last = process->threads.items[i];
	return last;
}

static uint32_t thread_of_tid(const Timeline *timeline, uint32_t tid)
{
	for (size_t i = timeline->threads.count; i-- > 0;)
		if (timeline->threads.items[i].ns_tid == tid)
			return i;
	return THREAD_NONE;
}

uint32_t critical_path_thread(const Timeline *timeline, uint32_t tid)
{
	uint32_t command = timeline->command_thread;

	if (tid != 0)
		return thread_of_tid(timeline, tid);
	if (command < timeline->threads.count)
		return last_thread(
			timeline,
			&timeline->processes.items[timeline->threads.items[command].process]);
	if (timeline->whole_system) /* none of them is what anybody waited for */
		return THREAD_NONE;
	for (size_t i = 0; i < timeline->processes.count; i++)
		if (timeline->processes.items[i].threads.count > 0)
			return timeline->processes.items[i].threads.items[0];
	return THREAD_NONE;
}

size_t critical_path_stretch(const Thread *strip, size_t i)
{
	bool on_device = strip->intervals.items[i].reason == REASON_ON_DEVICE;
	size_t end = i + 1;

	while (end < strip->intervals.count && strip->owners.items[end] == strip->owners.items[i] &&
	       (strip->intervals.items[end].reason == REASON_ON_DEVICE) == on_device)
		end++;
	return end;
}

const char *critical_path_stretch_name(const Timeline *timeline, size_t i)
{
	const Thread *strip = &timeline->path.strip;
	const char *name = interval_owner(timeline, strip, i)->name;

	if (strip->intervals.items[i].reason == REASON_ON_DEVICE)
		return reason_info[REASON_ON_DEVICE].leaf;
	return name && *name ? name : "unknown";
}
