/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "idle_private.h"
#include <stddef.h>
#include <string.h>

/* The number of waits at a place that make it a loop. */
#define TIMES_MIN 3
/* Only the first places of a thread are examined; waits at other places count. */
#define PLACES_MAX 16
/*
 * A loop is the outermost one if nearly no work lies outside of it, and less than a third of the
 * work lies in the functions through which it waits.
 */
#define OUTSIDE_SHARE_MAX 0.05
#define INSIDE_SHARE_MAX  0.34
/* A loop deeper in the program is not the outermost one, even if no other work was sampled. */
#define FRAMES_MAX 16
/* The number of frames of the C library inside the program's, while a thread waits. */
#define WAIT_FRAMES 5
/*
 * Fewer samples prove nothing: a thread has a beginning before its loop, and a wait for a condition
 * variable can begin and end with a wait for its mutex.
 */
#define OUTSIDE_MIN 1
#define INSIDE_MIN  4
/* If threads end one of this many waits, all timeouts are waits for these threads. */
#define TIMES_PER_END 4

#define SEVERAL_THREADS (MAP_NONE - 1)
#define NOT_AWAITED	(MAP_NONE - 1)

/* ---- the fork of a thread's work ------------------------------------------------------------- */

static uint64_t frame_from_root(const Timeline *timeline, const StackDef *stack, size_t i)
{
	return timeline->frames.items[stack->first + stack->count - 1 - i];
}

/* Forks deeper than that are not distinguished. */
#define SHARED_MAX (FRAMES_MAX + 1)

/*
 * The functions of a program that an interpreter runs, if the whole stack of them is known. In C
 * all of its loops look alike.
 */
static const ScriptStack *scripts_of(const Timeline *timeline, const StackDef *stack)
{
	const ScriptStack *script =
		stack->script ? &timeline->scripts.items[stack->script - 1] : NULL;

	return script && script->defined && script->result == SCRIPT_COMPLETE && script->count
		       ? script
		       : NULL;
}

/* All functions of C together are one frame inside of those. */
static size_t frame_count(const Timeline *timeline, const StackDef *stack)
{
	const ScriptStack *script = scripts_of(timeline, stack);

	return script ? script->count + 1 : stack->count;
}

/* The number of frames inside the program's, in which the thread only waits. */
static size_t inner_frames(const Timeline *timeline, const StackDef *stack)
{
	return scripts_of(timeline, stack) ? 1 : stack->call_frames;
}

static size_t shared_scripts(const Timeline *timeline, const ScriptStack *x, const ScriptStack *y)
{
	const struct script_frame *a = vec_at(&timeline->script_frames, x->first + x->count);
	const struct script_frame *b = vec_at(&timeline->script_frames, y->first + y->count);
	size_t most = MIN(MIN(x->count, y->count), SHARED_MAX), n = 0;

	while (n < most && a[-1 - (ptrdiff_t)n].code == b[-1 - (ptrdiff_t)n].code &&
	       a[-1 - (ptrdiff_t)n].at == b[-1 - (ptrdiff_t)n].at)
		n++;
	return n;
}

/* Returns how many frames two stacks share, from the root on, up to the limit. */
static size_t shared_frames(const Timeline *timeline, uint32_t a, uint32_t b)
{
	const StackDef *x = &timeline->stacks.items[a], *y = &timeline->stacks.items[b];
	const ScriptStack *script = scripts_of(timeline, x), *other = scripts_of(timeline, y);
	size_t most = MIN(MIN(x->count, y->count), SHARED_MAX), n = 0;

	if (script && other)
		return shared_scripts(timeline, script, other);
	if (script || other)
		return 0;
	while (n < most && frame_from_root(timeline, x, n) == frame_from_root(timeline, y, n))
		n++;
	return n;
}

/* Counts how much of a thread's work departs from a wait's stack after each number of frames. */
typedef struct Forks {
	uint32_t items[SHARED_MAX + 1];
} Forks;

/*
 * Work of the waiting call itself, such as taking its mutex again, does not count, nor does the end
 * of the process, when its memory and thus the stack is gone.
 */
