/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "critical_path.h"
#include "interpreter_locks.h"
#include "timeline.h"
#include <string.h>

/* The position of the walk: at ns in a thread; the time before ns is not explained yet. */
typedef struct Place {
	uint32_t thread;
	uint64_t ns;
} Place;

/*
 * A wait for an interpreter's lock that the walk left for the thread that had the lock. Until the
 * wait began the walk goes from holder to holder.
 */
typedef struct LockChase {
	bool active;
	LockTurn turn;
	uint64_t from_ns; /* the turn began then */
	/* The thread of the walk has the lock since then; from_ns: since before the turn. */
	uint64_t since_ns;
} LockChase;

/*
 * A thread that the walk left in a sleep, for the cause of the wakeup. What the thread did before
 * the sleep may be what the run was doing.
 */
typedef struct Sleeper {
	uint32_t thread;
	/* The thread has no interval between this one and the walk's position. */
	size_t interval;
	/* From then on it waits for the thread that the walk enters. */
	uint64_t since_ns;
	LockChase chase; /* the walk's when it left the thread */
} Sleeper;

/* The limit of Waiters. In a longer convoy the oldest are dropped, but not the first one. */
#define SLEEPERS_MAX 64

typedef struct Walk {
	Timeline *timeline;
	Place at;
	LockChase chase;
	Handovers handovers; /* of the locks of interpreters */
	/* Of each thread: intervals from this one on began after the walk's last place in it. */
	size_t *behind;
	/* Each waited for the one after it, and the last one for the thread on the path. */
	Sleeper sleepers[SLEEPERS_MAX];
	size_t sleeper_count;
} Walk;

/* Returns the interval that ends at ns or contains it; SIZE_MAX: the thread did not exist yet. */
static size_t interval_before(const Thread *thread, uint64_t ns)
{
	size_t at = partition_point(middle, thread->intervals.count,
				    thread->intervals.items[middle].start_ns < ns);

	return at > 0 ? at - 1 : SIZE_MAX;
}

/*
 * Returns the same for the walk's place. The walk goes back in time, so the interval is near the
 * one that it was in when it left the thread.
 */
static size_t interval_at(Walk *walk)
{
	const Thread *thread = &walk->timeline->threads.items[walk->at.thread];
	const Interval *intervals = thread->intervals.items;
	size_t *behind = &walk->behind[walk->at.thread], end = *behind, first, near = 1;
	uint64_t ns = walk->at.ns;

	/* It was not there yet, or has gone to a later time after all. */
	if (end == 0 || (end < thread->intervals.count && intervals[end].start_ns < ns))
		end = thread->intervals.count;
	while (near < end && intervals[end - near].start_ns >= ns)
		near *= 2;
	first = near < end ? end - near : 0;
	*behind = first +
		  partition_point(middle, end - first, intervals[first + middle].start_ns < ns);
	return *behind > 0 ? *behind - 1 : SIZE_MAX;
}

static uint32_t thread_of_task(const Timeline *timeline, uint32_t task)
{
	return task < timeline->tasks.count ? timeline->tasks.items[task].thread : THREAD_NONE;
}

static bool is_there(const Timeline *timeline, Place place)
{
	const Thread *thread;

	if (place.thread >= timeline->threads.count)
		return false;
	thread = &timeline->threads.items[place.thread];
	return place.ns <= thread->end_ns && thread->intervals.count > 0 &&
	       thread->intervals.items[0].start_ns < place.ns;
}

/* ---- causes of a sleep --------------------------------------------------------------------- */

/* Returns whether the thread sleeps until the device's queue takes a request that it submits. */
static bool is_for_queue(const Interval *interval)
{
	return interval->state == STATE_BLOCKED && (interval->reason == REASON_REQUEST_SLOT ||
						    interval->reason == REASON_REQUEST_THROTTLE);
}

/*
 * Returns when the device's queue had the request. The kernel makes a request when the queue has
 * room for it, and its submitter may sleep until then.
 */
