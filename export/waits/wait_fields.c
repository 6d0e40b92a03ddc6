/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wait_fields.h"
#include "functions.h"
#include "labels.h"
#include "runtime_functions.h"

enum reason wait_reason(const Interval *interval)
{
	if (interval->reason > REASON_NONE && interval->reason < REASON_COUNT)
		return interval->reason;
	switch (interval->state) {
	case STATE_RUNNABLE:
		return REASON_WOKEN;
	case STATE_BLOCKED:
		return REASON_OTHER;
	default:
		return REASON_LOST;
	}
}

/* A thread that was woken still has the stack that it went to sleep with. */
static uint64_t stack_ns(const Thread *thread, size_t i)
{
	const Interval *interval = &thread->intervals.items[i];

	if (i > 0 && interval->reason == REASON_WOKEN && interval[-1].state == STATE_BLOCKED &&
	    interval[-1].user_stack == interval->user_stack)
		return interval[-1].start_ns;
	return interval->start_ns;
}

static uint32_t owner_ns_tgid(const Timeline *timeline, const Thread *thread)
{
	return timeline->processes.items[thread->process].ns_tgid;
}

StackRef wait_stack(const Timeline *timeline, const Thread *thread, size_t i)
{
	const Interval *interval = &thread->intervals.items[i];

	return (StackRef){
		.ns = stack_ns(thread, i),
		.ns_tgid = owner_ns_tgid(timeline, interval_owner(timeline, thread, i)),
		.user_stack = interval->user_stack,
		.kernel_stack = interval->kernel_stack,
		.leaf = LEAF_REASON + wait_reason(interval),
		.unsampled = interval->unsampled,
	};
}

StackRef request_stack(const Timeline *timeline, const Request *request)
{
	const Thread *thread = &timeline->threads.items[request->thread];

	return (StackRef){
		.ns = request->submit_ns,
		.ns_tgid = owner_ns_tgid(timeline, thread),
		.user_stack = request->user_stack,
		.kernel_stack = STACK_NONE,
		.leaf = LEAF_USER,
	};
}

StackRef tick_stack(const Timeline *timeline, const Thread *thread, const Tick *tick)
{
	if (thread->owners.count > 0)
		thread = &timeline->threads.items[tick->owner];
	return (StackRef){
		.ns = tick->ns,
		.ns_tgid = owner_ns_tgid(timeline, thread),
		.user_stack = tick->user_stack,
		.kernel_stack = tick->user_mode ? STACK_NONE : tick->kernel_stack,
		.leaf = tick->user_mode ? LEAF_TICK_USER : LEAF_KERNEL,
	};
}

StackRef wait_switch_out_stack(const Timeline *timeline, const Thread *thread, size_t i)
{
	const Thread *owner = interval_owner(timeline, thread, i);

	return (StackRef){
		.ns = interval_end(thread, i),
		.ns_tgid = timeline->processes.items[owner->process].ns_tgid,
		.user_stack = thread->intervals.items[i].user_stack,
		.kernel_stack = STACK_NONE,
		.leaf = owner->kernel_only ? LEAF_KERNEL : LEAF_USER,
		.unsampled = thread->intervals.items[i].unsampled,
	};
}

char *wait_call_text(int syscall)
{
	const char *label = syscall_label(syscall);

	return label ? xstrdup(label) : xasprintf("system call %d", syscall);
}

/* Returns the functions that a reason rests on; NULL: none. */
static const char *functions_text(const Timeline *timeline, const Interval *wait)
{
	bool user = wait->rule == RULE_USER || wait->rule == RULE_KERNEL_AND_USER;
	uint32_t stack = user ? wait->user_stack : wait->kernel_stack, basis;

	if (stack >= timeline->stacks.count)
		return NULL;
	basis = timeline->stacks.items[stack].basis;
	return basis ? strings_get(&timeline->basis, basis - 1) : NULL;
}

