/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answer_private.h"
#include "wait_fields.h"

/* A wrapper is looked for among so many callers, each outside of the one before. */
#define WRAPPERS_MAX 8
/* A wrapper may consist of several functions; so many of them may have no other caller. */
#define INNER_MAX 2
/* Frames that are looked at, from the innermost outwards; of which are these callers. */
#define FRAMES_MAX 64
/* A function that makes so much of the calls is the only caller, but for stray ones. */
#define NEARLY_ONLY 0.95
/* Where callers differ, one with a smaller share says little. */
#define LEAST_SHARE 0.25

#define NO_CALLER (UINT32_MAX - 1) /* the function is the outermost one */
#define SEVERAL	  (UINT32_MAX - 2) /* different callers, in Maker::callers */

typedef VEC(uint32_t) Chain; /* Maker::functions, the outermost first */

static bool has(const Chain *chain, uint32_t function)
{
	for (size_t i = 0; i < chain->count; i++)
		if (chain->items[i] == function)
			return true;
	return false;
}

/*
 * Makes the chain of a stack's functions that are the program's and have a name, each where it was
 * first called, with `own` in any case.
 */
static void fill_chain(Maker *maker, const Evidence *evidence, uint32_t own, Chain *chain)
{
	const uint32_t *indexes;
	size_t count = answer_frames(maker, evidence, &indexes);

	chain->count = 0;
	for (size_t k = count > FRAMES_MAX ? count - FRAMES_MAX : 0; k < count; k++) {
		uint32_t function = answer_frame_function(maker, indexes[k]);

		if (function != UINT32_MAX && !has(chain, function) &&
		    (function == own || answer_says_where(maker, function)))
			*vec_push(chain) = function;
	}
}

static uint32_t caller_at(const Chain *chain, size_t i)
{
	return i > 0 ? chain->items[i - 1] : NO_CALLER;
}

static void learn_chain(Map *callers, const Chain *chain)
{
	for (size_t i = 0; i < chain->count; i++) {
		uint32_t caller = caller_at(chain, i);
		uint32_t known = map_get(callers, chain->items[i]);

		if (known != caller)
			map_set(callers, chain->items[i], known == MAP_NONE ? caller : SEVERAL);
	}
}

/* Learns the callers of all functions in which threads waited, each stack once. */
static void learn_callers(Maker *maker)
{
	const Timeline *timeline = maker->timeline;
	_cleanup_free_ bool *seen = xcalloc(timeline->stacks.count + 1, sizeof(bool));
	Chain chain = {};

	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			const Interval *wait = &thread->intervals.items[i];
			StackRef ref;
			Evidence evidence;

			if (wait->state != STATE_BLOCKED || wait->user_stack == STACK_NONE ||
			    seen[wait->user_stack])
				continue;
			seen[wait->user_stack] = true;
			ref = wait_stack(timeline, thread, i);
			evidence = (Evidence){ref.user_stack, STACK_NONE, ref.ns_tgid, ref.ns, 0};
			fill_chain(maker, &evidence, UINT32_MAX, &chain);
			learn_chain(&maker->callers, &chain);
		}
	}
	vec_free(&chain);
	maker->knows_callers = true;
}

/* The part's stacks with one function. */
typedef struct Calls {
	VEC(Chain) chains;
	VEC(uint64_t) ns; /* of each chain */
} Calls;

static void find_calls(Maker *maker, const Portion *part, uint32_t own, Calls *calls)
{
	size_t count;
	const Evidence *list = answer_evidence(part, &count);

	for (size_t i = 0; i < count; i++) {
		Chain chain = {};

		fill_chain(maker, &list[i], own, &chain);
		if (has(&chain, own)) {
			*vec_push(&calls->chains) = chain;
			*vec_push(&calls->ns) = list[i].ns;
		} else {
			vec_free(&chain);
		}
	}
}

static void free_calls(Calls *calls)
{
	for (size_t i = 0; i < calls->chains.count; i++)
		vec_free(&calls->chains.items[i]);
	vec_free(&calls->chains);
	vec_free(&calls->ns);
}

/* A function that calls another one, and the time of these calls. */
typedef struct Caller {
	uint32_t function; /* or NO_CALLER */
	uint64_t ns;
} Caller;

/* Returns where most calls of a function come from; *ret_ns is the time of all its calls. */
static Caller main_caller(const Calls *calls, uint32_t function, uint64_t *ret_ns)
{
	Caller found = {.function = NO_CALLER};
	VEC(Caller) callers = {};
	Map index = {};

	*ret_ns = 0;
	for (size_t i = 0; i < calls->chains.count; i++) {
		const Chain *chain = &calls->chains.items[i];

		for (size_t k = 0; k < chain->count; k++) {
			uint32_t caller = caller_at(chain, k), number;

			if (chain->items[k] != function)
				continue;
			number = map_get(&index, caller);
			if (number == MAP_NONE) {
				number = callers.count;
				map_set(&index, caller, number);
				*vec_push(&callers) = (Caller){.function = caller};
			}
			callers.items[number].ns += calls->ns.items[i];
			*ret_ns += calls->ns.items[i];
		}
	}
	for (size_t i = 0; i < callers.count; i++)
		if (callers.items[i].ns > found.ns)
			found = callers.items[i];
	map_free(&index);
	vec_free(&callers);
	return found;
}

static bool has_several_callers(const Maker *maker, uint32_t function)
{
	return map_get(&maker->callers, function) == SEVERAL;
}

static AnswerPlace place_in(const Maker *maker, const Calls *calls, uint32_t own)
{
	AnswerPlace nearest = {.function = own, .caller = UINT32_MAX}, place = nearest;
	bool in_wrapper = false;

	for (size_t step = 0; step < WRAPPERS_MAX; step++) {
		uint64_t all_ns;
		Caller caller = main_caller(calls, place.function, &all_ns);
		bool is_only = caller.ns >= NEARLY_ONLY * all_ns;

		place.ns = all_ns;
		if (caller.function != NO_CALLER &&
		    (is_only || caller.ns >= LEAST_SHARE * all_ns)) {
			place.caller = caller.function;
			place.ns = caller.ns;
		}
		if (step == 0)
			nearest = place;
		in_wrapper |= has_several_callers(maker, place.function);
		if (!is_only)
			return place;
		if (caller.function == NO_CALLER || (!in_wrapper && step >= INNER_MAX))
			break;
		if (in_wrapper && !has_several_callers(maker, caller.function))
			return place;
		place = (AnswerPlace){.function = caller.function, .caller = UINT32_MAX};
	}
	return nearest;
}

AnswerPlace answer_place(Maker *maker, const Portion *part, uint32_t own)
{
	AnswerPlace place;
	Calls calls = {};

	if (!maker->knows_callers)
		learn_callers(maker);
	find_calls(maker, part, own, &calls);
	place = place_in(maker, &calls, own);
	free_calls(&calls);
	return place;
}