static uint64_t queued_at(const Timeline *timeline, const Request *request)
{
	uint64_t begin_ns = request_begin(request);
	const Thread *submitter;

	if (request->thread >= timeline->threads.count || request->start_ns <= begin_ns)
		return begin_ns;
	submitter = &timeline->threads.items[request->thread];
	for (size_t i = interval_before(submitter, request->start_ns);
	     i != SIZE_MAX && interval_end(submitter, i) > begin_ns; i--)
		if (is_for_queue(&submitter->intervals.items[i]))
			return MIN(interval_end(submitter, i), request->start_ns);
	return begin_ns;
}

/*
 * Returns the request that ended the wait; the path is on the device since its submission. It does
 * not count if it was submitted for this thread while it already slept (by an io_uring worker), or
 * if its end only made room in the queue for what the thread submits.
 */
static bool go_to_submitter(const Timeline *timeline, uint32_t thread, size_t wait,
			    Place *ret_place)
{
	const Thread *sleeper = &timeline->threads.items[thread];
	uint32_t number = thread_wait_request(sleeper, wait);
	const Request *request;

	if (number == REQUEST_NONE || is_for_queue(&sleeper->intervals.items[wait]))
		return false;
	request = &timeline->requests.list.items[number];
	*ret_place = (Place){request->thread, queued_at(timeline, request)};
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

/*
 * Adds an interval from from_ns to to.ns. The walk adds the latest first; they are reversed at the
 * end.
 */
static void push_interval(Timeline *timeline, Place to, Interval interval, uint64_t from_ns)
{
	Thread *track = &timeline->path.track;

	if (from_ns >= to.ns)
		return;
	track->ledger[interval.state] += to.ns - from_ns;
	if (interval.state == STATE_BLOCKED || interval.state == STATE_RUNNABLE)
		track->reason_ledger[interval.reason] += to.ns - from_ns;
	interval.start_ns = from_ns;
	*vec_push(&track->intervals) = interval;
	*vec_push(&track->owners) = to.thread;
}

/* Interval i of the thread was on the path from from_ns on. */
static void push_step(Timeline *timeline, Place to, size_t i, uint64_t from_ns)
{
	push_interval(timeline, to, timeline->threads.items[to.thread].intervals.items[i], from_ns);
}

/*
 * Until end_ns the request was in flight, and no thread slept for it: its submitter, and others,
 * did something else. The stack is that of the submission.
 */
static void push_device(Timeline *timeline, const Request *request, uint64_t from_ns,
			uint64_t end_ns)
{
	push_interval(timeline, (Place){request->thread, end_ns},
		      (Interval){
			      .user_stack = request->user_stack,
			      .kernel_stack = STACK_NONE,
			      .waker = THREAD_NONE,
			      .cpu_user = THREAD_NONE,
			      .syscall = -1,
			      .state = STATE_BLOCKED,
			      .sleep = SLEEP_FOR_DISK,
			      .reason = REASON_ON_DEVICE,
			      .rule = RULE_REQUEST,
		      },
		      from_ns);
}

static void remove_sleeper(Walk *walk, size_t i)
{
	walk->sleeper_count--;
	memmove(&walk->sleepers[i], &walk->sleepers[i + 1],
		(walk->sleeper_count - i) * sizeof(walk->sleepers[0]));
}

/* Moves the walk to another thread. What that thread slept for later is not on the path. */
static void go_to(Walk *walk, Place next)
{
	for (size_t i = 0; i < walk->sleeper_count; i++)
		if (walk->sleepers[i].thread == next.thread)
			remove_sleeper(walk, i);
	walk->at = next;
}

/* Leaves the thread, which waits since interval `wait` for the thread of the next place. */
static void leave_for(Walk *walk, size_t wait, Place next)
{
	const Thread *thread = &walk->timeline->threads.items[walk->at.thread];
	Sleeper sleeper = {
		.thread = walk->at.thread,
		.interval = wait,
		.since_ns = thread->intervals.items[wait].start_ns,
		.chase = walk->chase,
	};

	go_to(walk, next);
	walk->chase.active = false;
	if (walk->sleeper_count == SLEEPERS_MAX)
		remove_sleeper(walk, 1);
	walk->sleepers[walk->sleeper_count++] = sleeper;
}

/* Interval i of the thread on the path was on it back to ns. */
static void stay_until(Walk *walk, size_t i, uint64_t ns)
{
	Timeline *timeline = walk->timeline;
	const Interval *interval = &timeline->threads.items[walk->at.thread].intervals.items[i];

	if (interval->state == STATE_BLOCKED)
		count_outside(&timeline->path, interval, walk->at.ns - ns);
	if (interval->state == STATE_UNKNOWN)
		timeline->path.lost_ns += walk->at.ns - ns;
	push_step(timeline, walk->at, i, ns);
	walk->at.ns = ns;
}

/* ---- the lock of an interpreter ------------------------------------------------------------ */

/*
 * Leaves a wait for an interpreter's lock, from the end of one of its parts, for the thread that
 * had the lock then. That a time limit ended the part, and that the thread was awake between two
 * parts, means nothing: it wanted the lock all the time.
 */
static bool leave_for_holder(Walk *walk, size_t wait)
{
	const Timeline *timeline = walk->timeline;
	const Thread *thread = &timeline->threads.items[walk->at.thread];
	LockChase chase = {.active = true}, before = walk->chase;
	LockTenure tenure;
	Place next;

	if (!interpreter_lock_is_wait(&thread->intervals.items[wait]))
		return false;
	chase.turn = interpreter_lock_turn(timeline, thread, wait);
	chase.from_ns = thread->intervals.items[chase.turn.first].start_ns;
	tenure = interpreter_lock_tenure(timeline, &walk->handovers, &chase.turn, walk->at.ns);
	next = (Place){thread_of_task(timeline, tenure.task), walk->at.ns};
	if (next.thread == walk->at.thread || !is_there(timeline, next))
		return false;
	leave_for(walk, chase.turn.first, next);
	/* Another thread waits for the same lock since before. */
	if (before.active && before.from_ns < chase.from_ns &&
	    interpreter_lock_is_same(timeline, &before.turn, &chase.turn)) {
		chase.turn = before.turn;
		chase.from_ns = before.from_ns;
		tenure = interpreter_lock_tenure(timeline, &walk->handovers, &chase.turn, next.ns);
	}
	chase.since_ns = tenure.since_ns;
	walk->chase = chase;
	return true;
}

/* Goes to the thread that had the lock before the one on the path took it. */
static bool go_to_previous_holder(Walk *walk)
{
	LockChase *chase = &walk->chase;
	LockTenure tenure;
	Place next;

	if (!chase->active || walk->at.ns > chase->since_ns)
		return false;
	if (walk->at.ns <= chase->from_ns) {
		chase->active = false; /* nothing waited for the lock yet */
		return false;
	}
	tenure = interpreter_lock_tenure(walk->timeline, &walk->handovers, &chase->turn,
					 walk->at.ns);
	next = (Place){thread_of_task(walk->timeline, tenure.task), walk->at.ns};
	chase->since_ns = tenure.since_ns;
	if (next.thread == walk->at.thread || !is_there(walk->timeline, next))
		return false;
	go_to(walk, next);
	return true;
}

/* Returns how far back the thread on the path stays on it, in an interval that began at ns. */
static uint64_t stay_from(const Walk *walk, uint64_t ns)
{
	const LockChase *chase = &walk->chase;

	return chase->active && chase->since_ns < walk->at.ns ? MAX(ns, chase->since_ns) : ns;
}

/*
 * A thread that has released the lock on request sleeps until another one has taken it, which
 * then wakes this one. What the other one did before is not on the path: this one had the lock.
 */
static bool stay_in_handover(Walk *walk, size_t wait)
{
	const Interval *interval =
		&walk->timeline->threads.items[walk->at.thread].intervals.items[wait];

	if (!walk->chase.active || interval->reason != REASON_GIL_HANDOVER)
		return false;
	stay_until(walk, wait, stay_from(walk, interval->start_ns));
	return true;
}

/* ---- the walk goes on ---------------------------------------------------------------------- */

/*
 * Follows the path through a sleep, from its end, to what ended it. If a request splits a sleep,
 * the first piece has no waker of its own. A recorded thread that woke the sleeper takes precedence
 * over a request of the sleeper's.
 */
static bool leave_sleep(Walk *walk, size_t wait)
{
	Timeline *timeline = walk->timeline;
	Place at = walk->at, next;
	const Thread *sleeper = &timeline->threads.items[at.thread];
	uint64_t asleep_ns = sleeper->intervals.items[wait].start_ns;

	if (stay_in_handover(walk, wait) || leave_for_holder(walk, wait))
		return true;
	if (go_to_waker(timeline, at.thread, wait, &next)) {
		leave_for(walk, wait, next);
		return true;
	}
	if (!go_to_submitter(timeline, at.thread, wait, &next))
		return false;
	next.ns = MIN(next.ns, at.ns);
	push_step(timeline, at, wait, MAX(next.ns, asleep_ns));
	push_device(timeline, &timeline->requests.list.items[thread_wait_request(sleeper, wait)],
		    next.ns, asleep_ns);
	if (next.thread == at.thread)
		walk->at = next;
	else
		leave_for(walk, wait, next);
	return true;
}

/* Returns the last moment before ns at which the sleeper ran or was runnable; 0: unknown. */
static uint64_t awake_before(const Timeline *timeline, Sleeper *sleeper, uint64_t ns)
{
	const Interval *intervals = timeline->threads.items[sleeper->thread].intervals.items;
	size_t i = sleeper->interval;

	/* The walk goes backwards in time, so all searches together look at each interval once. */
	while (i > 0 && intervals[i].start_ns >= ns)
		i--;
	sleeper->interval = i;
	while (i > 0 && intervals[i].state == STATE_BLOCKED) {
		ns = intervals[i].start_ns;
		i--;
	}
	return intervals[i].start_ns < ns && (intervals[i].state == STATE_RUNNING ||
					      intervals[i].state == STATE_RUNNABLE)
		       ? ns
		       : 0;
}

/* Returns whether the thread's own doing ended the sleep, or work done on its behalf. */
static bool is_for_disk(const Thread *thread, size_t wait)
{
	const Interval *interval = &thread->intervals.items[wait];

	/*
	 * An io_uring request may be for the network; since 6.5 the kernel marks that wait as
	 * iowait as well.
	 */
	return (interval->sleep == SLEEP_FOR_DISK && interval->reason != REASON_IO_URING) ||
	       reason_info[interval->reason].category == CATEGORY_DISK ||
	       thread_wait_request(thread, wait) != REQUEST_NONE;
}

/*
 * Leaves a sleep, from its end, that an event outside of the recording ended. The thread that
 * waited for this one waited for the sleep only since it slept itself: as long as it was awake, its
 * work was the path. The same holds for a thread that waited for that one in turn, if it was still
 * awake when the sleep ended. But a thread that waited during the whole sleep waited for it as it
 * would wait for work.
 */
static bool go_back(Walk *walk, size_t wait)
{
	const Thread *thread = &walk->timeline->threads.items[walk->at.thread];
	uint64_t end_ns = walk->at.ns;

	if (is_for_disk(thread, wait))
		return false;
	/* Before it had the lock that the other thread waits for, that one waited for another. */
	if (walk->chase.active && walk->chase.since_ns > walk->chase.from_ns &&
	    walk->chase.since_ns > thread->intervals.items[wait].start_ns)
		return false;
	for (size_t k = walk->sleeper_count; k-- > 0;) {
		bool is_direct = k + 1 == walk->sleeper_count;
		uint64_t ns;

		/* The thread waits during the whole sleep, so the sleep is on the path. */
		if (walk->sleepers[k].since_ns <= thread->intervals.items[wait].start_ns)
			return false;
		ns = awake_before(walk->timeline, &walk->sleepers[k], end_ns);
		if (is_direct ? ns <= thread->intervals.items[wait].start_ns : ns != end_ns)
			continue;
		stay_until(walk, wait, ns);
		walk->at.thread = walk->sleepers[k].thread;
		walk->chase = walk->sleepers[k].chase;
		/* What the thread waited for later is not what it waits for here. */
		walk->sleeper_count = k;
		return true;
	}
	return false;
}

/*
 * Threads that woke each other at one moment would make the walk loop. After this many of them the
 * sleep of the last one stays on the path.
 */
#define MOVES_MAX 256

/* Returns where the path begins. */
static uint64_t walk_from(Walk *walk)
{
	Timeline *timeline = walk->timeline;
	unsigned int moves = 0;

	for (;;) {
		const Thread *thread = &timeline->threads.items[walk->at.thread];
		size_t i = interval_at(walk);
		uint64_t ns = walk->at.ns;

		if (i == SIZE_MAX) {
			Place creator;

			if (moves++ >= MOVES_MAX ||
			    !go_to_creator(timeline, walk->at.thread, &creator))
				return ns;
			go_to(walk, creator);
			continue;
		}
		if (moves < MOVES_MAX && go_to_previous_holder(walk)) {
			moves++;
			continue;
		}
		if (thread->intervals.items[i].state != STATE_BLOCKED || moves >= MOVES_MAX ||
		    ns != interval_end(thread, i) || !(leave_sleep(walk, i) || go_back(walk, i)))
			stay_until(walk, i, stay_from(walk, thread->intervals.items[i].start_ns));
		moves = walk->at.ns < ns ? 0 : moves + 1;
	}
}

static void reverse(Thread *track)
{
	for (size_t i = 0, k = track->intervals.count; i + 1 < k; i++, k--) {
		Interval interval = track->intervals.items[i];
		uint32_t owner = track->owners.items[i];

		track->intervals.items[i] = track->intervals.items[k - 1];
		track->intervals.items[k - 1] = interval;
		track->owners.items[i] = track->owners.items[k - 1];
		track->owners.items[k - 1] = owner;
	}
}

/* Copies the ticks of the thread on the path while it ran there. */
static void copy_ticks(const Timeline *timeline, Thread *track, size_t i)
{
	const Thread *thread = &timeline->threads.items[track->owners.items[i]];
	uint64_t from_ns = track->intervals.items[i].start_ns, to_ns = interval_end(track, i);
	size_t at = partition_point(middle, thread->ticks.count,
				    thread->ticks.items[middle].ns < from_ns);

	for (; at < thread->ticks.count && thread->ticks.items[at].ns < to_ns; at++) {
		Tick tick = thread->ticks.items[at];

		tick.owner = track->owners.items[i];
		*vec_push(&track->ticks) = tick;
	}
}

void critical_path_find(Timeline *timeline, uint32_t thread)
{
	Thread *track = &timeline->path.track;
	Walk walk = {.timeline = timeline};

	if (thread >= timeline->threads.count)
		return;
	walk.handovers = interpreter_lock_handovers_collect(timeline);
	walk.behind = xcalloc(timeline->threads.count, sizeof(*walk.behind));
	timeline->path.end = thread;
	*track = (Thread){
		.process = timeline->threads.items[thread].process,
		.task = THREAD_NONE,
		.name = xstrdup("critical path"),
		.end_ns = timeline->threads.items[thread].end_ns,
		.is_main = true,
	};
	walk.at = (Place){thread, track->end_ns};
	track->start_ns = walk_from(&walk);
	vec_free(&walk.handovers);
	free(walk.behind);
	timeline->path.unseen_ns = timeline_time(timeline, track->start_ns);
	reverse(track);
	for (size_t i = 0; i < track->intervals.count; i++)
		if (track->intervals.items[i].state == STATE_RUNNING)
			copy_ticks(timeline, track, i);
}

/* Returns the thread of a process that ended last: the process ends with it. */
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
	if (timeline->whole_system) /* nothing waits for the end of any of them */
		return THREAD_NONE;
	for (size_t i = 0; i < timeline->processes.count; i++) {
		const Process *process = &timeline->processes.items[i];

		/* The exit of a server's child is not the end of the server. */
		if (process->threads.count > 0 && process->exited_in_window &&
		    !process->born_in_window && process->parent >= timeline->processes.count)
			return last_thread(timeline, process);
	}
	return THREAD_NONE;
}

