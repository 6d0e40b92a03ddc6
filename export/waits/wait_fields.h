/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wait_fields.h - what all writers say of an interval in which a thread was not running, of the
 * stacks of ticks and requests, and of a process's end.
 */
#ifndef WALLPROF_WAIT_FIELDS_H
#define WALLPROF_WAIT_FIELDS_H

#include "stack_table.h"
#include "timeline.h"

/* The interval's reason, put right where it says nothing for its state. */
enum reason wait_reason(const Interval *interval);

/* The stack of interval i, a wait of the thread's, with its reason as the leaf. */
StackRef wait_stack(const Timeline *timeline, const Thread *thread, size_t i);

/* The stack of the program that submitted a request, of a thread of the timeline. */
StackRef request_stack(const Timeline *timeline, const Request *request);

/* The stack of a tick of the thread's. */
StackRef tick_stack(const Timeline *timeline, const Thread *thread, const Tick *tick);

/*
 * "system call and arguments: futex", "kernel stack: synchronize_rcu_normal ← map_update_elem,
 * bpf": what the reason rests on; to be freed; may be NULL.
 */
char *wait_basis(const Timeline *timeline, const Interval *interval);

/* "began before the recording", … or NULL. Static. */
const char *wait_note(const Interval *interval);

/*
 * What the wait of interval i was for (Timeline::objects): that of the request that ended
 * it or, if that is not known, of the page fault or of the system call that it lies in.
 * OBJECT_NONE: of none, or nobody knows.
 * Of those that are called the same it is the first (Object::alike).
 */
uint32_t wait_object(const Timeline *timeline, const Thread *thread, size_t i);

/* What Timeline::tasks[task] is called; NULL: there is no such task. May point into name. */
const char *task_name(const Timeline *timeline, uint32_t task, char name[COMM_LEN + 1]);

/*
 * Who ended the wait i of the thread, or NULL if nobody knows: "timer interrupt" or the like, if
 * that was recorded, else "interrupt". May point into name.
 */
const char *wait_waker(const Timeline *timeline, const Thread *thread, size_t i,
		       char name[COMM_LEN + 1]);

/* "timer interrupt", …. */
const char *interrupt_label(enum interrupt_source source);

/*
 * Appends the place of a resolved user stack (frames_resolve()), the innermost function first:
 * "fgets ← fun_1139 (dash) ← main". Of the run-time system only the function that the program
 * called is named (runtime_functions.h). Takes the text, and returns it grown; to be freed.
 */
char *chain_add_user(char *text, const Frames *frames, const uint32_t *indexes, size_t count);

/*
 * From where the wait i was ended, the innermost functions first: "futex_wake (kernel) ←
 * pthread_mutex_unlock ← release". To be freed; NULL: that was not recorded.
 */
char *wait_waker_chain(const Timeline *timeline, Frames *frames, const Thread *thread, size_t i);

/* Who had the lock that a blocked thread waited for, by the lock itself; NULL: it does not tell. */
const char *wait_holder(const Timeline *timeline, const Interval *interval,
			char name[COMM_LEN + 1]);

/* How long the thread wanted a CPU after interval i, a blocked one; UINT64_MAX: not told. */
uint64_t wait_delay_ns(const Thread *thread, size_t i);

/* "exit status 1", "killed by signal 9", …; to be freed. */
char *process_end_text(const Process *process);

#endif
