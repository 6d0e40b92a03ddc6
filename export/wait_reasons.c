/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wait_reasons.h"
#include "gil.h"
#include "reason_kernel.h"
#include "reason_user.h"
#include "run_time.h"
#include "timeline_private.h"
#include "wait.h"
#include "watches.h"
#include <asm/unistd_64.h>
#include <inttypes.h>

/* What the functions of one kernel stack say. */
typedef struct StackSays {
	const KernelRule *rule; /* NULL: nothing */
	bool in_fault;		/* what the rule says is waited for by a page fault */
	bool no_fault;		/* the thread was in none, whatever for */
	bool looked;
} StackSays;

typedef struct Explainer {
	Timeline *timeline;
	Frames *frames;
	Map rule_of_name; /* Frames::strings -> kernel_rules, or NAME_NOTHING, NAME_FAULT */
	StackSays *says;  /* by Timeline::stacks */
	uint8_t *musl;	  /* likewise: whether musl is the caller, enum answer */
	uint8_t *futexes; /* likewise: what the user stacks tell, enum reason plus 1; 0: not looked
			   */
	bool *counted;	  /* likewise: whether StackDef::call_frames is known */
	uint8_t *go;	  /* likewise: enum go_place plus 1; 0: not looked */
	Map python;  /* Timeline::objects, words of memory -> whether CPython's state has them */
	Map sources; /* Timeline::stacks of wakers -> enum interrupt_source */
} Explainer;

#define NAME_NOTHING UINT32_MAX - 1
#define NAME_FAULT   UINT32_MAX - 2

static uint32_t rule_of_name(Explainer *explainer, uint32_t name)
{
	uint32_t number = map_get(&explainer->rule_of_name, name);
	const char *function;
	const KernelRule *rule;

	if (number != MAP_NONE)
		return number;
	function = strings_get(&explainer->frames->strings, name);
	rule = kernel_rule_of(function);
	number = rule			     ? (uint32_t)(rule - kernel_rules)
		 : kernel_is_fault(function) ? NAME_FAULT
					     : NAME_NOTHING;
	map_set(&explainer->rule_of_name, name, number);
	return number;
}

/* The functions of a stack, its leaf first. */
typedef struct Functions {
	const uint32_t *frames; /* Frames::list, root first */
	size_t count;
} Functions;

static uint32_t function_name(const Explainer *explainer, const Functions *functions, size_t i)
{
	return explainer->frames->list.items[functions->frames[functions->count - 1 - i]].function;
}

/* Where each system call comes by says nothing of this one. */
static bool is_entry(const char *function)
{
	return !strcmp(function, "do_syscall_64") || !strcmp(function, "x64_sys_call") ||
	       !strncmp(function, "entry_SYSCALL", 13);
}

/* "synchronize_rcu_normal ← map_update_elem": the rule's function, and the first that it serves. */
static void keep_evidence(Explainer *explainer, const Functions *functions, uint32_t stack,
			  size_t found, const KernelRule *rule)
{
	const Strings *names = &explainer->frames->strings;
	const char *function = strings_get(names, function_name(explainer, functions, found));
	const char *caller = NULL;
	_cleanup_free_ char *text = NULL;

	for (size_t i = found + 1; i < functions->count && !caller; i++) {
		uint32_t name = function_name(explainer, functions, i);
		uint32_t number = rule_of_name(explainer, name);

		if (number >= kernel_rule_count || kernel_rules[number].reason != rule->reason)
			caller = strings_get(names, name);
	}
	text = caller && !is_entry(caller) ? xasprintf("%s ← %s", function, caller)
					   : xstrdup(function);
	explainer->timeline->stacks.items[stack].evidence =
		strings_intern(&explainer->timeline->evidence, text) + 1;
}

/* The kernel stack's functions; valid until the next call. */
static Functions functions_of(Explainer *explainer, uint32_t stack)
{
	Functions functions;

	functions.count =
		frames_resolve(explainer->frames, explainer->timeline, 0, 0, STACK_NONE, stack,
			       /* exact_kernel_leaf= */ false, &functions.frames);
	return functions;
}

