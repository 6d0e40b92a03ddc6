/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "idle.h"
#include "reason_user.h"
#include "timeline_private.h"
#include <asm/unistd_64.h>
#include <string.h>

enum ending {
	ENDING_UNKNOWN, /* the waker was not recorded */
	ENDING_OPEN,
	ENDING_OUTSIDE, /* by an interrupt, or a task that is not recorded */
	ENDING_TIMER,
	ENDING_THREAD,
};

enum verdict { COUNTS, IDLE, BETWEEN_JOBS };

/* Where a thread waits again and again: the user stack that it has then. */
typedef struct Place {
	uint32_t stack;		  /* Timeline::stacks */
	size_t first, last;	  /* the first and the last such wait (Thread::intervals) */
	size_t times, by_threads; /* how often, and how often a thread ended that */
	/* Frames of the outermost loop, which also calls the rest of the work; or FORK_NONE. */
	uint32_t fork;
} Place;

#define FORK_NONE UINT32_MAX

typedef struct Finder {
	Timeline *timeline;
	uint32_t *same;		 /* by number of a stack: the first one with the same frames */
	Map times;		 /* (process, stack) -> how often its threads wait there */
	uint8_t **on_path;	 /* by thread, and interval; NULL: none of the thread's is */
	uint64_t *on_path_until; /* by thread: the last moment; 0: never */
} Finder;

/* "Again and again". */
#define TIMES_MIN 3
/* Of a thread that has more places, the first ones are looked at; waits at others count. */
#define PLACES_MAX 16
/*
 * In the outermost loop nearly nothing is done that is outside of it, and less than a third of the
 * work in the functions through which it waits.
 */
#define OUTSIDE_SHARE_MAX 0.05
#define INSIDE_SHARE_MAX  0.34
/* A loop that is deeper in the program is not its outermost one, though nothing else was seen. */
#define FRAMES_MAX 16
/* So many frames the C library has below the program's, while a thread waits. */
#define WAIT_FRAMES 5
/* So few say nothing: a thread has a beginning before its loop, and a wait for a condition variable
 * can begin and end with one for its mutex. */
#define OUTSIDE_MIN 1
#define INSIDE_MIN  4
/* More time-outs one after another are those of a thread that looks for work now and then. */
#define TIME_OUTS_MAX 3
/* … unless a thread ends one of so many waits there. */
#define TIMES_PER_END 4
/* How many requests that complete after a wait has begun are searched for one that began before. */
#define REQUESTS_LOOKED_AT 256

/* ---- which waits it may be ---------------------------------------------------------------------
 */

/* One descriptor that is polled leads to one peer, and its answer may be awaited. */
static bool is_poll_of_one(const Interval *wait)
{
	bool may_be_many = wait->syscall == __NR_epoll_wait || wait->syscall == __NR_epoll_pwait ||
			   wait->syscall == __NR_epoll_pwait2;

	return !may_be_many &&
	       (wait->reason == REASON_NETWORK_POLL || wait->reason == REASON_UNIX_POLL ||
		wait->reason == REASON_PIPE_POLL);
}

/* A futex may be a lock of the program's own; and what a ring has is the thread's own requests. */
static bool can_be_for_job(const Interval *wait)
{
	return wait->reason != REASON_FUTEX && wait->reason != REASON_IO_URING &&
	       wait->reason != REASON_AIO;
}

/* Whether a request that the thread has made is in flight when the wait begins. */
static bool has_request(const Timeline *timeline, const Thread *thread, uint64_t ns)
{
	const Request *requests = timeline->requests.list.items;
	size_t i = partition_point(middle, thread->requests.count,
				   requests[thread->requests.items[middle]].end_ns <= ns);

	/* They are in order of their end: of those that end later any one may begin earlier. */
	for (size_t looked = 0; i < thread->requests.count && looked < REQUESTS_LOOKED_AT; looked++)
		if (request_begin(&requests[thread->requests.items[i++]]) <= ns)
			return true;
	/* With so many behind it there may be one: what cannot be decided counts. */
	return i < thread->requests.count;
}