static char *basis_of(const Timeline *timeline, const Interval *interval)
{
	const char *rule = interval->rule < RULE_COUNT ? reason_rule_text[interval->rule] : NULL;
	_cleanup_free_ char *call = NULL;
	const char *functions = NULL;

	if (!rule || !*rule)
		return NULL;
	if (interval->state != STATE_BLOCKED)
		return xstrdup(rule);
	if (interval->syscall >= 0)
		call = wait_call_text(interval->syscall);
	functions = functions_text(timeline, interval);
	if (functions && call)
		return xasprintf("%s: %s, %s", rule, functions, call);
	if (!functions && !call)
		return xstrdup(rule);
	return xasprintf("%s: %s", rule, functions ? functions : call);
}

char *wait_basis(const Timeline *timeline, const Interval *interval)
{
	char *basis = basis_of(timeline, interval), *text;
	bool has_stack = interval->user_stack != STACK_NONE || interval->kernel_stack != STACK_NONE;

	if (!basis || !interval->unsampled || !has_stack)
		return basis;
	text = xasprintf("%s, of another wait there (--budget)", basis);
	free(basis);
	return text;
}

const char *wait_note(const Interval *interval)
{
	switch (interval->flags & (INTERVAL_OPEN_START | INTERVAL_OPEN_END)) {
	case INTERVAL_OPEN_START:
		return "began before the recording";
	case INTERVAL_OPEN_END:
		return "had not ended when the recording ended";
	case INTERVAL_OPEN_START | INTERVAL_OPEN_END:
		return "began before the recording and did not end in it";
	default:
		return NULL;
	}
}

static uint32_t object_of(const Timeline *timeline, const Thread *thread, size_t i)
{
	const Interval *interval = &thread->intervals.items[i];
	uint32_t number = thread_wait_request(thread, i), object = thread_wait_object(thread, i);
	const Request *request;

	if (interval->state != STATE_BLOCKED)
		return OBJECT_NONE;
	/* sendfile: a wait for the network is not for the file that is sent. */
	if (object != OBJECT_NONE &&
	    reason_info[wait_reason(interval)].category == CATEGORY_NETWORK &&
	    timeline->objects.list.items[object].kind == OBJECT_FILE)
		object = OBJECT_NONE;
	if (number == REQUEST_NONE)
		return object;
	request = &timeline->requests.list.items[number];
	/* Only the first file of a request for several files is known. */
	if (request->file == OBJECT_NONE ||
	    (request->flags & REQUEST_MIXED && object != OBJECT_NONE))
		return object;
	return request->file;
}

uint32_t wait_object(const Timeline *timeline, const Thread *thread, size_t i)
{
	return objects_alike(&timeline->objects, object_of(timeline, thread, i));
}

const char *task_name(const Timeline *timeline, uint32_t task, char name[COMM_LEN + 1])
{
	if (task >= timeline->tasks.count)
		return NULL;
	memcpy(name, timeline->tasks.items[task].comm, COMM_LEN);
	name[COMM_LEN] = '\0';
	return *name ? name : "unknown";
}

const char *interrupt_label(enum interrupt_source source)
{
	static const char *const labels[INTERRUPT_SOURCES] = {
		[INTERRUPT_UNKNOWN] = "interrupt",
		[INTERRUPT_TIMER] = "timer interrupt",
		[INTERRUPT_NETWORK] = "network interrupt",
		[INTERRUPT_BLOCK] = "block device interrupt",
		[INTERRUPT_IPI] = "inter-processor interrupt",
		[INTERRUPT_RCU] = "interrupt of RCU",
		[INTERRUPT_DEVICE] = "device interrupt",
	};

	return labels[source];
}

const char *wait_waker(const Timeline *timeline, const Thread *thread, size_t i,
		       char name[COMM_LEN + 1])
{
	const Interval *interval = &thread->intervals.items[i];
	const WakerStack *stack;

	if (!(interval->flags & INTERVAL_WAKER_IRQ))
		return task_name(timeline, interval->waker, name);
	/*
	 * A runnable thread that was woken has the waker's name already, and the waker's stack is
	 * shown with the sleep.
	 */
	stack = thread_waker_stack(thread, i > 0 && interval->reason == REASON_WOKEN ? i - 1 : i);
	return interrupt_label(stack ? stack->source : INTERRUPT_UNKNOWN);
}

