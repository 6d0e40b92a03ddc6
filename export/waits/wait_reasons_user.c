/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime_functions.h"
#include "script_language.h"
#include "wait_reasons_private.h"
#include <inttypes.h>

Functions wait_user_functions(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	const Timeline *timeline = explainer->timeline;
	Functions functions = {};

	if (thread->process < timeline->processes.count)
		functions.count = frames_resolve(explainer->frames, timeline,
						 timeline->processes.items[thread->process].ns_tgid,
						 wait->start_ns, wait->user_stack, STACK_NONE,
						 /* exact_kernel_leaf= */ false, &functions.frames);
	return functions;
}

/*
 * The limit of functions of the program that may be inlined between its own lock and the C library.
 */
#define INLINED_MAX 2

/* Whether an outer function's reason is more specific than that of an inner one. */
static bool is_more_specific(enum certainty outside, enum certainty inside, enum reason reported)
{
	return (inside == CERTAINTY_WEAK && outside == CERTAINTY_STRONG) ||
	       (inside == CERTAINTY_LIBRARY && outside == CERTAINTY_CALLER &&
		reported == REASON_CONDVAR);
}

/*
 * Returns the kind of futex by the user stack, and stores the deciding function; REASON_NONE:
 * unknown.
 */
static enum reason look_for_futex(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	Functions functions = wait_user_functions(explainer, thread, wait);
	Timeline *timeline = explainer->timeline;
	enum reason reason = REASON_NONE;
	const char *found = NULL;
	enum certainty certainty = CERTAINTY_WEAK;
	size_t unknown = 0;

	for (size_t i = 0; i < functions.count && certainty <= CERTAINTY_LIBRARY; i++) {
		const char *function = strings_get(&explainer->frames->strings,
						   function_name(explainer, &functions, i));
		enum certainty by;
		enum reason reported = user_reason_of(function, &by);

		if (reported == REASON_NONE && certainty == CERTAINTY_LIBRARY &&
		    ++unknown > INLINED_MAX)
			break;
		if (reported == REASON_NONE || (found && !is_more_specific(by, certainty, reason)))
			continue;
		reason = reported;
		certainty = by;
		found = function;
	}
	if (found)
		timeline->stacks.items[wait->user_stack].basis =
			strings_intern(&timeline->basis, found) + 1;
	return reason;
}

/*
 * Whether the C library was entered by a function that it does not export. Without its symbol table
 * only exports have names. A wait for a semaphore is in a function that is not exported, to which
 * the exported one only jumps; a wait for a condition variable is in the exported function itself.
 */
static bool entered_by_nameless(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	Functions functions = wait_user_functions(explainer, thread, wait);
	const Frames *frames = explainer->frames;
	const Frame *entry = NULL;

	for (size_t i = 0; i < functions.count; i++) {
		const Frame *frame = &frames->list.items[functions.frames[functions.count - 1 - i]];

		if (frame->lib == LIBRARY_NONE)
			return false;
		if (entry && frame->lib != entry->lib)
			return !strcmp(frames->libraries.items[entry->lib].name, "libc.so.6") &&
			       entry->nameless;
		entry = frame;
	}
	return false;
}

enum answer { ANSWER_UNKNOWN, ANSWER_NO, ANSWER_YES };

/* musl's lock values differ from glibc's: there 2 is a condition variable. */
static bool look_for_musl(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	Functions functions = wait_user_functions(explainer, thread, wait);
	const Frames *frames = explainer->frames;
	const char *name;
	uint32_t lib;

	if (functions.count == 0)
		return false;
	/* In a statically linked program musl is not a separate library. */
	for (size_t i = 0; i < functions.count; i++)
		if (futex_kind_is_musl(
			    strings_get(&frames->strings, function_name(explainer, &functions, i))))
			return true;
	lib = frames->list.items[functions.frames[functions.count - 1]].lib;
	if (lib == LIBRARY_NONE)
		return false;
	name = frames->libraries.items[lib].name;
	return !strncmp(name, "ld-musl-", 8) || !strncmp(name, "libc.musl-", 10) ||
	       !strcmp(name, "libc.so");
}