static bool is_candidate(const Timeline *timeline, const Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];

	if (wait->state != STATE_BLOCKED || reason_idle(wait->reason) == REASON_NONE ||
	    (wait->sleep == SLEEP_FOR_DISK && wait->reason != REASON_IO_URING) ||
	    thread_wait_request(thread, i) != REQUEST_NONE)
		return false;
	return (wait->reason != REASON_IO_URING && wait->reason != REASON_AIO) ||
	       !has_request(timeline, thread, wait->start_ns);
}

/* A signal ended the wait and the thread: that is not what the thread waited for. */
static bool was_killed(const Thread *thread, size_t i)
{
	const WakerStack *stack = thread_waker_stack(thread, i);

	if (!thread->exited_in_window || !stack || !stack->by_signal)
		return false;
	while (++i < thread->intervals.count)
		if (thread->intervals.items[i].state == STATE_BLOCKED)
			return false;
	return true;
}

static enum ending ending_of(const Timeline *timeline, const Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	const WakerStack *stack = thread_waker_stack(thread, i);

	if (wait->flags & INTERVAL_OPEN_END || was_killed(thread, i))
		return ENDING_OPEN;
	/* Of short waits no stack is recorded. Only a time limit ends a futex's in an interrupt. */
	if (wait->flags & INTERVAL_WAKER_IRQ)
		return (stack ? stack->source == INTERRUPT_TIMER : reason_of_futex(wait->reason))
			       ? ENDING_TIMER
			       : ENDING_OUTSIDE;
	if (wait->waker >= timeline->tasks.count)
		return ENDING_UNKNOWN;
	return timeline->tasks.items[wait->waker].thread < timeline->threads.count ? ENDING_THREAD
										   : ENDING_OUTSIDE;
}

/* ---- where the outermost loop is ---------------------------------------------------------------
 */

static uint64_t frame_from_root(const Timeline *timeline, const StackDef *stack, size_t i)
{
	return timeline->frames.items[stack->first + stack->count - 1 - i];
}

/* Deeper ones are not told apart. */
#define SHARED_MAX (FRAMES_MAX + 1)

/* How many frames two stacks share, from the root on, as far as that matters. */
static size_t shared_frames(const Timeline *timeline, uint32_t a, uint32_t b)
{
	const StackDef *x = &timeline->stacks.items[a], *y = &timeline->stacks.items[b];
	size_t most = MIN(MIN(x->count, y->count), SHARED_MAX), n = 0;

	while (n < most && frame_from_root(timeline, x, n) == frame_from_root(timeline, y, n))
		n++;
	return n;
}

/* How much of a thread's work has its own stack for a fork after so many frames. */
typedef struct Forks {
	uint32_t items[SHARED_MAX + 1];
} Forks;

static void add_fork(const Finder *finder, Forks *forks, uint32_t place, uint32_t stack)
{
	if (stack != STACK_NONE && finder->same[stack] != place &&
	    finder->timeline->stacks.items[stack].defined)
		forks->items[shared_frames(finder->timeline, place, stack)]++;
}

/* What the thread did between the first and the last wait at the place, as far as it was seen. */
static void collect_forks(const Finder *finder, const Thread *thread, const Place *place,
			  Forks *forks)
{
	bool again = place->last > place->first;
	size_t first = again ? place->first : 0;
	size_t last = again ? place->last : thread->intervals.count - 1;
	uint64_t from_ns = thread->intervals.items[first].start_ns;
	uint64_t to_ns = interval_end(thread, last);
	size_t tick = partition_point(middle, thread->ticks.count,
				      thread->ticks.items[middle].ns < from_ns);

	for (size_t i = first; i <= last; i++)
		if (thread->intervals.items[i].state == STATE_BLOCKED)
			add_fork(finder, forks, place->stack,
				 thread->intervals.items[i].user_stack);
	for (; tick < thread->ticks.count && thread->ticks.items[tick].ns < to_ns; tick++)
		add_fork(finder, forks, place->stack, thread->ticks.items[tick].user_stack);
}

