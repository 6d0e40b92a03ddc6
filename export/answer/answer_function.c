/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answer_private.h"
#include "runtime_functions.h"
#include "text.h"

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

static bool has_function(Maker *maker, const uint32_t *indexes, size_t count, uint32_t function)
{
	for (size_t k = 0; k < count; k++) {
		const Frame *frame = &maker->frames->list.items[indexes[k]];

		if (frame->lib != LIBRARY_NONE &&
		    functions_number(&maker->functions, frame) == function)
			return true;
	}
	return false;
}

/*
 * Adds the functions of a stack, without wrappers of system calls, if one of them is `with`
 * (UINT32_MAX: any). Of a thread without user frames these are the kernel's.
 */
static void add_stack(Maker *maker, FunctionTimes *times, const Evidence *evidence, uint32_t stack,
		      uint32_t with)
{
	bool user = evidence->user_stack != STACK_NONE;
	const uint32_t *indexes;
	size_t count = frames_resolve(maker->frames, maker->timeline, evidence->ns_tgid,
				      evidence->stack_ns, evidence->user_stack,
				      user ? STACK_NONE : evidence->kernel_stack, false, &indexes);

	if (user)
		count = runtime_entry(maker->frames, indexes, count);
	if (with != UINT32_MAX && !has_function(maker, indexes, count, with))
		return;
	for (size_t k = 0; k < count; k++) {
		const Frame *frame = &maker->frames->list.items[indexes[k]];

		if (frame->lib != LIBRARY_NONE && !is_of_interpreter(maker, frame))
			add_frame(times, functions_number(&maker->functions, frame), stack, k + 1,
				  evidence->ns);
	}
	times->all_ns += evidence->ns;
}

static FunctionTimes function_times(Maker *maker, const Portion *part, uint32_t with)
{
	bool has_ticks = part->ticks.count > 0;
	const Evidence *list = has_ticks ? part->ticks.items : part->switch_outs.items;
	size_t count = has_ticks ? part->ticks.count : part->switch_outs.count;
	FunctionTimes times = {};

	for (size_t i = 0; i < count; i++)
		add_stack(maker, &times, &list[i], i, with);
	return times;
}

static double depth_of(const FunctionTime *time)
{
	return (double)time->depth_ns / time->ns;
}

static bool is_c_library(const Maker *maker, const FunctionTime *time)
{
	const char *library = functions_library(&maker->functions, time->function);

	return library && runtime_is_c_library(library);
}

/* Whether the function came with the language: the C library's, or one of Python's own modules. */
static bool is_of_language(const Maker *maker, const FunctionTime *time)
{
	return is_c_library(maker, time) || maker->functions.list.items[time->function].library;
}

/*
 * Whether it is one of the functions that start a program or a thread: all that runs is in it, so
 * it says nothing. All but _start() are the C library's.
 */
static bool is_start(const Maker *maker, const FunctionTime *time)
{
	static const char *const names[] = {"start_thread", "clone", "__clone", "clone3",
					    "__clone3"};
	const char *name = functions_name(&maker->functions, time->function);

	if (!strcmp(name, "_start"))
		return true;
	if (!is_c_library(maker, time))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return !strncmp(name, "__libc_start_", strlen("__libc_start_"));
}

static bool is_nameless(const Maker *maker, const FunctionTime *time)
{
	return maker->functions.list.items[time->function].nameless;
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
		    is_of_language(maker, time) != of_language || is_start(maker, time) ||
		    (below && depth_of(time) >= depth_of(below)))
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
	while (below && is_nameless(maker, below));
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
			   const FunctionTime *time)
{
	const char *program = program_of(maker, part, times);
	const char *library = functions_library(&maker->functions, time->function);
	const char *name = functions_name(&maker->functions, time->function);
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

static char *join_names(char *text, char *name)
{
	char *joined = xasprintf("%s%s%s", text, *text ? " ← " : " in ", name);

	free(text);
	free(name);
	return joined;
}

static void free_times(FunctionTimes *times)
{
	vec_free(&times->list);
	map_free(&times->index);
}

/*
 * Returns the name of the function that most calls of another one come from, of the stacks with
 * that one only: another function that has most of the time may lie in other stacks. NULL: there is
 * none. The caller frees it.
 */
static char *caller_name(Maker *maker, const Portion *part, uint32_t called)
{
	FunctionTimes times = function_times(maker, part, called);
	uint32_t number = map_get(&times.index, called);
	const FunctionTime *caller = NULL;
	char *name = NULL;

	if (number != MAP_NONE)
		caller = innermost(maker, &times, /* of_language= */ false,
				   &times.list.items[number]);
	if (caller)
		name = function_name(maker, part, &times, caller);
	free_times(&times);
	return name;
}

char *answer_function(Maker *maker, const Portion *part)
{
	FunctionTimes times = function_times(maker, part, /* with= */ UINT32_MAX);
	const FunctionTime *own = innermost(maker, &times, /* of_language= */ false, NULL);
	const FunctionTime *call = innermost(maker, &times, /* of_language= */ true, NULL);
	char *caller = NULL;
	bool waited = part->reason != REASON_NONE;
	char *text = xstrdup("");

	/* Outside of the program's functions the language has only what starts it. */
	if (call && own && depth_of(call) < depth_of(own))
		call = NULL;
	if (call && own && waited) {
		if (is_nameless(maker, own))
			own = innermost_named(maker, &times, own);
		else
			call = NULL;
	}
	if (own && waited && !call)
		caller = caller_name(maker, part, own->function);
	if (call)
		text = join_names(text, function_name(maker, part, &times, call));
	if (own)
		text = join_names(text, function_name(maker, part, &times, own));
	if (caller)
		text = join_names(text, caller);
	free_times(&times);
	return text;
}
