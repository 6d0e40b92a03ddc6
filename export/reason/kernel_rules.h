/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_rules.h - what a thread waits for by the kernel functions that it sleeps in.
 *
 * It is one table of functions that block, with what each waits for. A kernel stack is read from
 * its leaf, and the functions are weighed: a lock is a lock wherever it is taken, but a thread that
 * waits for a page while memory is being freed waits for memory.
 */
#ifndef WALLPROF_KERNEL_RULES_H
#define WALLPROF_KERNEL_RULES_H

#include "reason.h"
#include <stddef.h>

/* How specific a function's reason is. */
enum kernel_level {
	LEVEL_WAIT,    /* it waits for just this */
	LEVEL_IO,      /* a page, a buffer, a request */
	LEVEL_MEMORY,  /* the waits inside it are done because memory is short */
	LEVEL_PURPOSE, /* whatever I/O it waits for inside has this purpose */
	LEVEL_PLACE,   /* what was being done */
	/* How it sleeps, if nothing else is known. */
	LEVEL_PRIMITIVE,
	LEVEL_COUNT,
};

typedef struct KernelRule {
	const char *function; /* as in /proc/kallsyms, without ".isra.0" and the like */
	uint8_t reason;	      /* enum reason */
	uint8_t level;	      /* enum kernel_level */
} KernelRule;

extern const KernelRule kernel_rules[];
extern const size_t kernel_rule_count;

/*
 * Returns whether a function that lies outside of another one, whose rule was found before (NULL:
 * none was), says more about the wait. The innermost one counts, with three exceptions: any other
 * rule explains more than how it sleeps, and more than I/O that is done because memory is short, or
 * by a file system without a disk.
 */
bool kernel_rule_replaces(const KernelRule *rule, const KernelRule *found);

/*
 * Returns whether a function is the scheduler's: a worker whose stack has only such functions below
 * its own function is idle.
 */
bool kernel_is_scheduling(const char *function);

/*
 * The limit of functions, besides the scheduler's, inside the function of a rule for
 * REASON_IDLE_WORKER if the worker is idle. Of any kernel thread it is the function that the thread
 * was made for.
 */
size_t kernel_idle_depth(const KernelRule *rule);

/*
 * Returns whether a function of a stack is the known one; in the stack it may have a suffix
 * (".isra.0").
 */
bool kernel_is_function(const char *known, const char *function);

/* Returns the rule of a function by its name in a stack, or NULL. */
const KernelRule *kernel_rule_of(const char *function);

/* Returns whether a reason is one of a poll of descriptors. */
bool reason_of_poll(enum reason reason);

/* Returns whether a reason rests only on the state that the thread slept in: "other". */
bool reason_unexplained(enum reason reason);

/*
 * Returns what a wait is for, given the reason by task state, call and arguments, and the rule that
 * the stack chose. Where the stack only confirms the kind (it waits for a futex), the call's reason
 * says more (a mutex) and stays. in_fault: the stack leads through a page fault.
 */
enum reason kernel_reason(const KernelRule *rule, enum reason by_call, bool in_fault,
			  enum reason_rule *ret_rule);

/*
 * Returns what an interrupt was for that runs a function; INTERRUPT_UNKNOWN: the function does not
 * show it.
 */
enum interrupt_source kernel_interrupt(const char *function);

/* Returns whether a function handles a page fault: waits above it are for that fault. */
bool kernel_is_fault(const char *function);

#endif