/*
 * The frame where half of the work forks off, if nearly none does before it and most does there. A
 * wait in the middle of a job has parts of the job on both sides.
 */
static uint32_t find_fork(const Finder *finder, const Thread *thread, const Place *place)
{
	uint32_t frames = finder->timeline->stacks.items[place->stack].count, fork = 0;
	uint64_t all = 0, before = 0;
	Forks forks = {};

	collect_forks(finder, thread, place, &forks);
	for (size_t i = 0; i <= SHARED_MAX; i++)
		all += forks.items[i];
	/* Nothing else was seen: it is the thread's only loop, if that can be its outermost one. */
	if (all == 0)
		return frames <= FRAMES_MAX + WAIT_FRAMES ? 0 : FORK_NONE;
	while (fork < SHARED_MAX && (before + forks.items[fork]) * 2 < all)
		before += forks.items[fork++];
	if (fork == 0 || fork > FRAMES_MAX || before > MAX(OUTSIDE_MIN, OUTSIDE_SHARE_MAX * all) ||
	    all - before - forks.items[fork] > MAX(INSIDE_MIN, INSIDE_SHARE_MAX * all))
		return FORK_NONE;
	return fork;
}

/* A stack that a snapshot took has another id than that of a switch at the same place. */
static void find_same(Finder *finder)
{
	const Timeline *timeline = finder->timeline;
	Map first = {};

	for (uint32_t i = 0; i < timeline->stacks.count; i++) {
		const StackDef *stack = &timeline->stacks.items[i];
		uint64_t hash = stack->count;

		for (size_t k = 0; k < stack->count; k++)
			hash = hash_mix(hash, timeline->frames.items[stack->first + k]);
		finder->same[i] = stack->defined ? map_get(&first, hash) : i;
		if (finder->same[i] == MAP_NONE) {
			finder->same[i] = i;
			map_set(&first, hash, i);
		}
	}
	map_free(&first);
}

/* Where the thread waits: one stack of those with the same frames, or STACK_NONE. */
static uint32_t stack_at(const Finder *finder, const Interval *wait)
{
	return wait->user_stack == STACK_NONE ? STACK_NONE : finder->same[wait->user_stack];
}

static uint64_t place_key(const Thread *thread, uint32_t stack)
{
	return (uint64_t)thread->process << 32 | stack;
}

typedef struct Places {
	Place items[PLACES_MAX];
	size_t count;
	bool elsewhere; /* there are several */
} Places;

static Place *find_place(Places *places, uint32_t stack)
{
	for (size_t i = 0; i < places->count; i++)
		if (places->items[i].stack == stack)
			return &places->items[i];
	return NULL;
}

/* Two places in one loop: for which of them the thread waits for its next job cannot be told. */
static void drop_rivals(const Timeline *timeline, Places *places)
{
	bool drop[PLACES_MAX] = {};

	for (size_t i = 0; i < places->count; i++) {
		const Place *a = &places->items[i];

		for (size_t k = 0; k < places->count; k++) {
			const Place *b = &places->items[k];

			drop[i] |= k != i && a->fork != FORK_NONE && b->fork != FORK_NONE &&
				   shared_frames(timeline, a->stack, b->stack) <=
					   MAX(a->fork, b->fork);
		}
	}
	for (size_t i = 0; i < places->count; i++)
		if (drop[i])
			places->items[i].fork = FORK_NONE;
}

/*
 * A thread of a pool may have waited there but once; then the others of its process count, too,
 * unless it also waited elsewhere.
 */
static bool is_again_and_again(const Finder *finder, const Thread *thread, const Places *places,
			       const Place *place)
{
	uint32_t times = map_get(&finder->times, place_key(thread, place->stack));

	return place->times >= TIMES_MIN ||
	       (times != MAP_NONE && times >= TIMES_MIN && !places->elsewhere);
}