/* A path with at least this share of waits from outside does not show what the run was doing. */
#define OUTSIDE_SHARE 0.9

/*
 * A client's waits for epoll may also be ended from outside, but its epoll has no listening socket.
 */
static bool has_listener(const Timeline *timeline, const Thread *track, size_t i)
{
	const Thread *thread = interval_owner(timeline, track, i);
	size_t wait = interval_before(thread, track->intervals.items[i].start_ns + 1);
	uint32_t object = wait == SIZE_MAX ? OBJECT_NONE : thread_wait_object(thread, wait);

	return object != OBJECT_NONE && object_listens(&timeline->objects.list.items[object]);
}

/*
 * Returns whether the wait is what a server's main thread does: it waits for a request or a signal
 * from outside.
 */
static bool is_for_request(const Timeline *timeline, const Thread *track, size_t i)
{
	const Interval *wait = &track->intervals.items[i];

	if (wait->state != STATE_BLOCKED ||
	    (!(wait->flags & (INTERVAL_WAKER_IRQ | INTERVAL_OPEN_END)) &&
	     thread_of_task(timeline, wait->waker) != THREAD_NONE))
		return false;
	switch (wait->reason) {
	case REASON_ACCEPT:
	case REASON_SIGNAL:
		return true;
	case REASON_EPOLL:
	case REASON_NETWORK_POLL:
		return has_listener(timeline, track, i);
	}
	return false;
}

