/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "epoll_watches.h"
#include "interpreter_locks.h"
#include "wait_fields.h"
#include "wait_reasons_private.h"
#include <inttypes.h>

#define NAME_NOTHING (UINT32_MAX - 1)
#define NAME_FAULT   (UINT32_MAX - 2)

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

/* Every system call passes through these functions, so they say nothing about the wait. */
static bool is_entry(const char *function)
{
	return !strcmp(function, "do_syscall_64") || !strcmp(function, "x64_sys_call") ||
	       !strncmp(function, "entry_SYSCALL", 13);
}

/*
 * Returns the rule's function, and the first one that it works for: "synchronize_rcu_normal ←
 * map_update_elem".
 */
static void store_basis(Explainer *explainer, const Functions *functions, uint32_t stack,
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
	explainer->timeline->stacks.items[stack].basis =
		strings_intern(&explainer->timeline->basis, text) + 1;
}

/* Returns the kernel stack's functions; valid until the next call. */
static Functions functions_of(Explainer *explainer, uint32_t stack)
{
	Functions functions;

	functions.count =
		frames_resolve(explainer->frames, explainer->timeline, 0, 0, STACK_NONE, stack,
			       /* exact_kernel_leaf= */ false, &functions.frames);
	return functions;
}

/* In a command with one thread, what epoll watches is everything that the thread can wait for. */
static bool is_alone(const Timeline *timeline, const Thread *thread)
{
	return !timeline->attached && thread->process < timeline->processes.count &&
	       timeline->processes.items[thread->process].threads.count == 1;
}

/*
 * The switch describes the descriptor at the root of the kernel's tree at that moment. Waits for
 * one epoll descriptor have one name, by all that it watches in the recording.
 */
static void explain_epoll(const Timeline *timeline, Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	const struct rec_watch *watch;
	uint32_t object, kinds, count;
	enum reason reason;

	if (wait->state != STATE_BLOCKED || !reason_is_epoll_call(wait->syscall) ||
	    !reason_of_poll(wait->reason))
		return;
	object = thread_wait_object(thread, i);
	if (object == OBJECT_NONE)
		return;
	watch = object_watches(&timeline->objects.list.items[object]);
	if (!watch)
		return;
	count = epoll_watches_leaves(watch, &kinds);
	reason = reason_of_epoll(watch->more ? MAX(count, 2U) : count, kinds,
				 is_alone(timeline, thread));
	if (reason != wait->reason)
		thread_explain(thread, i, reason, wait->rule);
}

/*
 * If a ring's requests wait for sockets or pipes, a wait for the ring has the reason of a poll of
 * these, unless a request to a disk ended it.
 */
static void explain_ring(const Timeline *timeline, Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	const struct rec_watch *watch;
	uint32_t object, kinds, count;
	enum reason reason;

	if (wait->state != STATE_BLOCKED || wait->reason != REASON_IO_URING ||
	    thread_wait_request(thread, i) != REQUEST_NONE)
		return;
	object = thread_wait_object(thread, i);
	watch = object == OBJECT_NONE ? NULL
				      : object_watches(&timeline->objects.list.items[object]);
	count = watch ? epoll_watches_leaves(watch, &kinds) : 0;
	if (count == 0)
		return;
	reason = reason_of_epoll(count, kinds, /* only_thread= */ true);
	if (reason != REASON_EPOLL)
		thread_explain(thread, i, reason, wait->rule);
}

/* A timerfd is recognized by its name; to poll one is to poll an event. */
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
 * Reads from the leaf outwards, up to where a page fault begins or memory is requested: the
 * functions outside of that are what the thread did, not what it waits for.
 */
static void look(Explainer *explainer, uint32_t stack, StackReason *by_stack)
{
	Functions functions = functions_of(explainer, stack);
	bool inside = true, named = false;
	size_t found = 0, depth = 0;

	by_stack->no_fault = is_whole(explainer->timeline, stack, &functions);
	for (size_t i = 0; i < functions.count; i++) {
		uint32_t name = function_name(explainer, &functions, i);
		uint32_t number = rule_of_name(explainer, name);
		const KernelRule *rule = number < kernel_rule_count ? &kernel_rules[number] : NULL;

		by_stack->no_fault &= number != NAME_FAULT;
		named |= kernel_is_scheduling(strings_get(&explainer->frames->strings, name));
		if (!inside)
			continue;
		if (number == NAME_FAULT) {
			by_stack->in_fault = by_stack->rule;
			inside = false;
		}
		if (rule &&
		    (rule->reason != REASON_IDLE_WORKER || depth <= kernel_idle_depth(rule)) &&
		    kernel_rule_replaces(rule, by_stack->rule)) {
			by_stack->rule = rule;
			found = i;
		}
		inside &= !rule || rule->level != LEVEL_MEMORY;
		depth += !kernel_is_scheduling(strings_get(&explainer->frames->strings, name));
	}
	by_stack->no_fault &= named;
	if (by_stack->rule)
		store_basis(explainer, &functions, stack, found, by_stack->rule);
}

