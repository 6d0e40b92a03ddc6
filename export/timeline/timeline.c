/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timeline.h"
#include "text.h"
#include <string.h>

const char *const timeline_state_names[STATE_COUNT] = {
	[STATE_UNKNOWN] = "unknown",
	[STATE_RUNNING] = "running",
	[STATE_RUNNABLE] = "runnable",
	[STATE_BLOCKED] = "blocked",
};

void thread_free(Thread *thread)
{
	free(thread->name);
	vec_free(&thread->intervals);
	vec_free(&thread->ticks);
	vec_free(&thread->faults);
	vec_free(&thread->requests);
	vec_free(&thread->request_waits);
	vec_free(&thread->object_waits);
	vec_free(&thread->waker_stacks);
	vec_free(&thread->lock_waits);
	vec_free(&thread->queue_moves);
	vec_free(&thread->owners);
}

void timeline_free(Timeline *timeline)
{
	if (!timeline)
		return;
	for (size_t i = 0; i < timeline->threads.count; i++)
		thread_free(&timeline->threads.items[i]);
	thread_free(&timeline->path.track);
	for (size_t i = 0; i < timeline->processes.count; i++) {
		free(timeline->processes.items[i].name);
		free(timeline->processes.items[i].path);
		free(timeline->processes.items[i].label);
		free((char *)timeline->processes.items[i].args.text);
		vec_free(&timeline->processes.items[i].threads);
	}
	for (size_t i = 0; i < timeline->meta_values.count; i++)
		free(timeline->meta_values.items[i]);
	vec_free(&timeline->meta_values);
	strings_free(&timeline->meta_keys);
	strings_free(&timeline->basis);
	vec_free(&timeline->threads);
	vec_free(&timeline->processes);
	vec_free(&timeline->tasks);
	vec_free(&timeline->stacks);
	vec_free(&timeline->frames);
	vec_free(&timeline->scripts);
	vec_free(&timeline->script_frames);
	objects_free(&timeline->objects);
	requests_free(&timeline->requests);
	for (size_t i = 0; i < timeline->cpus.count; i++)
		vec_free(&timeline->cpus.items[i].runs);
	vec_free(&timeline->cpus);
	for (size_t i = 0; i < timeline->proven_cpus.count; i++) {
		vec_free(&timeline->proven_cpus.items[i].runs);
		vec_free(&timeline->proven_cpus.items[i].taken);
	}
	vec_free(&timeline->proven_cpus);
	vec_free(&timeline->own_code);
	vec_free(&timeline->losses);
	for (size_t i = 0; i < timeline->notes.count; i++)
		free(timeline->notes.items[i]);
	vec_free(&timeline->notes);
	free(timeline);
}

/*
 * Returns the label of a process that has given itself a name: with its program's arguments, if
 * there are any, in parentheses: "mailer (python3 app.py)". A title is about the process itself.
 */
static char *renamed_label(const Process *process)
{
	const char *text = process->args.size > 0 ? process->args.text : "";
	size_t length = strnlen(text, process->args.size), end = length;
	bool has_space = memchr(text, ' ', length);
	_cleanup_free_ char *first = xstrndup(text, length), *own = NULL, *program = NULL;
	const char *path = process->path && *process->path ? process->path : first;
	const char *slash = strrchr(path, '/');

	own = text_printable(process->name);
	/* Arguments of the process that forked it say nothing about one with a name of its own. */
	if (length == 0 || process->args_inherited)
		return xstrdup(own);
	/* A title is shorter than the list that it was written over: NULs follow it. */
	while (end < process->args.size && !text[end])
		end++;
	if (end == process->args.size)
		return has_space ? args_label(process->name, process->args) : xstrdup(own);
	program = args_label(slash && slash[1] ? slash + 1 : path, process->args);
	return xasprintf("%s (%s)", own, program);
}

char *process_make_label(const Process *process)
{
	char *own, *label;

	if (!process->name || !*process->name)
		return xstrdup("unknown");
	if (!args_have_name(process->name, process->path, process->args))
		return renamed_label(process);
	own = args_label(process->name, process->args);
	if (!process->args_inherited)
		return own;
	label = xasprintf("%s (forked)", own);
	free(own);
	return label;
}

const char *thread_label(const Timeline *timeline, const Thread *thread)
{
	const Process *process = &timeline->processes.items[thread->process];

	if (!thread->name || !*thread->name)
		return "unknown";
	return thread->is_main && process->name && !strcmp(process->name, thread->name)
		       ? process->label
		       : thread->name;
}