static void add_fork(const IdleFinder *finder, Forks *forks, uint32_t place, uint32_t stack)
{
	const StackDef *def = &finder->timeline->stacks.items[place];
	size_t shared, inner;

	if (stack == STACK_NONE || finder->same[stack] == place ||
	    !finder->timeline->stacks.items[stack].defined ||
	    finder->timeline->stacks.items[stack].result == STACK_NO_MM)
		return;
	/* Functions that were not read say nothing of where they are. */
	if (!scripts_of(finder->timeline, def) !=
	    !scripts_of(finder->timeline, &finder->timeline->stacks.items[stack]))
		return;
	shared = shared_frames(finder->timeline, place, stack);
	inner = inner_frames(finder->timeline, def);
	if (inner == 0 || shared < frame_count(finder->timeline, def) - inner)
		forks->items[shared]++;
}

/*
 * Collects what the thread did between the first and the last wait at the place, as far as it was
 * sampled.
 */
static void collect_forks(const IdleFinder *finder, const Thread *thread, const WaitPlace *place,
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
 * The frame at which the work departs, if nearly none departs further out and most of it does
 * there. At a wait in the middle of a job, parts of the job depart on both sides.
 */
static uint32_t find_fork(const IdleFinder *finder, const Thread *thread, const WaitPlace *place)
{
	size_t frames =
		frame_count(finder->timeline, &finder->timeline->stacks.items[place->stack]);
	uint32_t fork = 0;
	uint64_t all = 0, before = 0;
	Forks forks = {};

	collect_forks(finder, thread, place, &forks);
	/* A tick in the C library's code that starts a thread shares no frame with its waits. */
	if (forks.items[0] <= OUTSIDE_MIN)
		forks.items[0] = 0;
	for (size_t i = 0; i <= SHARED_MAX; i++)
		all += forks.items[i];
	/*
	 * No other work was sampled: this is the thread's only loop, unless it is too deep for an
	 * outermost one.
	 */
	if (all == 0)
		return frames <= FRAMES_MAX + WAIT_FRAMES ? 0 : FORK_NONE;
	while (fork < SHARED_MAX && (before + forks.items[fork]) * 2 < all)
		before += forks.items[fork++];
	if (fork == 0 || fork > FRAMES_MAX || before > MAX(OUTSIDE_MIN, OUTSIDE_SHARE_MAX * all) ||
	    all - before - forks.items[fork] > MAX(INSIDE_MIN, INSIDE_SHARE_MAX * all))
		return FORK_NONE;
	return fork;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* A snapshot's stack and a switch's stack at the same place have different ids. */
static void find_same(IdleFinder *finder)
{
	const Timeline *timeline = finder->timeline;
	Map first = {};

	finder->same = xcalloc(timeline->stacks.count + 1, sizeof(uint32_t));
	for (uint32_t i = 0; i < timeline->stacks.count; i++) {
		const StackDef *stack = &timeline->stacks.items[i];
		const ScriptStack *script = scripts_of(timeline, stack);
		uint64_t hash = stack->count;

		for (size_t k = 0; k < stack->count; k++)
			hash = hash_mix(hash, timeline->frames.items[stack->first + k]);
		for (size_t k = 0; script && k < script->count; k++)
			hash = hash_mix(
				hash_mix(hash,
					 timeline->script_frames.items[script->first + k].code),
				timeline->script_frames.items[script->first + k].at);
		finder->same[i] = stack->defined ? map_get(&first, hash) : i;
		if (finder->same[i] == MAP_NONE) {
			finder->same[i] = i;
			map_set(&first, hash, i);
		}
	}
	map_free(&first);
}

uint32_t idle_stack(const IdleFinder *finder, const Interval *wait)
{
	return wait->user_stack == STACK_NONE ? STACK_NONE : finder->same[wait->user_stack];
}

static uint64_t place_key(const Thread *thread, uint32_t stack)
{
	return (uint64_t)thread->process << 32 | stack;
}

static WaitPlace *find_place(const WaitPlaces *places, uint32_t stack)
{
	for (size_t i = 0; i < places->count; i++)
		if (places->items[i].stack == stack)
			return &places->items[i];
	return NULL;
}

const WaitPlace *idle_place(const IdleFinder *finder, uint32_t thread, uint32_t stack)
{
	return find_place(&finder->places[thread], stack);
}

static bool gets_jobs(const WaitPlace *place)
{
	return place->for_job && place->by_threads > 0;
}

/* Returns whether place a lies in the loop of place b, where the thread gets jobs as well. */
static bool competes(const Timeline *timeline, const WaitPlace *a, const WaitPlace *b)
{
	size_t shared;

	if (a == b || a->fork == FORK_NONE || b->fork == FORK_NONE)
		return false;
	/* Any thread may wait once at its beginning. */
	if (!b->for_client && b->times < TIMES_MIN && a->times >= TIMES_MIN)
		return false;
	shared = shared_frames(timeline, a->stack, b->stack);
	/* Outside of its outermost loop a thread gets no jobs from clients. */
	if (b->for_client && shared < a->fork)
		return true;
	/* No work was sampled besides the waits at b, so the depth of its loop is unknown. */
	if (b->fork == 0 && a->fork > 0)
		return false;
	if (shared < b->fork || shared > MAX(a->fork, b->fork))
		return false;
	/* A thread that gets jobs from clients gets none from elsewhere. */
	return b->for_client || (gets_jobs(b) && !a->for_client);
}

static bool has_competitor(const Timeline *timeline, const WaitPlaces *places,
			   const WaitPlace *place)
{
	for (size_t i = 0; i < places->count; i++)
		if (competes(timeline, place, &places->items[i]))
			return true;
	return false;
}

/* The loops that serve clients are those of the thread that has served most requests. */
static void share_client_forks(IdleFinder *finder)
{
	const Timeline *timeline = finder->timeline;
	Map most = {}, forks = {};

	for (size_t t = 0; t < timeline->threads.count; t++)
		for (size_t i = 0; i < finder->places[t].count; i++) {
			const WaitPlace *place = &finder->places[t].items[i];
			uint64_t key = place_key(&timeline->threads.items[t], place->stack);
			uint32_t times = map_get(&most, key);

			if (!place->for_client || place->fork == FORK_NONE ||
			    (times != MAP_NONE && times >= place->times))
				continue;
			map_set(&most, key, place->times);
			map_set(&forks, key, place->fork);
		}
	for (size_t t = 0; t < timeline->threads.count; t++)
		for (size_t i = 0; i < finder->places[t].count; i++) {
			WaitPlace *place = &finder->places[t].items[i];
			uint32_t fork = map_get(
				&forks, place_key(&timeline->threads.items[t], place->stack));

			if (fork != MAP_NONE && place->fork != FORK_NONE)
				place->fork = fork;
		}
	map_free(&most);
	map_free(&forks);
}

/* Returns whether another thread shows that the process's threads get their jobs there. */
static bool is_job_place(const IdleFinder *finder, const Thread *thread, const WaitPlace *place)
{
	return map_get(&finder->job_places, place_key(thread, place->stack)) != MAP_NONE;
}

static void find_job_places(IdleFinder *finder, uint32_t number)
{
	const Thread *thread = &finder->timeline->threads.items[number];
	const WaitPlaces *places = &finder->places[number];

	for (size_t i = 0; i < places->count; i++) {
		const WaitPlace *place = &places->items[i];

		if (place->fork != FORK_NONE && place->times >= TIMES_MIN && gets_jobs(place) &&
		    !has_competitor(finder->timeline, places, place))
			map_set(&finder->job_places, place_key(thread, place->stack), number);
	}
}

/*
 * If two places lie in one loop, it is unknown at which of them the thread waits for its next job,
 * unless other threads of its pool show it.
 */
static void drop_competitors(const IdleFinder *finder, uint32_t number)
{
	const Thread *thread = &finder->timeline->threads.items[number];
	WaitPlaces *places = &finder->places[number];
	bool drop[PLACES_MAX] = {};

	for (size_t i = 0; i < places->count; i++) {
		const WaitPlace *a = &places->items[i];

		for (size_t k = 0; k < places->count; k++) {
			const WaitPlace *b = &places->items[k];

			drop[i] |= competes(finder->timeline, a, b) &&
				   (!is_job_place(finder, thread, a) ||
				    is_job_place(finder, thread, b));
		}
	}
	for (size_t i = 0; i < places->count; i++)
		if (drop[i])
			places->items[i].fork = FORK_NONE;
}

/* Returns whether a place lies in another place's loop that is deeper than the fork. */
static bool is_in_inner_loop(const Timeline *timeline, const WaitPlaces *places,
			     const WaitPlace *place, uint32_t fork)
{
	for (size_t i = 0; i < places->count; i++) {
		const WaitPlace *other = &places->items[i];

		if (other->fork != FORK_NONE && other->fork > fork &&
		    shared_frames(timeline, place->stack, other->stack) >= other->fork)
			return true;
	}
	return false;
}

/*
 * A thread of a pool may have waited there only once. Then the waits of the process's other threads
 * there count as well, unless it also waited elsewhere outside of the loops within its jobs.
 */
static uint32_t find_shared_fork(const IdleFinder *finder, const Thread *thread,
				 const WaitPlaces *places, const WaitPlace *place)
{
	uint32_t times = map_get(&finder->times, place_key(thread, place->stack)), fork;

	if (times == MAP_NONE || times < TIMES_MIN)
		return FORK_NONE;
	fork = find_fork(finder, thread, place);
	for (size_t i = 0; i < places->count && fork != FORK_NONE; i++) {
		const WaitPlace *other = &places->items[i];

		if (other != place && gets_jobs(other) &&
		    !is_in_inner_loop(finder->timeline, places, other, fork))
			fork = FORK_NONE;
	}
	return fork;
}

static void add_wait(const IdleFinder *finder, const Thread *thread, size_t i, bool for_job,
		     bool for_client, WaitPlaces *places)
{
	const Interval *wait = &thread->intervals.items[i];
	uint32_t stack = idle_stack(finder, wait);
	WaitPlace *place = find_place(places, stack);

	if (!place && places->count == PLACES_MAX)
		return;
	if (!place) {
		place = vec_push(places);
		*place = (WaitPlace){.stack = stack, .first = i, .fork = FORK_NONE};
	}
	place->last = i;
	place->times++;
	place->by_threads += idle_ending(finder, thread, i) == ENDING_THREAD;
	place->for_job |= for_job;
	place->for_client |= for_client;
}

/* A truncated stack does not show how much of the program lies outside of it. */
static bool is_whole(const IdleFinder *finder, uint32_t stack)
{
	const StackDef *def;

	if (stack == STACK_NONE)
		return false;
	def = &finder->timeline->stacks.items[stack];
	return def->defined && def->count > 1 && def->result == STACK_COMPLETE;
}

static void collect_places(IdleFinder *finder, uint32_t number)
{
	const Thread *thread = &finder->timeline->threads.items[number];
	WaitPlaces *places = &finder->places[number];
	size_t kept = 0;

	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *wait = &thread->intervals.items[i];
		bool for_job, for_client;

		if (wait->state != STATE_BLOCKED || !is_whole(finder, wait->user_stack))
			continue;
		for_job = idle_can_be_for_job(finder, wait) && idle_is_candidate(finder, thread, i);
		for_client = idle_is_for_client(finder, thread, i);
		if (for_job || for_client)
			add_wait(finder, thread, i, for_job, for_client, places);
	}
	/* A place where the thread gets no jobs cannot be between jobs. */
	for (size_t i = 0; i < places->count; i++)
		if (gets_jobs(&places->items[i]) || places->items[i].for_client)
			places->items[kept++] = places->items[i];
	places->count = kept;
	for (size_t i = 0; i < places->count; i++)
		if (places->items[i].times >= TIMES_MIN)
			places->items[i].fork = find_fork(finder, thread, &places->items[i]);
	for (size_t i = 0; i < places->count; i++)
		if (places->items[i].times < TIMES_MIN)
			places->items[i].fork =
				find_shared_fork(finder, thread, places, &places->items[i]);
}

/* Counts the waits at each place, and whether one thread or several wait there. */
static void count_waits(IdleFinder *finder, uint32_t number)
{
	const Thread *thread = &finder->timeline->threads.items[number];

	for (size_t i = 0; i < thread->intervals.count; i++) {
		uint32_t stack = idle_stack(finder, &thread->intervals.items[i]), times, other;
		uint64_t key = place_key(thread, stack);

		if (stack == STACK_NONE || !idle_is_candidate(finder, thread, i))
			continue;
		times = map_get(&finder->times, key);
		if (times == MAP_NONE || times < TIMES_MIN)
			map_set(&finder->times, key, times == MAP_NONE ? 1 : times + 1);
		other = map_get(&finder->threads, key);
		if (other != number && other != SEVERAL_THREADS)
			map_set(&finder->threads, key,
				other == MAP_NONE ? number : SEVERAL_THREADS);
	}
}

/*
 * Counts the waits at each place that threads end and that count, if none of them is between jobs.
 */
static void count_awaited(IdleFinder *finder, uint32_t number)
{
	const Thread *thread = &finder->timeline->threads.items[number];
	const WaitPlaces *places = &finder->places[number];

	for (size_t i = 0; i < places->count; i++) {
		const WaitPlace *place = &places->items[i];
		uint64_t key = place_key(thread, place->stack);
		uint32_t times = map_get(&finder->awaited, key);

		if (place->fork != FORK_NONE)
			map_set(&finder->awaited, key, NOT_AWAITED);
		else if (times != NOT_AWAITED)
			map_set(&finder->awaited, key,
				(times == MAP_NONE ? 0 : times) +
					MIN(place->by_threads, TIMES_MIN));
	}
}

bool idle_is_awaited_place(const IdleFinder *finder, const Thread *thread, uint32_t stack)
{
	uint32_t times = stack == STACK_NONE ? MAP_NONE
					     : map_get(&finder->awaited, place_key(thread, stack));

	return times != MAP_NONE && times != NOT_AWAITED && times >= TIMES_MIN;
}

bool idle_is_in_request(const IdleFinder *finder, uint32_t number, uint32_t stack)
{
	const WaitPlaces *places = &finder->places[number];

	for (size_t i = 0; stack != STACK_NONE && i < places->count; i++) {
		const WaitPlace *place = &places->items[i];

		if (place->for_client && place->fork != FORK_NONE && place->stack != stack &&
		    shared_frames(finder->timeline, place->stack, stack) == place->fork)
			return true;
	}
	return false;
}

bool idle_is_only_thread(const IdleFinder *finder, uint32_t number, uint32_t stack)
{
	return map_get(&finder->threads,
		       place_key(&finder->timeline->threads.items[number], stack)) == number;
}

bool idle_often_by_threads(const WaitPlace *place)
{
	return place->by_threads >= TIMES_MIN && place->by_threads * TIMES_PER_END >= place->times;
}

void idle_places_find(IdleFinder *finder)
{
	size_t count = finder->timeline->threads.count;

	finder->places = xcalloc(count + 1, sizeof(WaitPlaces));
	find_same(finder);
	idle_find_clients(finder);
	for (size_t i = 0; i < count; i++)
		count_waits(finder, i);
	for (size_t i = 0; i < count; i++)
		collect_places(finder, i);
	share_client_forks(finder);
	for (size_t i = 0; i < count; i++)
		find_job_places(finder, i);
	for (size_t i = 0; i < count; i++)
		drop_competitors(finder, i);
	for (size_t i = 0; i < count; i++)
		count_awaited(finder, i);
}

void idle_places_free(IdleFinder *finder)
{
	for (size_t i = 0; i < finder->timeline->threads.count; i++)
		vec_free(&finder->places[i]);
	free(finder->places);
	free(finder->same);
	free(finder->for_clients);
	map_free(&finder->times);
	map_free(&finder->threads);
	map_free(&finder->job_places);
	map_free(&finder->awaited);
}