static bool is_called_by_musl(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	uint8_t *known = &explainer->musl[wait->user_stack];

	if (*known == ANSWER_UNKNOWN)
		*known = look_for_musl(explainer, thread, wait) ? ANSWER_YES : ANSWER_NO;
	return *known == ANSWER_YES;
}

/*
 * The same, or REASON_CONDVAR_OR_SEMAPHORE: a semaphore if the value shows either of the two.
 * REASON_FUTEX: the value shows nothing.
 */
static enum reason futex_by_stack(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	enum reason reported = look_for_futex(explainer, thread, wait);

	if (reported == REASON_NONE && is_called_by_musl(explainer, thread, wait))
		return REASON_FUTEX;
	if (reported == REASON_NONE && entered_by_nameless(explainer, thread, wait))
		return REASON_CONDVAR_OR_SEMAPHORE;
	return reported;
}

static bool is_by_condvar(enum reason reason)
{
	return reason == REASON_CONDVAR || reason == REASON_GIL || reason == REASON_GIL_HANDOVER ||
	       reason == REASON_JVM_MONITOR;
}

/*
 * Whether the word is in CPython's exported state, which has no condition variables but the GIL's
 * (since 3.7). The state has a name even in stripped programs, where take_gil() has none.
 */
static bool is_of_python(Explainer *explainer, const Thread *thread, size_t i)
{
	const Timeline *timeline = explainer->timeline;
	uint32_t object = thread_wait_object(thread, i), known;
	const Interval *wait = &thread->intervals.items[i];
	Variable variable;

	if (object == OBJECT_NONE || timeline->objects.list.items[object].kind != OBJECT_FUTEX ||
	    thread->process >= timeline->processes.count)
		return false;
	known = map_get(&explainer->python, object);
	if (known == MAP_NONE) {
		known = frames_variable(explainer->frames,
					timeline->processes.items[thread->process].ns_tgid,
					wait->start_ns, timeline->objects.list.items[object].number,
					&variable) &&
			!strcmp(variable.name, "_PyRuntime");
		map_set(&explainer->python, object, known);
	}
	return known;
}

/* A thread that wants the GIL waits with a time limit; one that has released it waits without. */
static bool has_time_limit(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	Functions functions = wait_user_functions(explainer, thread, wait);

	for (size_t i = 0; i < functions.count; i++)
		if (futex_kind_has_timeout(strings_get(&explainer->frames->strings,
						       function_name(explainer, &functions, i))))
			return true;
	return false;
}

/* Returns what the word is for, if it lies in an interpreter's lock; else REASON_NONE. */
static enum reason reason_by_lock(const Thread *thread, size_t i)
{
	const LockWait *lock = thread_lock_wait(thread, i);
	const ScriptLanguage *language = lock ? script_language(lock->language) : NULL;

	return !language || lock->offset == LOCK_NO_WORD ? REASON_NONE
							 : language->lock_reason(lock->offset);
}

void wait_explain_futex(Explainer *explainer, Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	enum reason reported;
	uint8_t *known;

	if (wait->state != STATE_BLOCKED || wait->syscall != SYSCALL_FUTEX)
		return;
	reported = reason_by_lock(thread, i);
	if (reported != REASON_NONE)
		return thread_explain(thread, i, reported, RULE_INTERPRETER);
	if (wait->user_stack == STACK_NONE || !futex_kind_reason(wait->reason))
		return;
	known = &explainer->futexes[wait->user_stack];
	if (!*known)
		*known = futex_by_stack(explainer, thread, wait) + 1;
	reported = *known - 1;
	if (reported == REASON_CONDVAR_OR_SEMAPHORE)
		reported = wait->reason == reported ? REASON_SEMAPHORE : REASON_NONE;
	/*
	 * A wait for a condition variable ends with a wait for its mutex, as glibc's value shows.
	 */
	if (reported == REASON_NONE || (wait->reason == REASON_MUTEX && is_by_condvar(reported) &&
					!is_called_by_musl(explainer, thread, wait)))
		return;
	if (reported == REASON_CONDVAR && is_of_python(explainer, thread, i))
		reported =
			has_time_limit(explainer, thread, wait) ? REASON_GIL : REASON_GIL_HANDOVER;
	thread_explain(thread, i, reported,
		       wait->rule == RULE_KERNEL || wait->rule == RULE_KERNEL_AND_CALL
			       ? RULE_KERNEL_AND_USER
			       : RULE_USER);
}