#define CHAIN_KERNEL 1 /* number of functions in each part of a chain */
#define CHAIN_USER   4

/* A function that is named by its address has its library in the name. */
static const char *library_if_nameless(const Frames *frames, const Frame *frame)
{
	return frame->nameless && frame->lib != LIBRARY_NONE
		       ? frames->libraries.items[frame->lib].name
		       : NULL;
}

static char *add_functions(char *text, const Frames *frames, const uint32_t *indexes, size_t count,
			   size_t most)
{
	for (size_t left = MIN(count, most); left > 0; left--) {
		const Frame *frame = &frames->list.items[indexes[--count]];
		_cleanup_free_ char *function =
			function_text(strings_get(&frames->strings, frame->function),
				      library_if_nameless(frames, frame));
		char *longer = xasprintf("%s%s%s%s", text, *text ? " ← " : "", function,
					 frame->kernel ? " (kernel)" : "");

		free(text);
		text = longer;
	}
	return text;
}

char *chain_add_user(char *text, const Frames *frames, const uint32_t *indexes, size_t count)
{
	return add_functions(text, frames, indexes, runtime_entry(frames, indexes, count),
			     CHAIN_USER);
}

/* The wakeup's own functions are left out, because they are always the same. */
static bool is_waking(const char *function)
{
	return !strncmp(function, "try_to_wake_up", 14) || !strncmp(function, "wake_up", 7) ||
	       !strncmp(function, "__wake_up", 9) ||
	       !strncmp(function, "default_wake_function", 21) ||
	       !strncmp(function, "autoremove_wake_function", 24) || !strncmp(function, "ttwu_", 5);
}

static size_t without_waking(const Frames *frames, const uint32_t *indexes, size_t count)
{
	while (count > 0 && is_waking(strings_get(&frames->strings,
						  frames->list.items[indexes[count - 1]].function)))
		count--;
	return count;
}

char *wait_waker_chain(const Timeline *timeline, Frames *frames, const Thread *thread, size_t i)
{
	const Interval *interval = &thread->intervals.items[i];
	const WakerStack *stack = thread_waker_stack(thread, i);
	uint32_t waker = interval->waker < timeline->tasks.count
				 ? timeline->tasks.items[interval->waker].thread
				 : THREAD_NONE;
	const uint32_t *indexes;
	size_t count;
	char *text;

	if (!stack || (interval->waker == THREAD_NONE && !(interval->flags & INTERVAL_WAKER_IRQ)))
		return NULL;
	count = frames_resolve(frames, timeline, 0, 0, STACK_NONE, stack->kernel_stack, false,
			       &indexes);
	count = without_waking(frames, indexes, count);
	text = add_functions(xstrdup(""), frames, indexes, count, CHAIN_KERNEL);
	if (stack->user_stack == STACK_NONE || waker >= timeline->threads.count)
		return text;
	count = frames_resolve(
		frames, timeline, owner_ns_tgid(timeline, &timeline->threads.items[waker]),
		interval_end(thread, i), stack->user_stack, STACK_NONE, false, &indexes);
	return chain_add_user(text, frames, indexes, count);
}

const char *wait_holder(const Timeline *timeline, const Interval *interval, char name[COMM_LEN + 1])
{
	return interval->state == STATE_BLOCKED ? task_name(timeline, interval->lock_holder, name)
						: NULL;
}

uint64_t wait_delay_ns(const Thread *thread, size_t i)
{
	if (thread->intervals.items[i].state != STATE_BLOCKED || i + 1 >= thread->intervals.count ||
	    thread->intervals.items[i + 1].state != STATE_RUNNABLE)
		return UINT64_MAX;
	return interval_end(thread, i + 1) - thread->intervals.items[i + 1].start_ns;
}

char *process_end_text(const Process *process)
{
	uint32_t code = process->exit_code, signal = code & 0x7f;

	if (!process->exited_in_window)
		return xstrdup("still running when the recording ended");
	return signal ? xasprintf("killed by signal %u", signal)
		      : xasprintf("exit status %u", code >> 8 & 0xff);
}