/* Likewise the user stack's; its names are those of when the stack was first seen. */
static Functions user_functions_of(Explainer *explainer, const Thread *thread, const Interval *wait)
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

/* So many functions of the program's may be inlined between a lock of its own and the C library. */
#define INLINED_MAX 2

/* Whether a function that lies outside of one that tells says more than that. */
static bool says_more(enum teller outside, enum teller inside, enum reason told)
{
	return (inside == TELLER_WEAK && outside == TELLER_STRONG) ||
	       (inside == TELLER_LIBRARY && outside == TELLER_CALLER && told == REASON_CONDVAR);
}

/* What a futex is by the user stack, which keeps the function that tells; REASON_NONE: unknown. */
static enum reason look_for_futex(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	Functions functions = user_functions_of(explainer, thread, wait);
	Timeline *timeline = explainer->timeline;
	enum reason reason = REASON_NONE;
	const char *found = NULL;
	enum teller teller = TELLER_WEAK;
	size_t unknown = 0;

	for (size_t i = 0; i < functions.count && teller <= TELLER_LIBRARY; i++) {
		const char *function = strings_get(&explainer->frames->strings,
						   function_name(explainer, &functions, i));
		enum teller by;
		enum reason told = user_reason_of(function, &by);

		if (told == REASON_NONE && teller == TELLER_LIBRARY && ++unknown > INLINED_MAX)
			break;
		if (told == REASON_NONE || (found && !says_more(by, teller, reason)))
			continue;
		reason = told;
		teller = by;
		found = function;
	}
	if (found)
		timeline->stacks.items[wait->user_stack].evidence =
			strings_intern(&timeline->evidence, found) + 1;
	return reason;
}

/*
 * Was the C library entered by a function that it does not export? Without its symbol table only
 * exports have names. A semaphore is waited for in one of those, to which the exported one only
 * jumps; a condition variable in the exported one itself.
 */