static enum go_place look_for_go(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	Functions functions = wait_user_functions(explainer, thread, wait);
	enum go_place place = GO_NOT_WAITING;
	Timeline *timeline = explainer->timeline;

	for (size_t i = 0; i < functions.count && place == GO_NOT_WAITING; i++) {
		const char *function = strings_get(&explainer->frames->strings,
						   function_name(explainer, &functions, i));

		place = user_go_place(function);
		if (place != GO_NOT_WAITING)
			timeline->stacks.items[wait->user_stack].basis =
				strings_intern(&timeline->basis, function) + 1;
	}
	return place;
}

/* Go's scheduler sleeps in epoll_wait() as well, and its monitor in nanosleep(). */
void wait_explain_go(Explainer *explainer, Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	enum reason_rule rule;
	uint8_t *known;

	if (wait->state != STATE_BLOCKED || wait->user_stack == STACK_NONE)
		return;
	if (wait->reason == REASON_GO_SCHEDULER) {
		explainer->timeline->stacks.items[wait->user_stack].without_work = true;
		return;
	}
	if (!reason_is_epoll_call(wait->syscall) && wait->syscall != SYSCALL_NANOSLEEP)
		return;
	known = &explainer->go[wait->user_stack];
	if (!*known)
		*known = look_for_go(explainer, thread, wait) + 1;
	rule = wait->rule == RULE_KERNEL ? RULE_KERNEL_AND_USER : RULE_USER;
	if (*known == GO_MONITOR + 1)
		thread_explain(thread, i, REASON_GO_SCHEDULER, rule);
	/* The one descriptor is that by which Go's other threads end the wait. */
	else if (*known == GO_WITHOUT_WORK + 1 &&
		 (wait->reason == REASON_PIPE_POLL || wait->reason == REASON_EVENT))
		thread_explain(thread, i, REASON_EPOLL, rule);
	if (*known == GO_MONITOR + 1 ||
	    (*known == GO_WITHOUT_WORK + 1 && reason_is_epoll_call(wait->syscall)))
		explainer->timeline->stacks.items[wait->user_stack].without_work = true;
}

/*
 * How many of the stack's innermost frames are the C library's. Inlined calls have frames of their
 * own among the resolved frames, but not in the stack.
 */
void wait_count_call_frames(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	const Frames *frames = explainer->frames;
	StackDef *stack;
	Functions functions;

	if (wait->state != STATE_BLOCKED || wait->user_stack == STACK_NONE ||
	    reason_idle(wait->reason) == REASON_NONE || explainer->counted[wait->user_stack])
		return;
	explainer->counted[wait->user_stack] = true;
	stack = &explainer->timeline->stacks.items[wait->user_stack];
	functions = wait_user_functions(explainer, thread, wait);
	for (size_t i = functions.count; i-- > 0;) {
		const Frame *frame = &frames->list.items[functions.frames[i]];

		if (frame->lib == LIBRARY_NONE ||
		    !runtime_is_c_library(frames->libraries.items[frame->lib].name))
			break;
		stack->call_frames += frame->inline_depth == 0;
	}
	stack->call_frames = MIN(stack->call_frames, stack->count);
}

/* ---- the names of the words that threads wait for -------------------------------------------- */

/* Indexes of processes by tgid, which several processes may have had. */
typedef struct ProcessIndex {
	Map first;	/* tgid -> Timeline::processes */
	uint32_t *next; /* the next one with the same tgid */
} ProcessIndex;

#define SAME_MAX 64 /* the limit of processes of one tgid that are searched */

