/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "idle.h"
#include "futex_kinds.h"
#include "idle_private.h"

enum verdict { COUNTS, IDLE, BETWEEN_JOBS };

/* A thread with more consecutive timeouts looks for work now and then. */
#define TIME_OUTS_MAX 3
/* The limit of a thread's waits that are searched for the one that its last job ended. */
#define WAITS_SEARCHED 64

/* A poll of one descriptor may be for the reply of its peer. */
static bool is_poll_of_one(const Interval *wait)
{
	return !reason_is_epoll_call(wait->syscall) &&
	       (wait->reason == REASON_NETWORK_POLL || wait->reason == REASON_UNIX_POLL ||
		wait->reason == REASON_PIPE_POLL);
}

/*
 * Returns when a worker got its last job before ns, if the loop's thread woke it for that job. 0:
 * another thread did, or the worker has slept since, or was woken from outside.
 */
static uint64_t job_since_ns(const IdleFinder *finder, uint32_t worker, uint32_t loop_thread,
			     uint64_t ns)
{
	const Timeline *timeline = finder->timeline;
	const Thread *thread = &timeline->threads.items[worker];
	size_t i = partition_point(middle, thread->intervals.count,
				   thread->intervals.items[middle].start_ns < ns);

	for (size_t looked = 0; i-- > 0 && looked < WAITS_SEARCHED;) {
		const Interval *wait = &thread->intervals.items[i];
		const WaitPlace *place;

		if (wait->state != STATE_BLOCKED || interval_end(thread, i) > ns)
			continue;
		looked++;
		if (reason_info[wait->reason].category == CATEGORY_SLEEP)
			return 0;
		if (!idle_is_candidate(finder, thread, i))
			continue;
		place = idle_place(finder, worker, idle_stack(finder, wait));
		return place && place->fork != FORK_NONE &&
				       idle_ending(finder, thread, i) == ENDING_THREAD &&
				       timeline->tasks.items[wait->waker].thread == loop_thread
			       ? interval_end(thread, i)
			       : 0;
	}
	return 0;
}

/*
 * If the wait is an event loop's and a thread of the program's own pool ended it: returns since
 * when that thread had the job that the loop gave it; else 0. Several threads that wait at one
 * place are a pool themselves, not an event loop.
 */
static uint64_t own_worker_since(const IdleFinder *finder, uint32_t number, size_t i)
{
	const Timeline *timeline = finder->timeline;
	const Thread *thread = &timeline->threads.items[number];
	const Interval *wait = &thread->intervals.items[i];
	uint32_t worker = timeline->tasks.items[wait->waker].thread;

	if (worker == number || timeline->threads.items[worker].process != thread->process ||
	    !idle_is_only_thread(finder, number, idle_stack(finder, wait)))
		return 0;
	return job_since_ns(finder, worker, number, interval_end(thread, i));
}

static enum verdict verdict_on_thread(const IdleFinder *finder, uint32_t number, size_t i,
				      const WaitPlace *place)
{
	if (!place || place->fork == FORK_NONE || own_worker_since(finder, number, i) > 0)
		return COUNTS;
	return BETWEEN_JOBS;
}

static enum verdict verdict_on(const IdleFinder *finder, uint32_t number, size_t i,
			       enum ending ending, const WaitPlace *place)
{
	const Thread *thread = &finder->timeline->threads.items[number];
	const Interval *wait = &thread->intervals.items[i];

	if (idle_is_for_end(wait))
		return ending == ENDING_OPEN ? IDLE : COUNTS;
	switch (ending) {
	case ENDING_OPEN:
		/* A thread would end it, as threads end the other waits at the place. */
		if (idle_is_awaited_place(finder, thread, idle_stack(finder, wait)))
			return COUNTS;
		/* fallthrough */
	case ENDING_OUTSIDE:
	case ENDING_TIMER:
		/* A pause within a request: its client waits meanwhile. */
		if (ending == ENDING_TIMER &&
		    idle_is_in_request(finder, number, idle_stack(finder, wait)))
			return COUNTS;
		return is_poll_of_one(wait) && !idle_is_for_client(finder, thread, i) ? COUNTS
										      : IDLE;
	case ENDING_THREAD:
		/* It counts whatever the thread that ended it does for others, as receiving does.
		 */
		if (is_poll_of_one(wait) && idle_is_for_reply(finder, thread, i))
			return COUNTS;
		return verdict_on_thread(finder, number, i, place);
	case ENDING_UNKNOWN:
		break;
	}
	return COUNTS;
}