/* Returns whether a request can have ended the wait, by the wait's reason. */
static bool may_end_by_request(const Interval *wait)
{
	enum category category = reason_info[wait->reason].category;

	if (wait->reason == REASON_DIRTY_THROTTLE)
		return false; /* a timer ends it */
	return category == CATEGORY_DISK || category == CATEGORY_FAULT ||
	       wait->reason == REASON_IO_URING || wait->reason == REASON_AIO ||
	       reason_unexplained(wait->reason);
}

/* The same by the waker, as far as it was recorded. */
static bool may_be_woken_by_request(const WakerStack *waker)
{
	return !waker || (waker->source != INTERRUPT_TIMER && waker->source != INTERRUPT_NETWORK &&
			  waker->source != INTERRUPT_RCU);
}

/*
 * A request that completed on the same CPU just when a lock was released, or a timer expired, did
 * not end the wait.
 */
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

static bool may_be_by_server(enum reason reason)
{
	return reason == REASON_DISK_READ || reason == REASON_DISK_WRITE ||
	       reason == REASON_DISK_SYNC || reason == REASON_DISK_OTHER;
}

/*
 * The page or the write that the thread waits for is a server's if the file's file system has one,
 * unless a request to a disk ended the wait.
 */
static void explain_servers(const Timeline *timeline, Thread *thread)
{
	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *wait = &thread->intervals.items[i];
		uint32_t object;
		uint8_t flags;

		if (wait->state != STATE_BLOCKED || !may_be_by_server(wait->reason) ||
		    thread_wait_request(thread, i) != REQUEST_NONE)
			continue;
		object = thread_wait_object(thread, i);
		if (object == OBJECT_NONE)
			continue;
		flags = timeline->objects.list.items[object].flags;
		if (flags & INODE_FUSE)
			thread_explain(thread, i, REASON_FUSE, wait->rule);
		else if (flags & INODE_NETWORK)
			thread_explain(thread, i, REASON_NETWORK_FS, wait->rule);
	}
}

/*
 * If neither the call nor the stack says which kind it is (metadata, exec, aio), the request that
 * ended the wait does.
 */
static void emit_reads(const Timeline *timeline, Thread *thread)
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

/* A faster disk would not help if a cgroup's limit holds the request back for half of the wait. */
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

/* They are in kernel/signal.c; compilers inline the first one into the others. */
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

#define BY_SIGNAL 0x100 /* a flag beside an enum interrupt_source */

/* Finds the interrupts and signals that ended waits; each stack is looked up once. */
static void emit_interrupts(Explainer *explainer, Thread *thread)
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
		/* Otherwise the source by the soft interrupt's vector stays. */
		if (known & ~BY_SIGNAL)
			waker->source = known & ~BY_SIGNAL;
		waker->by_signal = known & BY_SIGNAL;
	}
}

/*
 * The recorded lock belongs to this wait only if the wait is for such a lock: of the program or, in
 * any other call, of the kernel.
 */
static void drop_holders(Thread *thread)
{
	for (size_t i = 0; i < thread->intervals.count; i++) {
		Interval *wait = &thread->intervals.items[i];
		bool futex = wait->syscall == SYSCALL_FUTEX;

		/* What does not change is not written; see spill.h. */
		if (wait->reason != REASON_KERNEL_RWSEM && wait->lock != SWITCH_LOCK_OTHER)
			wait->lock = SWITCH_LOCK_OTHER;
		if (wait->state != STATE_BLOCKED || wait->lock_holder == THREAD_NONE ||
		    (wait->reason == REASON_MUTEX && futex))
			continue;
		if ((wait->reason != REASON_KERNEL_MUTEX && wait->reason != REASON_KERNEL_RWSEM) ||
		    futex)
			wait->lock_holder = THREAD_NONE;
	}
}