/* Returns whether a command slept while the whole system was recorded: it only set the window. */
static bool is_of_window(const Timeline *timeline, const Interval *step)
{
	return timeline->whole_system && step->state == STATE_BLOCKED &&
	       step->reason == REASON_SLEEP;
}

void critical_path_hide(Timeline *timeline)
{
	Thread *track = &timeline->path.track;
	uint64_t waited[REASON_COUNT] = {}, all_ns = 0;
	uint8_t most = REASON_NONE;

	for (size_t i = 0; i < track->intervals.count; i++) {
		const Interval *step = &track->intervals.items[i];
		uint64_t ns = interval_end(track, i) - step->start_ns;

		if (!is_for_request(timeline, track, i) && !is_of_window(timeline, step))
			continue;
		all_ns += ns;
		waited[step->reason] += ns;
		if (waited[step->reason] > waited[most])
			most = step->reason;
	}
	if (most == REASON_NONE || all_ns < OUTSIDE_SHARE * (track->end_ns - track->start_ns))
		return;
	timeline->path.hidden = most;
	timeline->path.hidden_share = (double)all_ns / (track->end_ns - track->start_ns);
	thread_free(track);
	*track = (Thread){};
}

size_t critical_path_stretch(const Thread *track, size_t i)
{
	bool on_device = track->intervals.items[i].reason == REASON_ON_DEVICE;
	size_t end = i + 1;

	while (end < track->intervals.count && track->owners.items[end] == track->owners.items[i] &&
	       (track->intervals.items[end].reason == REASON_ON_DEVICE) == on_device)
		end++;
	return end;
}

const char *critical_path_stretch_name(const Timeline *timeline, size_t i)
{
	const Thread *track = &timeline->path.track;
	if (track->intervals.items[i].reason == REASON_ON_DEVICE)
		return reason_info[REASON_ON_DEVICE].leaf;
	return thread_label(timeline, interval_owner(timeline, track, i));
}
