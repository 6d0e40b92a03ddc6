/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wait_fields.h - the texts of an interval in which a thread was not running, the stacks of ticks
 * and requests, and the text of a process's end, for all writers.
 */
#ifndef WALLPROF_WAIT_FIELDS_H
#define WALLPROF_WAIT_FIELDS_H

#include "stack_table.h"
#include "timeline.h"

/* Returns the interval's reason, or the default reason of its state if it has none. */
enum reason wait_reason(const Interval *interval);

/* Returns the stack of interval i, a wait of the thread, with its reason as the leaf. */
StackRef wait_stack(const Timeline *timeline, const Thread *thread, size_t i);

/* Returns the stack of the program that submitted a request, from a thread of the timeline. */
StackRef request_stack(const Timeline *timeline, const Request *request);

/* Returns the stack of a tick of the thread. */
StackRef tick_stack(const Timeline *timeline, const Thread *thread, const Tick *tick);

/*
 * Returns the user frames of the switch-out at the end of running interval i. A thread without them
 * is known to have been in the kernel, and no more: the kernel frames of a switch-out are those of
 * its wait.
 */
StackRef wait_switch_out_stack(const Timeline *timeline, const Thread *thread, size_t i);

/*
 * Returns what the reason rests on: "system call and arguments: futex", "kernel stack:
 * synchronize_rcu_normal ← map_update_elem, bpf"; may be NULL. The caller frees it.
 */
char *wait_basis(const Timeline *timeline, const Interval *interval);

/* Returns "futex" or "system call 1000". The caller frees it. */
char *wait_call_text(int syscall);

/* Returns "began before the recording", … or NULL. Static. */
const char *wait_note(const Interval *interval);

/*
 * Returns what the wait of interval i was for (Timeline::objects): the object of the request that
 * ended it or, if that is unknown, of the page fault or of the system call that it lies in.
 * OBJECT_NONE: none, or unknown. Of several objects with the same name it is the first
 * (Object::alike).
 */
uint32_t wait_object(const Timeline *timeline, const Thread *thread, size_t i);

/*
 * Returns the name of Timeline::tasks[task]; NULL: there is no such task. It may point into name.
 */
const char *task_name(const Timeline *timeline, uint32_t task, char name[COMM_LEN + 1]);

/*
 * Returns what ended wait i of the thread, or NULL if it is unknown: a task's name, or "timer
 * interrupt" or the like if that was recorded, else "interrupt". It may point into name.
 */
const char *wait_waker(const Timeline *timeline, const Thread *thread, size_t i,
		       char name[COMM_LEN + 1]);

/* Returns "timer interrupt", …. */
const char *interrupt_label(enum interrupt_source source);

/*
 * Appends the chain of a resolved user stack (frames_resolve()), the innermost function first:
 * "fgets ← fun_1139 (dash) ← main". Of the run-time system it names only the function that the
 * program called (runtime_functions.h). Takes the text and returns it, grown; the caller frees it.
 */
char *chain_add_user(char *text, const Frames *frames, const uint32_t *indexes, size_t count);

/*
 * Returns from where wait i was ended, the innermost functions first: "futex_wake (kernel) ←
 * pthread_mutex_unlock ← release"; NULL: not recorded. The caller frees it.
 */
char *wait_waker_chain(const Timeline *timeline, Frames *frames, const Thread *thread, size_t i);

/*
 * Returns the holder of the lock that a blocked thread waited for, as the lock stores it; NULL: it
 * stores none.
 */
const char *wait_holder(const Timeline *timeline, const Interval *interval,
			char name[COMM_LEN + 1]);

/* Returns how long the thread was runnable after interval i, a blocked one; UINT64_MAX: unknown. */
uint64_t wait_delay_ns(const Thread *thread, size_t i);

/* Returns "exit status 1", "killed by signal 9", …. The caller frees it. */
char *process_end_text(const Process *process);

#endif