static void add_wait(Places *places, uint32_t stack, size_t i, bool by_thread)
{
	Place *place = find_place(places, stack);

	if (!place && places->count == PLACES_MAX)
		return;
	if (!place) {
		place = &places->items[places->count++];
		*place = (Place){.stack = stack, .first = i};
	}
	place->last = i;
	place->times++;
	place->by_threads += by_thread;
}

/* Only those at which threads have ended waits: nothing is between jobs that gets none. */
static void keep_places_with_jobs(Places *places)
{
	size_t kept = 0;

	for (size_t i = 0; i < places->count; i++)
		if (places->items[i].by_threads > 0)
			places->items[kept++] = places->items[i];
	places->count = kept;
	places->elsewhere = kept > 1;
}

/* Where a stack is not whole it is not known how much of the program lies outside. */
static bool is_whole(const Finder *finder, uint32_t stack)
{
	const StackDef *def;

	if (stack == STACK_NONE)
		return false;
	def = &finder->timeline->stacks.items[stack];
	return def->defined && def->count > 1 && def->result == STACK_COMPLETE;
}

static void find_places(const Finder *finder, const Thread *thread, Places *places)
{
	const Timeline *timeline = finder->timeline;

	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *wait = &thread->intervals.items[i];
		enum ending ending;

		if (!is_candidate(timeline, thread, i) || !is_whole(finder, wait->user_stack) ||
		    !can_be_for_job(wait))
			continue;
		ending = ending_of(timeline, thread, i);
		if (ending != ENDING_OPEN)
			add_wait(places, stack_at(finder, wait), i, ending == ENDING_THREAD);
	}
	keep_places_with_jobs(places);
	for (size_t i = 0; i < places->count; i++) {
		Place *place = &places->items[i];

		place->fork = is_again_and_again(finder, thread, places, place)
				      ? find_fork(finder, thread, place)
				      : FORK_NONE;
	}
	drop_rivals(timeline, places);
}

/* ---- the rule ----------------------------------------------------------------------------------
 */

static enum verdict verdict_on(enum ending ending, const Interval *wait, const Place *place)
{
	switch (ending) {
	case ENDING_OPEN:
	case ENDING_OUTSIDE:
	case ENDING_TIMER:
		return is_poll_of_one(wait) ? COUNTS : IDLE;
	case ENDING_THREAD:
		return place && place->fork != FORK_NONE ? BETWEEN_JOBS : COUNTS;
	case ENDING_UNKNOWN:
		break;
	}
	return COUNTS;
}

/* The wait that comes next in a thread: what was decided of it, if a thread ended it. */
typedef struct Next {
	uint32_t stack; /* STACK_NONE: none that a thread ended */
	enum verdict verdict;
	unsigned int time_outs; /* that belong to it so far */
} Next;

static enum verdict judge(const Finder *finder, const Thread *thread, size_t i, const Place *place,
			  Next *next)
{
	const Interval *wait = &thread->intervals.items[i];
	enum ending ending = ending_of(finder->timeline, thread, i);
	enum verdict verdict;

	bool often = place && place->by_threads * TIMES_PER_END >= place->times;

	/* Where threads end many of the waits, all are for them: Python's for its GIL have limits.
	 */
	if (ending == ENDING_TIMER && often)
		return verdict_on(ENDING_THREAD, wait, place);
	if (ending == ENDING_TIMER && next->stack != STACK_NONE &&
	    stack_at(finder, wait) == next->stack && next->time_outs < TIME_OUTS_MAX) {
		next->time_outs++;
		return next->verdict;
	}
	verdict = verdict_on(ending, wait, place);
	*next = (Next){.stack = STACK_NONE};
	if (ending == ENDING_THREAD)
		*next = (Next){.stack = stack_at(finder, wait), .verdict = verdict};
	return verdict;
}