/* Only the comm of a non-target is known. */
static uint32_t mmap_lock_of(Timeline *timeline, const Thread *thread, const Interval *wait)
{
	uint32_t number = thread->process;
	const Process *process;
	_cleanup_free_ char *text = NULL;
	char name[COMM_LEN + 1];

	if (wait->lock == SWITCH_LOCK_MMAP_HOLDER) {
		const Task *holder;

		if (wait->lock_holder >= timeline->tasks.count)
			return OBJECT_NONE;
		holder = &timeline->tasks.items[wait->lock_holder];
		if (holder->thread >= timeline->threads.count)
			return objects_mmap_lock(&timeline->objects,
						 timeline->processes.count + 1 + holder->tid,
						 task_name(timeline, wait->lock_holder, name));
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

/* The lock is the object, whatever descriptor the system call has. */
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

/* To the kernel a page from a server looks like one that was read from a disk. */
static void explain_faults(Thread *thread)
{
	for (size_t i = 0; i < thread->faults.count; i++) {
		Fault *fault = &thread->faults.items[i];

		fault->by_program = fault->wait != WAIT_NONE &&
				    thread->intervals.items[fault->wait].reason == REASON_USERFAULT;
	}
}

/* Returns what the stack says about a wait; NULL: nothing. */
static const StackReason *stack_reason_of(Explainer *explainer, const Interval *wait)
{
	StackReason *by_stack;

	if (wait->state != STATE_BLOCKED || wait->kernel_stack == STACK_NONE)
		return NULL;
	by_stack = &explainer->by_stack[wait->kernel_stack];
	if (!by_stack->looked)
		look(explainer, wait->kernel_stack, by_stack);
	by_stack->looked = true;
	return by_stack;
}

/*
 * Where tracepoints record page faults, a thread may seem to be in a fault that has ended
 * (bpf/probes/fault.bpf.c); its kernel stack shows that it has.
 */
static void drop_faults(Explainer *explainer, Thread *thread)
{
	size_t count = 0;

	for (size_t i = 0; i < thread->faults.count; i++) {
		const Fault *fault = &thread->faults.items[i];
		const Interval *wait =
			fault->wait == WAIT_NONE ? NULL : &thread->intervals.items[fault->wait];
		const StackReason *by_stack = wait ? stack_reason_of(explainer, wait) : NULL;

		if (fault->hook != FAULT_HOOK_SLEEP || !by_stack || !by_stack->no_fault)
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
	const StackReason *by_stack = stack_reason_of(explainer, wait);
	enum reason_rule by;
	enum reason reason;

	if (!by_stack || !by_stack->rule)
		return;
	reason = kernel_reason(by_stack->rule, wait->reason, by_stack->in_fault, &by);
	/* A page fault or a request is a recorded event, which takes precedence. */
	if (reason == wait->reason && (wait->rule == RULE_FAULT || wait->rule == RULE_REQUEST))
		by = wait->rule;
	thread_explain(thread, i, reason, by);
}

static void explain_thread(Explainer *explainer, Thread *thread)
{
	drop_faults(explainer, thread);
	for (size_t i = 0; i < thread->intervals.count; i++) {
		explain_by_kernel(explainer, thread, i);
		wait_explain_futex(explainer, thread, i);
		explain_epoll(explainer->timeline, thread, i);
		explain_ring(explainer->timeline, thread, i);
		wait_explain_script(explainer, thread, i);
		wait_explain_go(explainer, thread, i);
		explain_timer(explainer, thread, i);
	}
	emit_interrupts(explainer, thread);
	drop_requests(thread);
	explain_servers(explainer->timeline, thread);
	emit_reads(explainer->timeline, thread);
	find_held(explainer->timeline, thread);
	drop_holders(thread);
	name_mmap_locks(explainer->timeline, thread);
	explain_faults(thread);
	for (size_t i = 0; i < thread->intervals.count; i++)
		wait_count_call_frames(explainer, thread, &thread->intervals.items[i]);
}

void wait_reasons_by_stack(Timeline *timeline, Frames *frames)
{
	Explainer explainer = {
		.timeline = timeline,
		.frames = frames,
		.by_stack = xcalloc(timeline->stacks.count + 1, sizeof(StackReason)),
		.musl = xcalloc(timeline->stacks.count + 1, sizeof(uint8_t)),
		.futexes = xcalloc(timeline->stacks.count + 1, sizeof(uint8_t)),
		.scripts = xcalloc(timeline->stacks.count + 1, sizeof(uint8_t)),
		.counted = xcalloc(timeline->stacks.count + 1, sizeof(bool)),
		.go = xcalloc(timeline->stacks.count + 1, sizeof(uint8_t)),
	};

	interpreter_locks_complete(timeline);
	for (size_t i = 0; i < timeline->threads.count; i++)
		explain_thread(&explainer, &timeline->threads.items[i]);
	interpreter_locks_find_holders(timeline);
	map_free(&explainer.rule_of_name);
	map_free(&explainer.sources);
	map_free(&explainer.python);
	free(explainer.go);
	free(explainer.by_stack);
	free(explainer.musl);
	free(explainer.futexes);
	free(explainer.scripts);
	free(explainer.counted);
}
