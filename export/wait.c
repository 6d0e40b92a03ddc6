/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wait.h"
#include "labels.h"

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

StackRef wait_stack(const Timeline *timeline, const Thread *thread, size_t i)
{
	const Interval *interval = &thread->intervals.items[i];

	return (StackRef){
		.ns = stack_ns(thread, i),
		.ns_tgid = timeline->processes.items[thread->process].ns_tgid,
		.user_stack = interval->user_stack,
		.kernel_stack = interval->kernel_stack,
		.leaf = LEAF_REASON + wait_reason(interval),
	};
}

StackRef request_stack(const Timeline *timeline, const Request *request)
{
	const Thread *thread = &timeline->threads.items[request->thread];

	return (StackRef){
		.ns = request->submit_ns,
		.ns_tgid = timeline->processes.items[thread->process].ns_tgid,
		.user_stack = request->user_stack,
		.kernel_stack = STACK_NONE,
		.leaf = LEAF_USER,
	};
}

StackRef tick_stack(const Timeline *timeline, const Thread *thread, const Tick *tick)
{
	return (StackRef){
		.ns = tick->ns,
		.ns_tgid = timeline->processes.items[thread->process].ns_tgid,
		.user_stack = tick->user_stack,
		.kernel_stack = tick->user_mode ? STACK_NONE : tick->kernel_stack,
		.leaf = tick->user_mode ? LEAF_TICK_USER : LEAF_TICK_KERNEL,
	};
}

char *wait_evidence(const Interval *interval)
{
	const char *rule = interval->rule < RULE_COUNT ? reason_rule_text[interval->rule] : NULL;
	const char *syscall = interval->syscall >= 0 ? syscall_label(interval->syscall) : NULL;

	if (!rule || !*rule)
		return NULL;
	if (interval->state != STATE_BLOCKED || interval->syscall < 0)
		return xstrdup(rule);
	return syscall ? xasprintf("%s: %s", rule, syscall)
		       : xasprintf("%s: system call %d", rule, interval->syscall);
}

const char *wait_note(const Interval *interval)
{
	switch (interval->flags & (INTERVAL_OPEN_START | INTERVAL_OPEN_END)) {
	case INTERVAL_OPEN_START:
		return "began before the recording";
	case INTERVAL_OPEN_END:
		return "still going on when the recording ended";
	case INTERVAL_OPEN_START | INTERVAL_OPEN_END:
		return "from before the recording to after it";
	default:
		return NULL;
	}
}

uint32_t wait_inode(const Timeline *timeline, const Thread *thread, size_t i)
{
	const Interval *interval = &thread->intervals.items[i];
	uint32_t number = thread_wait_request(thread, i), told = thread_wait_inode(thread, i);
	const Request *request;

	if (interval->state != STATE_BLOCKED || number == REQUEST_NONE)
		return interval->state == STATE_BLOCKED ? told : INODE_NONE;
	request = &timeline->requests.list.items[number];
	/* Of a request for several files only the first is known. */
	if (request->inode == INODE_NONE || (request->flags & REQUEST_MIXED && told != INODE_NONE))
		return told;
	return request->inode;
}

const char *wait_waker(const Timeline *timeline, const Interval *interval, char name[COMM_LEN + 1])
{
	if (interval->flags & INTERVAL_WAKER_IRQ)
		return "interrupt";
	if (interval->waker >= timeline->tasks.count)
		return NULL;
	memcpy(name, timeline->tasks.items[interval->waker].comm, COMM_LEN);
	name[COMM_LEN] = '\0';
	return *name ? name : "unknown";
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
		return xstrdup("still there when the recording ended");
	return signal ? xasprintf("killed by signal %u", signal)
		      : xasprintf("exit status %u", code >> 8 & 0xff);
}
