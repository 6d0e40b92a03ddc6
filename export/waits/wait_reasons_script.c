/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wait_reasons_script.c - what programs that an interpreter runs wait for. Python makes its locks,
 * conditions, queues and futures of one kind of semaphore, so only its functions tell them apart.
 */
#include "runtime_functions.h"
#include "script_language.h"
#include "wait_reasons_private.h"

static const ScriptLanguage *language_of(const Timeline *timeline, const StackDef *stack)
{
	return stack->script ? script_language(timeline->scripts.items[stack->script - 1].language)
			     : NULL;
}

/* Frames that stand for others have no library. */
static bool is_of_interpreter(const Frames *frames, const Frame *frame)
{
	const Library *library;

	if (frame->lib == LIBRARY_NONE)
		return true;
	library = &frames->libraries.items[frame->lib];
	return library->interpreter || runtime_is_c_library(library->name);
}

/*
 * Goes from the innermost function of the program outwards, as long as they are the language's own.
 * If not even the first one is, the program itself takes a lock; unless a library of C waits, which
 * may wait for anything.
 */
static enum reason look_for_call(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	Timeline *timeline = explainer->timeline;
	const Frames *frames = explainer->frames;
	StackDef *stack = &timeline->stacks.items[wait->user_stack];
	const ScriptLanguage *language = language_of(timeline, stack);
	Functions functions = wait_user_functions(explainer, thread, wait);
	enum reason reason = REASON_NONE, by_default = REASON_LOCK;
	const char *found = NULL;

	for (size_t i = 0; language && i < functions.count; i++) {
		const Frame *frame = &frames->list.items[functions.frames[functions.count - 1 - i]];
		const char *name = strings_get(&frames->strings, frame->function);
		enum reason outer;

		if (!frame->script) {
			if (!is_of_interpreter(frames, frame))
				by_default = REASON_NONE;
			else if (language->is_queue(name))
				by_default = REASON_QUEUE;
			if (by_default == REASON_NONE && reason != REASON_NONE)
				break;
			continue;
		}
		outer = language->wait_reason(
			name,
			frame->source == UINT32_MAX ? ""
						    : strings_get(&frames->strings, frame->source),
			reason);
		if (!found || outer != REASON_NONE)
			found = name;
		if (outer == REASON_NONE) {
			reason = reason == REASON_NONE ? by_default : reason;
			break;
		}
		reason = outer;
	}
	if (reason != REASON_NONE && reason != REASON_POLL)
		stack->basis = strings_intern(&timeline->basis, found) + 1;
	return reason;
}

static bool is_for_event_loop(const Interval *wait)
{
	return reason_is_epoll_call(wait->syscall) &&
	       (wait->reason == REASON_UNIX_POLL || wait->reason == REASON_NETWORK_POLL ||
		wait->reason == REASON_PIPE_POLL || wait->reason == REASON_EVENT);
}

void wait_explain_script(Explainer *explainer, Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	bool is_lock = wait->reason == REASON_SEMAPHORE || wait->reason == REASON_FUTEX;
	enum reason reported;
	uint8_t *known;

	if (wait->state != STATE_BLOCKED || wait->user_stack == STACK_NONE ||
	    !explainer->timeline->stacks.items[wait->user_stack].script ||
	    !(is_lock || is_for_event_loop(wait)))
		return;
	known = &explainer->scripts[wait->user_stack];
	if (!*known)
		*known = look_for_call(explainer, thread, wait) + 1;
	reported = *known - 1;
	if (reported == REASON_NONE || reported == REASON_POLL ||
	    is_lock != (reported != REASON_EPOLL))
		return;
	thread_explain(thread, i, reported,
		       wait->rule == RULE_KERNEL || wait->rule == RULE_KERNEL_AND_CALL ||
				       wait->rule == RULE_KERNEL_AND_USER
			       ? RULE_KERNEL_AND_USER
			       : RULE_USER);
}