static bool entered_by_nameless(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	Functions functions = user_functions_of(explainer, thread, wait);
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

/* Of musl, whose values mean something else than those of glibc: there 2 is a condition variable.
 */
static bool look_for_musl(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	Functions functions = user_functions_of(explainer, thread, wait);
	const Frames *frames = explainer->frames;
	const char *name;
	uint32_t lib;

	if (functions.count == 0)
		return false;
	/* In a program that is linked statically it is no library of its own. */
	for (size_t i = 0; i < functions.count; i++)
		if (user_is_musl(
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
 * The same, or REASON_CONDVAR_OR_SEMAPHORE: if the value says one of these it is a semaphore.
 * REASON_FUTEX: the value says nothing.
 */
static enum reason futex_by_stack(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	enum reason told = look_for_futex(explainer, thread, wait);

	if (told == REASON_NONE && is_called_by_musl(explainer, thread, wait))
		return REASON_FUTEX;
	if (told == REASON_NONE && entered_by_nameless(explainer, thread, wait))
		return REASON_CONDVAR_OR_SEMAPHORE;
	return told;
}

static bool is_by_condvar(enum reason reason)
{
	return reason == REASON_CONDVAR || reason == REASON_GIL || reason == REASON_GIL_HANDOVER ||
	       reason == REASON_JVM_MONITOR;
}

/*
 * Whether the word is in CPython's state, whose only condition variables are those of the GIL
 * (since 3.7). That has a name where take_gil() has none: in programs that are stripped.
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

/* A thread that wants the GIL asks for it again and again; one that has let it go just waits. */
static bool has_time_limit(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	Functions functions = user_functions_of(explainer, thread, wait);

	for (size_t i = 0; i < functions.count; i++)
		if (user_has_time_limit(strings_get(&explainer->frames->strings,
						    function_name(explainer, &functions, i))))
			return true;
	return false;
}

static void explain_futex(Explainer *explainer, Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	enum reason told;
	uint8_t *known;

	if (wait->state != STATE_BLOCKED || wait->syscall != __NR_futex ||
	    wait->user_stack == STACK_NONE || !reason_of_futex(wait->reason))
		return;
	known = &explainer->futexes[wait->user_stack];
	if (!*known)
		*known = futex_by_stack(explainer, thread, wait) + 1;
	told = *known - 1;
	if (told == REASON_CONDVAR_OR_SEMAPHORE)
		told = wait->reason == told ? REASON_SEMAPHORE : REASON_NONE;
	/* At its end a wait for a condition variable is one for the mutex, as glibc's value says.
	 */
	if (told == REASON_NONE || (wait->reason == REASON_MUTEX && is_by_condvar(told) &&
				    !is_called_by_musl(explainer, thread, wait)))
		return;
	if (told == REASON_CONDVAR && is_of_python(explainer, thread, i))
		told = has_time_limit(explainer, thread, wait) ? REASON_GIL : REASON_GIL_HANDOVER;
	thread_explain(thread, i, told,
		       wait->rule == RULE_KERNEL || wait->rule == RULE_KERNEL_AND_CALL
			       ? RULE_KERNEL_AND_USER
			       : RULE_USER);
}

static enum go_place look_for_go(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	Functions functions = user_functions_of(explainer, thread, wait);
	enum go_place place = GO_ELSEWHERE;
	Timeline *timeline = explainer->timeline;

	for (size_t i = 0; i < functions.count && place == GO_ELSEWHERE; i++) {
		const char *function = strings_get(&explainer->frames->strings,
						   function_name(explainer, &functions, i));

		place = user_go_place(function);
		if (place != GO_ELSEWHERE)
			timeline->stacks.items[wait->user_stack].evidence =
				strings_intern(&timeline->evidence, function) + 1;
	}
	return place;
}

static bool is_epoll_call(int syscall)
{
	return syscall == __NR_epoll_wait || syscall == __NR_epoll_pwait ||
	       syscall == __NR_epoll_pwait2;
}

/* Go's scheduler sleeps in epoll_wait() as well, and its monitor in nanosleep(). */
static void explain_go(Explainer *explainer, Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	uint8_t *known;

	if (wait->state != STATE_BLOCKED || wait->user_stack == STACK_NONE)
		return;
	if (wait->reason == REASON_GO_SCHEDULER) {
		explainer->timeline->stacks.items[wait->user_stack].without_work = true;
		return;
	}
	if (!is_epoll_call(wait->syscall) && wait->syscall != __NR_nanosleep)
		return;
	known = &explainer->go[wait->user_stack];
	if (!*known)
		*known = look_for_go(explainer, thread, wait) + 1;
	if (*known == GO_MONITOR + 1)
		thread_explain(thread, i, REASON_GO_SCHEDULER,
			       wait->rule == RULE_KERNEL ? RULE_KERNEL_AND_USER : RULE_USER);
	if (*known == GO_MONITOR + 1 ||
	    (*known == GO_WITHOUT_WORK + 1 && is_epoll_call(wait->syscall)))
		explainer->timeline->stacks.items[wait->user_stack].without_work = true;
}

/* For a command's only thread what it watches is all there is. */
static bool is_alone(const Timeline *timeline, const Thread *thread)
{
	return !timeline->attached && thread->process < timeline->processes.count &&
	       timeline->processes.items[thread->process].threads.count == 1;
}

/*
 * What the switch says is of the moment, and of the descriptor at the root of the kernel's tree.
 * Waits for one epoll descriptor have one name, by all that it watches in the recording.
 */
static void explain_epoll(const Timeline *timeline, Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	const struct rec_watch *watch;
	uint32_t object, kinds, count;
	enum reason reason;

	if (wait->state != STATE_BLOCKED || !is_epoll_call(wait->syscall) ||
	    !reason_of_poll(wait->reason))
		return;
	object = thread_wait_object(thread, i);
	if (object == OBJECT_NONE)
		return;
	watch = object_watches(&timeline->objects.list.items[object]);
	if (!watch)
		return;
	count = watches_leaves(watch, &kinds);
	reason = reason_of_epoll(watch->more ? MAX(count, 2U) : count, kinds,
				 is_alone(timeline, thread));
	if (reason != wait->reason)
		thread_explain(thread, i, reason, wait->rule);
}

/* A timerfd that is polled is told by what it is called: to poll it is an event like others. */
static void explain_timer(const Explainer *explainer, Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	uint32_t object;
	const char *name;

	if (wait->state != STATE_BLOCKED || wait->reason != REASON_EVENT)
		return;
	object = thread_wait_object(thread, i);
	if (object == OBJECT_NONE)
		return;
	name = explainer->timeline->objects.list.items[object].name;
	if (!strcmp(name, "[timerfd]") || !strcmp(name, "epoll of [timerfd]"))
		thread_explain(thread, i, REASON_TIMER, wait->rule);
}

static bool is_whole(const Timeline *timeline, uint32_t stack, const Functions *functions)
{
	return functions->count > 0 && timeline->stacks.items[stack].defined &&
	       timeline->stacks.items[stack].result == STACK_COMPLETE;
}

/*
 * From the leaf outwards, up to where a page fault begins, or memory was wanted: what lies outside
 * of that is what the thread did, not what it waits for.
 */
static void look(Explainer *explainer, uint32_t stack, StackSays *says)
{
	Functions functions = functions_of(explainer, stack);
	bool inside = true, named = false;
	size_t found = 0, depth = 0;

	says->no_fault = is_whole(explainer->timeline, stack, &functions);
	for (size_t i = 0; i < functions.count; i++) {
		uint32_t name = function_name(explainer, &functions, i);
		uint32_t number = rule_of_name(explainer, name);
		const KernelRule *rule = number < kernel_rule_count ? &kernel_rules[number] : NULL;

		says->no_fault &= number != NAME_FAULT;
		named |= kernel_is_scheduling(strings_get(&explainer->frames->strings, name));
		if (!inside)
			continue;
		if (number == NAME_FAULT) {
			says->in_fault = says->rule;
			inside = false;
		}
		if (rule &&
		    (rule->reason != REASON_IDLE_WORKER || depth <= kernel_idle_depth(rule)) &&
		    kernel_rule_replaces(rule, says->rule)) {
			says->rule = rule;
			found = i;
		}
		inside &= !rule || rule->level != LEVEL_MEMORY;
		depth += !kernel_is_scheduling(strings_get(&explainer->frames->strings, name));
	}
	says->no_fault &= named;
	if (says->rule)
		keep_evidence(explainer, &functions, stack, found, says->rule);
}

/* Whether a request can have ended the wait, by what it was for. */
static bool may_end_by_request(const Interval *wait)
{
	enum category category = reason_info[wait->reason].category;

	if (wait->reason == REASON_DIRTY_THROTTLE)
		return false; /* a timer does */
	return category == CATEGORY_DISK || category == CATEGORY_FAULT ||
	       wait->reason == REASON_IO_URING || wait->reason == REASON_AIO ||
	       reason_unexplained(wait->reason);
}

/* … and by who woke the thread, as far as that was recorded. */
static bool may_be_woken_by_request(const WakerStack *waker)
{
	return !waker || (waker->source != INTERRUPT_TIMER && waker->source != INTERRUPT_NETWORK &&
			  waker->source != INTERRUPT_RCU);
}

/* One that completed on the same CPU just when a lock was let go, or a timer struck, is not why. */
static void drop_requests(Thread *thread)
{
	size_t count = 0;

	for (size_t i = 0; i < thread->request_waits.count; i++) {
		const RequestWait *wait = &thread->request_waits.items[i];

		if (may_end_by_request(&thread->intervals.items[wait->interval]) &&
		    may_be_woken_by_request(thread_waker_stack(thread, wait->interval)))
			thread->request_waits.items[count++] = *wait;
	}
	thread->request_waits.count = count;
}

/* Where neither the call nor the stack says which it is (metadata, exec, aio): what ended it does.
 */
static void tell_reads(const Timeline *timeline, Thread *thread)
{
	for (size_t i = 0; i < thread->request_waits.count; i++) {
		const RequestWait *wait = &thread->request_waits.items[i];

		if (thread->intervals.items[wait->interval].reason == REASON_AIO)
			thread_explain(thread, wait->interval, REASON_DISK_OTHER, RULE_REQUEST);
		if (thread->intervals.items[wait->interval].reason == REASON_DISK_OTHER &&
		    request_is_read(&timeline->requests.list.items[wait->request]))
			thread_explain(thread, wait->interval, REASON_DISK_READ, RULE_REQUEST);
	}
}

/* A faster disk would not help where a cgroup's limit holds the request back for half of the wait.
 */
static void find_held(const Timeline *timeline, Thread *thread)
{
	for (size_t i = 0; i < thread->request_waits.count; i++) {
		const RequestWait *wait = &thread->request_waits.items[i];
		const Request *request = &timeline->requests.list.items[wait->request];
		const Interval *interval = &thread->intervals.items[wait->interval];
		uint64_t ns = interval_end(thread, wait->interval) - interval->start_ns;
		uint64_t let_go_ns = request_let_go(request);

		if (request->held_ns > 0 && let_go_ns > interval->start_ns &&
		    MIN(let_go_ns - interval->start_ns, request->held_ns) >= ns / 2)
			thread_explain(thread, wait->interval, reason_held(interval->reason),
				       interval->rule);
	}
}

static enum interrupt_source source_of(Explainer *explainer, uint32_t stack)
{
	Functions functions = functions_of(explainer, stack);
	enum interrupt_source source = INTERRUPT_UNKNOWN;

	for (size_t i = 0; i < functions.count && source == INTERRUPT_UNKNOWN; i++)
		source = kernel_interrupt(strings_get(&explainer->frames->strings,
						      function_name(explainer, &functions, i)));
	return source;
}

/* kernel/signal.c; compilers put the first one into the others. */
static bool is_signal_function(const char *function)
{
	return !strcmp(function, "signal_wake_up_state") || !strcmp(function, "complete_signal") ||
	       !strcmp(function, "zap_other_threads");
}

static bool is_signal(Explainer *explainer, uint32_t stack)
{
	Functions functions = functions_of(explainer, stack);

	for (size_t i = 0; i < functions.count; i++)
		if (is_signal_function(strings_get(&explainer->frames->strings,
						   function_name(explainer, &functions, i))))
			return true;
	return false;
}

#define BY_SIGNAL 0x100 /* beside an enum interrupt_source */

/* Which interrupts ended waits, and which signals; the same for the same stack. */
static void tell_interrupts(Explainer *explainer, Thread *thread)
{
	for (size_t i = 0; i < thread->waker_stacks.count; i++) {
		WakerStack *waker = &thread->waker_stacks.items[i];
		uint32_t known;

		if (waker->kernel_stack == STACK_NONE)
			continue;
		known = map_get(&explainer->sources, waker->kernel_stack);
		if (known == MAP_NONE) {
			known = source_of(explainer, waker->kernel_stack) |
				(is_signal(explainer, waker->kernel_stack) ? BY_SIGNAL : 0);
			map_set(&explainer->sources, waker->kernel_stack, known);
		}
		/* Else what the soft interrupt's number says stays. */
		if (known & ~BY_SIGNAL)
			waker->source = known & ~BY_SIGNAL;
		waker->by_signal = known & BY_SIGNAL;
	}
}

/*
 * What was noted of a lock is about this wait only if it is one for such a lock: of the program's
 * own, or, in any other call, of the kernel's.
 */
static void drop_holders(Thread *thread)
{
	for (size_t i = 0; i < thread->intervals.count; i++) {
		Interval *wait = &thread->intervals.items[i];
		bool futex = wait->syscall == __NR_futex;

		if (wait->reason != REASON_KERNEL_RWSEM)
			wait->lock = SWITCH_LOCK_OTHER;
		if (wait->state != STATE_BLOCKED || (wait->reason == REASON_MUTEX && futex))
			continue;
		if ((wait->reason != REASON_KERNEL_MUTEX && wait->reason != REASON_KERNEL_RWSEM) ||
		    futex)
			wait->rival = THREAD_NONE;
	}
}

/*
 * How many of the stack's innermost frames are the C library's. Inlined calls have frames of their
 * own in what is resolved, but not in the stack.
 */
static void count_call_frames(Explainer *explainer, const Thread *thread, const Interval *wait)
{
	const Frames *frames = explainer->frames;
	StackDef *stack;
	Functions functions;

	if (wait->state != STATE_BLOCKED || wait->user_stack == STACK_NONE ||
	    reason_idle(wait->reason) == REASON_NONE || explainer->counted[wait->user_stack])
		return;
	explainer->counted[wait->user_stack] = true;
	stack = &explainer->timeline->stacks.items[wait->user_stack];
	functions = user_functions_of(explainer, thread, wait);
	for (size_t i = functions.count; i-- > 0;) {
		const Frame *frame = &frames->list.items[functions.frames[i]];

		if (frame->lib == LIBRARY_NONE ||
		    !run_time_is_c_library(frames->libraries.items[frame->lib].name))
			break;
		stack->call_frames += frame->inline_depth == 0;
	}
	stack->call_frames = MIN(stack->call_frames, stack->count);
}

/* Of a thread that is not recorded only its own name is known. */
static uint32_t mmap_lock_of(Timeline *timeline, const Thread *thread, const Interval *wait)
{
	uint32_t number = thread->process;
	const Process *process;
	_cleanup_free_ char *text = NULL;
	char name[COMM_LEN + 1];

	if (wait->lock == SWITCH_LOCK_MMAP_HOLDER) {
		const Task *holder;

		if (wait->rival >= timeline->tasks.count)
			return OBJECT_NONE;
		holder = &timeline->tasks.items[wait->rival];
		if (holder->thread >= timeline->threads.count)
			return objects_mmap_lock(&timeline->objects,
						 timeline->processes.count + 1 + holder->tid,
						 task_name(timeline, wait->rival, name));
		number = timeline->threads.items[holder->thread].process;
	}
	process = &timeline->processes.items[number];
	text = xasprintf("%s %" PRIu32, process->name ? process->name : "unknown",
			 process->ns_tgid ? process->ns_tgid : process->tgid);
	return objects_mmap_lock(&timeline->objects, number + 1, text);
}

static size_t count_mmap_locks(const Thread *thread)
{
	size_t count = 0;

	for (size_t i = 0; i < thread->intervals.count; i++)
		count += thread->intervals.items[i].lock != SWITCH_LOCK_OTHER;
	return count;
}

/* Such a lock is what a wait is for, whatever descriptor the system call has. */
static void name_mmap_locks(Timeline *timeline, Thread *thread)
{
	typeof(thread->object_waits) waits = {};
	size_t old = 0;

	if (!count_mmap_locks(thread))
		return;
	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *wait = &thread->intervals.items[i];
		const ObjectWait *items = thread->object_waits.items;
		uint32_t lock;

		if (wait->lock == SWITCH_LOCK_OTHER)
			continue;
		while (old < thread->object_waits.count && items[old].start_ns < wait->start_ns)
			*vec_push(&waits) = items[old++];
		while (old < thread->object_waits.count && items[old].start_ns == wait->start_ns)
			old++;
		lock = mmap_lock_of(timeline, thread, wait);
		if (lock != OBJECT_NONE)
			*vec_push(&waits) = (ObjectWait){wait->start_ns, lock};
	}
	while (old < thread->object_waits.count)
		*vec_push(&waits) = thread->object_waits.items[old++];
	vec_free(&thread->object_waits);
	memcpy(&thread->object_waits, &waits, sizeof(waits));
}

/* To the kernel it looks like a page that was read from a disk. */
static void tell_faults(Thread *thread)
{
	for (size_t i = 0; i < thread->faults.count; i++) {
		Fault *fault = &thread->faults.items[i];

		fault->by_program = fault->wait != WAIT_NONE &&
				    thread->intervals.items[fault->wait].reason == REASON_USERFAULT;
	}
}

/* What the stack says that a wait has; NULL: it has none. */
static const StackSays *says_of(Explainer *explainer, const Interval *wait)
{
	StackSays *says;

	if (wait->state != STATE_BLOCKED || wait->kernel_stack == STACK_NONE)
		return NULL;
	says = &explainer->says[wait->kernel_stack];
	if (!says->looked)
		look(explainer, wait->kernel_stack, says);
	says->looked = true;
	return says;
}

/*
 * Where page faults are told by tracepoints, some that are over look as if the thread were still in
 * them (bpf/fault.bpf.c); its kernel stack knows better.
 */
static void drop_faults(Explainer *explainer, Thread *thread)
{
	size_t count = 0;

	for (size_t i = 0; i < thread->faults.count; i++) {
		const Fault *fault = &thread->faults.items[i];
		const Interval *wait =
			fault->wait == WAIT_NONE ? NULL : &thread->intervals.items[fault->wait];
		const StackSays *says = wait ? says_of(explainer, wait) : NULL;

		if (fault->hook != FAULT_HOOK_SLEEP || !says || !says->no_fault)
			thread->faults.items[count++] = *fault;
		else if (wait->rule == RULE_FAULT)
			thread_explain(thread, fault->wait,
				       wait->sleep == SLEEP_FOR_DISK ? REASON_DISK_OTHER
								     : REASON_UNINTERRUPTIBLE,
				       RULE_STATE);
	}
	thread->faults.count = count;
}

static void explain_by_kernel(Explainer *explainer, Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	const StackSays *says = says_of(explainer, wait);
	enum reason_rule by;
	enum reason reason;

	if (!says || !says->rule)
		return;
	reason = kernel_reason(says->rule, wait->reason, says->in_fault, &by);
	/* A page fault or a request is what was seen to happen. */
	if (reason == wait->reason && (wait->rule == RULE_FAULT || wait->rule == RULE_REQUEST))
		by = wait->rule;
	thread_explain(thread, i, reason, by);
}

static void explain_thread(Explainer *explainer, Thread *thread)
{
	drop_faults(explainer, thread);
	for (size_t i = 0; i < thread->intervals.count; i++) {
		explain_by_kernel(explainer, thread, i);
		explain_futex(explainer, thread, i);
		explain_epoll(explainer->timeline, thread, i);
		explain_go(explainer, thread, i);
		explain_timer(explainer, thread, i);
	}
	tell_interrupts(explainer, thread);
	drop_requests(thread);
	tell_reads(explainer->timeline, thread);
	find_held(explainer->timeline, thread);
	drop_holders(thread);
	name_mmap_locks(explainer->timeline, thread);
	tell_faults(thread);
	for (size_t i = 0; i < thread->intervals.count; i++)
		count_call_frames(explainer, thread, &thread->intervals.items[i]);
}

void wait_reasons_by_stack(Timeline *timeline, Frames *frames)
{
	Explainer explainer = {
		.timeline = timeline,
		.frames = frames,
		.says = xcalloc(timeline->stacks.count + 1, sizeof(StackSays)),
		.musl = xcalloc(timeline->stacks.count + 1, sizeof(uint8_t)),
		.futexes = xcalloc(timeline->stacks.count + 1, sizeof(uint8_t)),
		.counted = xcalloc(timeline->stacks.count + 1, sizeof(bool)),
		.go = xcalloc(timeline->stacks.count + 1, sizeof(uint8_t)),
	};

	for (size_t i = 0; i < timeline->threads.count; i++)
		explain_thread(&explainer, &timeline->threads.items[i]);
	gil_find_holders(timeline);
	map_free(&explainer.rule_of_name);
	map_free(&explainer.sources);
	map_free(&explainer.python);
	free(explainer.go);
	free(explainer.says);
	free(explainer.musl);
	free(explainer.futexes);
	free(explainer.counted);
}