/*
 * A wait of a thread without work ends because another thread of its process has work for it, or
 * because a peer has replied. All other waits that are classified without a loop count.
 */
static enum verdict verdict_without_loop(const IdleFinder *finder, const Thread *thread, size_t i)
{
	const Timeline *timeline = finder->timeline;
	const Interval *wait = &thread->intervals.items[i];
	enum ending ending = idle_ending(finder, thread, i);

	if (!idle_is_without_work(timeline, wait) || ending == ENDING_UNKNOWN)
		return COUNTS;
	if (ending != ENDING_THREAD)
		return IDLE;
	return timeline->threads.items[timeline->tasks.items[wait->waker].thread].process ==
			       thread->process
		       ? BETWEEN_JOBS
		       : COUNTS;
}

/* The next wait of a thread, and its verdict if a thread ended it. */
typedef struct Next {
	uint32_t stack; /* STACK_NONE: no wait that a thread ended */
	enum verdict verdict;
	unsigned int time_outs; /* the timeouts before it so far */
	uint64_t since_ns;	/* what the thread waited for did not begin before this time */
} Next;

static enum verdict judge(const IdleFinder *finder, uint32_t number, size_t i, Next *next)
{
	const Thread *thread = &finder->timeline->threads.items[number];
	const Interval *wait = &thread->intervals.items[i];
	uint32_t stack = idle_stack(finder, wait);
	const WaitPlace *place = idle_place(finder, number, stack);
	enum ending ending = idle_ending(finder, thread, i);
	enum verdict verdict;

	/*
	 * If threads end many of the waits, all timeouts belong to these waits: Python's GIL waits
	 * have time limits.
	 */
	if (ending == ENDING_TIMER && place && idle_often_by_threads(place) &&
	    interval_end(thread, i) > next->since_ns)
		return place->fork != FORK_NONE ? BETWEEN_JOBS : COUNTS;
	if (ending == ENDING_TIMER && next->stack != STACK_NONE && stack == next->stack &&
	    next->time_outs < TIME_OUTS_MAX && interval_end(thread, i) > next->since_ns) {
		next->time_outs++;
		return next->verdict;
	}
	verdict = verdict_on(finder, number, i, ending, place);
	*next = (Next){.stack = STACK_NONE};
	if (ending == ENDING_THREAD)
		*next = (Next){.stack = stack,
			       .verdict = verdict,
			       .since_ns = own_worker_since(finder, number, i)};
	return verdict;
}

/* Its last steps up to the end of a process are on the path that leads through that end. */
#define LAST_STEPS_NS NSEC_PER_MSEC

/*
 * The run waits for the end of the command's main thread, whatever that thread waits for; and of
 * the main thread of a process whose end another thread on the path waits for, unless the process
 * was killed.
 */
static bool is_awaited(const IdleFinder *finder, uint32_t number)
{
	const Timeline *timeline = finder->timeline;
	const Thread *thread = &timeline->threads.items[number];
	const Process *process;

	/* The path is not the run's if --critical-path has selected another one. */
	if (timeline->path.track.intervals.count == 0 ||
	    (timeline->command_thread < timeline->threads.count &&
	     timeline->threads.items[timeline->path.end].process !=
		     timeline->threads.items[timeline->command_thread].process))
		return false;
	if (number == timeline->command_thread)
		return true;
	if (!thread->is_main || thread->process >= timeline->processes.count)
		return false;
	process = &timeline->processes.items[thread->process];
	return process->exited_in_window && (process->exit_code & 0x7f) == 0 &&
	       finder->on_path_until[number] + LAST_STEPS_NS >= thread->end_ns;
}

static void judge_thread(const IdleFinder *finder, uint32_t number)
{
	Thread *thread = &finder->timeline->threads.items[number];
	const uint8_t *on_path = finder->on_path[number];
	bool awaited = is_awaited(finder, number);
	Next next = {.stack = STACK_NONE};

	for (size_t i = thread->intervals.count; i-- > 0;) {
		const Interval *wait = &thread->intervals.items[i];

		if (wait->state != STATE_BLOCKED)
			continue;
		if (!idle_is_candidate(finder, thread, i)) {
			next.stack = STACK_NONE;
			continue;
		}
		finder->verdicts[number][i] =
			awaited || idle_is_without_work(finder->timeline, wait)
				? verdict_without_loop(finder, thread, i)
				: judge(finder, number, i, &next);
		if (on_path && on_path[i])
			finder->verdicts[number][i] = COUNTS;
	}
}

