/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answer_private.h"
#include "runtime_functions.h"
#include "text.h"

/* What has so much of a part's time needs no share. */
#define NEARLY_ALL_OF_IT 0.95

/* Longer names of C++ functions are cut. */
#define FUNCTION_NAME 48

/* A function of a part's stacks. */
typedef struct FunctionTime {
	uint32_t function; /* Maker::functions */
	uint64_t ns;	   /* with its callees */
	uint64_t depth_ns; /* the sum of (depth in the stack × time) */
	uint32_t stack;	   /* the last one that it was counted for */
} FunctionTime;

typedef struct FunctionTimes {
	VEC(FunctionTime) list;
	Map index;
	uint64_t all_ns;
} FunctionTimes;

static void add_frame(FunctionTimes *times, uint32_t function, uint32_t stack, size_t depth,
		      uint64_t ns)
{
	uint32_t number = map_get(&times->index, function);
	FunctionTime *time;

	if (number == MAP_NONE) {
		number = times->list.count;
		map_set(&times->index, function, number);
		*vec_push(&times->list) = (FunctionTime){.function = function, .stack = UINT32_MAX};
	}
	time = &times->list.items[number];
	if (time->stack == stack) /* recursion */
		return;
	time->stack = stack;
	time->ns += ns;
	time->depth_ns += depth * ns;
}

/* Whether a frame is of the interpreter that runs the program: what that does is the program's. */
static bool is_of_interpreter(const Maker *maker, const Frame *frame)
{
	return maker->frames->libraries.items[frame->lib].interpreter;
}

const Evidence *answer_evidence(const Portion *part, size_t *ret_count)
{
	bool has_ticks = part->ticks.count > 0;

	*ret_count = has_ticks ? part->ticks.count : part->switch_outs.count;
	return has_ticks ? part->ticks.items : part->switch_outs.items;
}

size_t answer_frames(Maker *maker, const Evidence *evidence, const uint32_t **ret_frames)
{
	bool user = evidence->user_stack != STACK_NONE;
	size_t count =
		frames_resolve(maker->frames, maker->timeline, evidence->ns_tgid,
			       evidence->stack_ns, evidence->user_stack,
			       user ? STACK_NONE : evidence->kernel_stack, false, ret_frames);

	return user ? runtime_entry(maker->frames, *ret_frames, count) : count;
}

uint32_t answer_frame_function(Maker *maker, uint32_t number)
{
	const Frame *frame = &maker->frames->list.items[number];

	return frame->lib != LIBRARY_NONE && !is_of_interpreter(maker, frame)
		       ? functions_number(&maker->functions, frame)
		       : UINT32_MAX;
}

static FunctionTimes function_times(Maker *maker, const Portion *part)
{
	FunctionTimes times = {};
	size_t count;
	const Evidence *list = answer_evidence(part, &count);

	for (size_t i = 0; i < count; i++) {
		const uint32_t *frames;
		size_t depth = answer_frames(maker, &list[i], &frames);

		for (size_t k = 0; k < depth; k++) {
			uint32_t function = answer_frame_function(maker, frames[k]);

			if (function != UINT32_MAX)
				add_frame(&times, function, i, k + 1, list[i].ns);
		}
		times.all_ns += list[i].ns;
	}
	return times;
}

static double depth_of(const FunctionTime *time)
{
	return (double)time->depth_ns / time->ns;
}

static bool is_c_library(const Maker *maker, uint32_t function)
{
	const char *library = functions_library(&maker->functions, function);

	return library && runtime_is_c_library(library);
}

/* Whether the function came with the language: the C library's, or one of Python's own modules. */
static bool is_of_language(const Maker *maker, uint32_t function)
{
	return is_c_library(maker, function) || maker->functions.list.items[function].library;
}

/*
 * Whether it is one of the functions that start a program or a thread: all that runs is in it, so
 * it says nothing. All but _start() are the C library's.
 */
static bool is_start(const Maker *maker, uint32_t function)
{
	static const char *const names[] = {"start_thread", "clone", "__clone", "clone3",
					    "__clone3"};
	const char *name = functions_name(&maker->functions, function);

	if (!strcmp(name, "_start"))
		return true;
	if (!is_c_library(maker, function))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return !strncmp(name, "__libc_start_", strlen("__libc_start_"));
}

static bool is_nameless(const Maker *maker, uint32_t function)
{
	return maker->functions.list.items[function].nameless;
}

bool answer_says_where(const Maker *maker, uint32_t function)
{
	return !is_of_language(maker, function) && !is_start(maker, function) &&
	       !is_nameless(maker, function);
}

/*
 * Returns the innermost function that has most of the time, of the language's or of others, and
 * that lies outside of another one (NULL: of none). NULL: no function does.
 */
static const FunctionTime *innermost(const Maker *maker, const FunctionTimes *times,
				     bool of_language, const FunctionTime *below)
{
	const FunctionTime *found = NULL;

	for (size_t i = 0; i < times->list.count; i++) {
		const FunctionTime *time = &times->list.items[i];

		if (time->ns <= ANSWER_MOST * times->all_ns ||
		    is_of_language(maker, time->function) != of_language ||
		    is_start(maker, time->function) || (below && depth_of(time) >= depth_of(below)))
			continue;
		if (!found || depth_of(time) > depth_of(found))
			found = time;
	}
	return found;
}

/* Returns the innermost function of the program outside of another one that has a name, or NULL. */
static const FunctionTime *innermost_named(const Maker *maker, const FunctionTimes *times,
					   const FunctionTime *below)
{
	do
		below = innermost(maker, times, /* of_language= */ false, below);
	while (below && is_nameless(maker, below->function));
	return below;
}