void thread_explain(Thread *thread, size_t i, enum reason reason, enum reason_rule rule)
{
	Interval *wait = &thread->intervals.items[i];
	uint64_t ns = interval_end(thread, i) - wait->start_ns;

	/* What does not change is not written; see spill.h. */
	if (wait->reason == reason && wait->rule == rule)
		return;
	thread->reason_ledger[wait->reason] -= ns;
	thread->reason_ledger[reason] += ns;
	wait->reason = reason;
	wait->rule = rule;
}

/* Returns the object of the call that a wait is in which began at ns. */
static uint32_t call_object(const Thread *thread, uint64_t ns)
{
	size_t next = partition_point(middle, thread->object_waits.count,
				      thread->object_waits.items[middle].start_ns <= ns);

	if (next > 0 && thread->object_waits.items[next - 1].start_ns == ns)
		return thread->object_waits.items[next - 1].object;
	return OBJECT_NONE;
}

/* Returns the fault at ns, or NULL. */
static const Fault *fault_at(const Thread *thread, uint64_t ns)
{
	size_t next = partition_point(middle, thread->faults.count,
				      thread->faults.items[middle].end_ns <= ns);

	if (next < thread->faults.count && thread->faults.items[next].start_ns <= ns)
		return &thread->faults.items[next];
	return NULL;
}

uint32_t thread_wait_object(const Thread *thread, size_t interval)
{
	const Interval *wait = &thread->intervals.items[interval];
	const Fault *fault = fault_at(thread, wait->start_ns);

	if (wait->lock)
		return call_object(thread, wait->start_ns);
	/*
	 * The call only uses the program's memory, which may be mapped from another file, or from
	 * none.
	 */
	if (fault)
		return fault->file;
	return reason_info[wait->reason].category == CATEGORY_FAULT
		       ? OBJECT_NONE
		       : call_object(thread, wait->start_ns);
}

uint32_t thread_wait_request(const Thread *thread, size_t interval)
{
	size_t at = partition_point(middle, thread->request_waits.count,
				    thread->request_waits.items[middle].interval < interval);

	if (at < thread->request_waits.count &&
	    thread->request_waits.items[at].interval == interval)
		return thread->request_waits.items[at].request;
	return REQUEST_NONE;
}

/* Returns what is noted of an interval in a list of the thread, in order of start_ns; or NULL. */
#define NOTE_OF(thread, list, interval)                                                            \
	({                                                                                         \
		uint64_t ns_ = (thread)->intervals.items[interval].start_ns;                       \
		size_t at_ = partition_point(middle_, (thread)->list.count,                        \
					     (thread)->list.items[middle_].start_ns < ns_);        \
                                                                                                   \
		at_ < (thread)->list.count && (thread)->list.items[at_].start_ns == ns_            \
			? &(thread)->list.items[at_]                                               \
			: NULL;                                                                    \
	})

const WakerStack *thread_waker_stack(const Thread *thread, size_t interval)
{
	return NOTE_OF(thread, waker_stacks, interval);
}

const LockWait *thread_lock_wait(const Thread *thread, size_t interval)
{
	return NOTE_OF(thread, lock_waits, interval);
}

const QueueMove *thread_queue_move(const Thread *thread, size_t interval)
{
	return NOTE_OF(thread, queue_moves, interval);
}

const char *timeline_meta(const Timeline *timeline, const char *key)
{
	for (size_t i = 0; i < timeline->meta_values.count; i++)
		if (!strcmp(strings_get(&timeline->meta_keys, i), key))
			return timeline->meta_values.items[i];
	return NULL;
}

bool timeline_is_part(const Timeline *timeline)
{
	return timeline->cut || timeline_meta(timeline, "flight_recorder_ns");
}

bool timeline_meta_number(const Timeline *timeline, const char *key, uint64_t *ret_number)
{
	const char *text = timeline_meta(timeline, key);

	return text && parse_u64(text, ret_number) == 0;
}

bool timeline_is_own_code(const Timeline *timeline, uint64_t address)
{
	return own_code_contains(&timeline->own_code, address);
}

uint64_t timeline_lost(const Timeline *timeline, uint32_t kind)
{
	uint64_t count = 0;

	for (size_t i = 0; i < timeline->losses.count; i++) {
		const LossSpan *loss = &timeline->losses.items[i];

		if (loss->kind == kind && loss->to_ns >= timeline->start_ns &&
		    loss->from_ns <= timeline->end_ns)
			count += loss->count;
	}
	return count;
}