static ProcessIndex process_index_make(const Timeline *timeline)
{
	ProcessIndex processes = {
		.next = xcalloc(timeline->processes.count + 1, sizeof(*processes.next))};

	for (size_t i = 0; i < timeline->processes.count; i++) {
		uint32_t tgid = timeline->processes.items[i].tgid;

		processes.next[i] = map_get(&processes.first, tgid);
		map_set(&processes.first, tgid, i);
	}
	return processes;
}

/*
 * Returns the process that had the tgid (in wallprof's PID namespace) at ns; 0: it is not recorded.
 */
static uint32_t number_at(const Timeline *timeline, const ProcessIndex *processes, uint32_t tgid,
			  uint64_t ns)
{
	uint32_t found = 0, i = map_get(&processes->first, tgid);

	/* A process that began before the window has the window's start as its own. */
	for (size_t looked = 0; i != MAP_NONE && looked < SAME_MAX; looked++) {
		const Process *process = &timeline->processes.items[i];

		found = process->ns_tgid;
		if (process->start_ns <= ns)
			break;
		i = processes->next[i];
	}
	return found;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Returns the file that is mapped there; NULL: none, or it has no path. */
static const char *file_path(Timeline *timeline, const struct rec_futex *futex)
{
	uint32_t place = objects_reference(&timeline->objects, OBJECT_FILE, futex->device,
					   futex->inode, futex->generation);

	return place == OBJECT_NONE || !timeline->objects.list.items[place].flags
		       ? NULL
		       : timeline->objects.list.items[place].name;
}

/* Returns the variable at the word; NULL: none with a name. The caller frees it. */
static char *variable_text(Frames *frames, uint32_t ns_tgid, uint64_t ns, uint64_t address)
{
	Variable variable;

	if (!frames_variable(frames, ns_tgid, ns, address, &variable))
		return NULL;
	return variable.offset ? xasprintf("%s: %s+0x%" PRIx64, variable.library, variable.name,
					   variable.offset)
			       : xasprintf("%s: %s", variable.library, variable.name);
}

/* Returns the memory that the word lies in; NULL: unknown. The caller frees it. */
static char *memory_text(Timeline *timeline, const struct rec_futex *futex)
{
	const char *path = file_path(timeline, futex);

	switch (futex->memory) {
	case MEMORY_HEAP:
		return xstrdup("heap");
	case MEMORY_STACK:
		return xstrdup("stack");
	case MEMORY_FILE:
		return path ? xasprintf("data of %s", base_name(path)) : xstrdup("data of a file");
	case MEMORY_SHARED:
		return path ? xasprintf("mapped from %s", path) : xstrdup("shared memory");
	case MEMORY_ANONYMOUS:
		return xstrdup("anonymous memory");
	default:
		return NULL;
	}
}

/* A process that no record describes has waited for it since before the window. */
static char *word_text(Timeline *timeline, Frames *frames, const ProcessIndex *processes,
		       const Object *object)
{
	const struct rec_futex *futex = (const struct rec_futex *)object->description;
	uint64_t ns = futex ? futex->h.ns : timeline->start_ns;
	uint32_t ns_tgid = number_at(timeline, processes, object->device, ns);
	char *variable = NULL;

	if (!futex || (futex->memory != MEMORY_STACK && futex->memory != MEMORY_SHARED))
		variable = variable_text(frames, ns_tgid, ns, object->number);
	return variable || !futex ? variable : memory_text(timeline, futex);
}

void wait_name_futexes(Timeline *timeline, Frames *frames)
{
	ProcessIndex processes = process_index_make(timeline);
	size_t count =
		timeline->objects.list.count; /* files may be added, which may move the list */

	for (size_t i = 0; i < count; i++) {
		Object object = timeline->objects.list.items[i];
		_cleanup_free_ char *place = NULL;

		if (object.kind != OBJECT_FUTEX)
			continue;
		place = word_text(timeline, frames, &processes, &object);
		if (!place)
			continue;
		free(object.name);
		timeline->objects.list.items[i].name =
			xasprintf("0x%" PRIx64 " (%s)", object.number, place);
	}
	map_free(&processes.first);
	free(processes.next);
}