/* Returns how long a function's name is without the types of its parameters, "f(int)". */
static size_t name_length(const char *name)
{
	size_t end = strlen(name), depth = 0;

	if (end == 0 || name[end - 1] != ')')
		return end;
	for (size_t i = end; i-- > 0;) {
		depth += name[i] == ')';
		depth -= name[i] == '(';
		if (depth > 0)
			continue;
		/* "operator()" and "(anonymous namespace)" are names. */
		return i == 0 || (i >= 8 && !memcmp(name + i - 8, "operator", 8)) ? end : i;
	}
	return end;
}

/*
 * Returns the program's file, whose _start() most of the time is under (the dynamic loader has one,
 * too), or its name.
 */
static const char *program_of(const Maker *maker, const Portion *part, const FunctionTimes *times)
{
	const Thread *thread = &maker->timeline->threads.items[part->thread];
	const FunctionTime *start = NULL;

	for (size_t i = 0; i < times->list.count; i++) {
		const FunctionTime *time = &times->list.items[i];

		if (!strcmp(functions_name(&maker->functions, time->function), "_start") &&
		    (!start || time->ns > start->ns))
			start = time;
	}
	if (start)
		return functions_library(&maker->functions, start->function);
	return maker->timeline->processes.items[thread->process].name;
}

/*
 * Returns a function's name without parameters; with its library, unless that is the program or the
 * C library.
 */
static char *function_name(const Maker *maker, const Portion *part, const FunctionTimes *times,
			   uint32_t function)
{
	const char *program = program_of(maker, part, times);
	const char *library = functions_library(&maker->functions, function);
	const char *name = functions_name(&maker->functions, function);
	size_t length = name_length(name);
	bool is_long = length > FUNCTION_NAME;
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ char *bare = xasprintf("%.*s%s", (int)MIN(length, (size_t)FUNCTION_NAME),
					      name, is_long ? "…" : "");

	if (library && (runtime_is_c_library(library) || (program && !strcmp(program, library))))
		library = NULL;
	text = function_text(bare, library);
	return text_printable(text);
}

static void free_times(FunctionTimes *times)
{
	vec_free(&times->list);
	map_free(&times->index);
}

/* Returns the time of the stacks that have both functions. */
static uint64_t time_with(Maker *maker, const Portion *part, uint32_t a, uint32_t b)
{
	uint64_t ns = 0;
	size_t count;
	const Evidence *list = answer_evidence(part, &count);

	for (size_t i = 0; i < count; i++) {
		const uint32_t *frames;
		size_t depth = answer_frames(maker, &list[i], &frames);
		bool has_a = false, has_b = false;

		for (size_t k = 0; k < depth; k++) {
			uint32_t function = answer_frame_function(maker, frames[k]);

			has_a |= function == a;
			has_b |= function == b;
		}
		ns += has_a && has_b ? list[i].ns : 0;
	}
	return ns;
}

/* Returns " in wait_latch ← lock_row"; ", 75 % in …" if that is not nearly all of the part's time.
 */
static char *place_text(const Maker *maker, const Portion *part, const FunctionTimes *times,
			const AnswerPlace *place)
{
	_cleanup_free_ char *function = function_name(maker, part, times, place->function);
	_cleanup_free_ char *caller = place->caller == UINT32_MAX
					      ? NULL
					      : function_name(maker, part, times, place->caller);
	_cleanup_free_ char *share = NULL;

	if (place->ns < NEARLY_ALL_OF_IT * times->all_ns)
		share = xasprintf(", %.0f %%", 100.0 * place->ns / times->all_ns);
	return xasprintf("%s in %s%s%s", share ? share : "", function, caller ? " ← " : "",
			 caller ? caller : "");
}

/* A function without a name, of a stripped program, has one around it that says more. */
static AnswerPlace plain_place(Maker *maker, const Portion *part, const FunctionTimes *times,
			       const FunctionTime *time)
{
	const FunctionTime *named =
		is_nameless(maker, time->function) ? innermost_named(maker, times, time) : NULL;

	if (!named)
		return (AnswerPlace){time->function, UINT32_MAX, time->ns};
	return (AnswerPlace){time->function, named->function,
			     time_with(maker, part, time->function, named->function)};
}

char *answer_function(Maker *maker, const Portion *part)
{
	FunctionTimes times = function_times(maker, part);
	const FunctionTime *own = innermost(maker, &times, /* of_language= */ false, NULL);
	const FunctionTime *call = innermost(maker, &times, /* of_language= */ true, NULL);
	bool waited = part->reason != REASON_NONE;
	AnswerPlace place = {.function = UINT32_MAX, .caller = UINT32_MAX};
	char *text = NULL;

	/* Outside of the program's functions the language has only what starts it. */
	if (call && own && depth_of(call) < depth_of(own))
		call = NULL;
	if (call && own && waited) {
		if (is_nameless(maker, own->function))
			own = innermost_named(maker, &times, own);
		else
			call = NULL;
	}
	if (call && own)
		place = (AnswerPlace){call->function, own->function,
				      time_with(maker, part, call->function, own->function)};
	else if (own && waited)
		place = answer_place(maker, part, own->function);
	else if (own || call)
		place = plain_place(maker, part, &times, own ? own : call);
	if (place.function != UINT32_MAX)
		text = place_text(maker, part, &times, &place);
	free_times(&times);
	return text ? text : xstrdup("");
}