/* To the end of a process its last steps are on the path that leads through its end. */
#define LAST_STEPS_NS NSEC_PER_MSEC

/*
 * The run waits for the end of the main thread, whatever that waits for: of the command, and of a
 * process whose end another thread on the path waits for, unless it was killed.
 */
static bool is_awaited(const Finder *finder, uint32_t number)
{
	const Timeline *timeline = finder->timeline;
	const Thread *thread = &timeline->threads.items[number];
	const Process *process;

	/* It is no path of the run that --critical-path asks for. */
	if (timeline->path.strip.intervals.count == 0 ||
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

static void judge_thread(const Finder *finder, uint32_t number)
{
	Thread *thread = &finder->timeline->threads.items[number];
	const uint8_t *on_path = finder->on_path[number];
	Next next = {.stack = STACK_NONE};
	Places places = {};

	if (is_awaited(finder, number))
		return;
	find_places(finder, thread, &places);
	for (size_t i = thread->intervals.count; i-- > 0;) {
		const Interval *wait = &thread->intervals.items[i];
		enum verdict verdict;

		if (wait->state != STATE_BLOCKED)
			continue;
		if (!is_candidate(finder->timeline, thread, i)) {
			next.stack = STACK_NONE;
			continue;
		}
		verdict = judge(finder, thread, i, find_place(&places, stack_at(finder, wait)),
				&next);
		if (on_path && on_path[i])
			continue;
		if (verdict == IDLE)
			thread_explain(thread, i, reason_idle(wait->reason), wait->rule);
		else if (verdict == BETWEEN_JOBS)
			thread_explain(thread, i, reason_between_jobs(wait->reason), wait->rule);
	}
}

static void count_times(Finder *finder)
{
	const Timeline *timeline = finder->timeline;

	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			uint32_t stack = stack_at(finder, &thread->intervals.items[i]), times;

			if (!is_candidate(timeline, thread, i) || stack == STACK_NONE ||
			    ending_of(timeline, thread, i) != ENDING_THREAD)
				continue;
			times = map_get(&finder->times, place_key(thread, stack));
			map_set(&finder->times, place_key(thread, stack),
				times == MAP_NONE ? 1 : MIN(times + 1, TIMES_MIN));
		}
	}
}

/* The waits in which the run waited. */
static void mark_path(Finder *finder)
{
	const Thread *strip = &finder->timeline->path.strip;

	for (size_t i = 0; i < strip->intervals.count; i++) {
		const Interval *step = &strip->intervals.items[i];
		uint32_t owner = strip->owners.items[i];
		const Thread *thread = &finder->timeline->threads.items[owner];
		size_t wait;

		finder->on_path_until[owner] =
			MAX(finder->on_path_until[owner], interval_end(strip, i));
		if (step->state != STATE_BLOCKED || step->reason == REASON_ON_DEVICE)
			continue;
		wait = partition_point(middle, thread->intervals.count,
				       thread->intervals.items[middle].start_ns <= step->start_ns);
		if (!finder->on_path[owner])
			finder->on_path[owner] = xcalloc(thread->intervals.count, 1);
		if (wait > 0)
			finder->on_path[owner][wait - 1] = true;
	}
}

void idle_find(Timeline *timeline)
{
	Finder finder = {
		.timeline = timeline,
		.same = xcalloc(timeline->stacks.count + 1, sizeof(uint32_t)),
		.on_path = xcalloc(timeline->threads.count + 1, sizeof(uint8_t *)),
		.on_path_until = xcalloc(timeline->threads.count + 1, sizeof(uint64_t)),
	};

	find_same(&finder);
	count_times(&finder);
	mark_path(&finder);
	for (size_t i = 0; i < timeline->threads.count; i++)
		judge_thread(&finder, i);
	for (size_t i = 0; i < timeline->threads.count; i++)
		free(finder.on_path[i]);
	free(finder.on_path);
	free(finder.on_path_until);
	free(finder.same);
	map_free(&finder.times);
}