/*
 * Reasons change after all waits have a verdict, because the rule depends on the original reasons.
 */
static void explain_thread(const IdleFinder *finder, uint32_t number)
{
	Thread *thread = &finder->timeline->threads.items[number];

	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *wait = &thread->intervals.items[i];

		if (finder->verdicts[number][i] == IDLE)
			thread_explain(thread, i, reason_idle(wait->reason), wait->rule);
		else if (finder->verdicts[number][i] == BETWEEN_JOBS)
			thread_explain(thread, i, reason_between_jobs(wait->reason), wait->rule);
	}
}

/* A byte, 0, for each interval of a thread and one more; from where arrays lie (spill.h). */
static uint8_t *bytes_new(const Thread *thread)
{
	size_t size = thread->intervals.count + 1;

	return memset(util_resize_items(NULL, 0, size), 0, size);
}

static void bytes_free(const Thread *thread, uint8_t *bytes)
{
	if (bytes)
		util_free_items(bytes, thread->intervals.count + 1);
}

/*
 * The path may cross a wait only because the thread was woken some microseconds after its waker
 * left the path. Less than this share of a wait does not make it one that the run waited for.
 */
#define ON_PATH_SHARE 100

/* Notes that `ns` of an interval of a thread are on the critical path. */
static void mark_wait(IdleFinder *finder, uint32_t owner, size_t wait, uint64_t ns)
{
	const Thread *thread;

	if (ns == 0)
		return;
	thread = &finder->timeline->threads.items[owner];
	if (ns <
	    (interval_end(thread, wait) - thread->intervals.items[wait].start_ns) / ON_PATH_SHARE)
		return;
	if (!finder->on_path[owner])
		finder->on_path[owner] = bytes_new(thread);
	finder->on_path[owner][wait] = true;
}

/* Marks the waits that are on the critical path. */
static void mark_path(IdleFinder *finder)
{
	const Thread *track = &finder->timeline->path.track;
	uint32_t last_owner = 0;
	size_t last = 0;
	uint64_t ns = 0; /* of the last wait, in successive steps */

	for (size_t i = 0; i < track->intervals.count; i++) {
		const Interval *step = &track->intervals.items[i];
		uint32_t owner = track->owners.items[i];
		const Thread *thread = &finder->timeline->threads.items[owner];
		size_t behind;

		finder->on_path_until[owner] =
			MAX(finder->on_path_until[owner], interval_end(track, i));
		if (step->state != STATE_BLOCKED || step->reason == REASON_ON_DEVICE)
			continue;
		behind =
			partition_point(middle, thread->intervals.count,
					thread->intervals.items[middle].start_ns <= step->start_ns);
		if (behind == 0)
			continue;
		if (owner != last_owner || behind - 1 != last) {
			mark_wait(finder, last_owner, last, ns);
			last_owner = owner;
			last = behind - 1;
			ns = 0;
		}
		ns += interval_end(track, i) - step->start_ns;
	}
	mark_wait(finder, last_owner, last, ns);
}

void idle_find(Timeline *timeline)
{
	size_t count = timeline->threads.count;
	IdleFinder finder = {
		.timeline = timeline,
		.on_path = xcalloc(count + 1, sizeof(uint8_t *)),
		.on_path_until = xcalloc(count + 1, sizeof(uint64_t)),
		.verdicts = xcalloc(count + 1, sizeof(uint8_t *)),
	};

	idle_places_find(&finder);
	mark_path(&finder);
	for (size_t i = 0; i < count; i++) {
		finder.verdicts[i] = bytes_new(&timeline->threads.items[i]);
		judge_thread(&finder, i);
	}
	for (size_t i = 0; i < count; i++) {
		explain_thread(&finder, i);
		bytes_free(&timeline->threads.items[i], finder.verdicts[i]);
		bytes_free(&timeline->threads.items[i], finder.on_path[i]);
	}
	idle_places_free(&finder);
	free(finder.verdicts);
	free(finder.on_path);
	free(finder.on_path_until);
}
