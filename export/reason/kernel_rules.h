/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_rules.h - what a thread waits for by the functions of the kernel that it sleeps in.
 *
 * One table of functions that block, with what each waits for. A kernel stack is read from its
 * leaf, and what the functions say is weighed: a lock is a lock wherever it is taken, but a
 * page that is waited for while memory is freed is a wait for memory.
 */
#ifndef WALLPROF_KERNEL_RULES_H
#define WALLPROF_KERNEL_RULES_H

#include "reason.h"
#include <stddef.h>

/* What a function says of why a thread sleeps in it. */
enum kernel_level {
	LEVEL_WAIT,	 /* it waits for just this */
	LEVEL_IO,	 /* a page, a buffer, a request */
	LEVEL_MEMORY,	 /* what it waits for inside is done for want of memory */
	LEVEL_PURPOSE,	 /* whatever I/O it waits for inside is this */
	LEVEL_PLACE,	 /* what was being done */
	LEVEL_PRIMITIVE, /* how it sleeps: all that is left to say */
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
 * Whether a function that lies outside of another one, whose rule was found before (NULL: none
 * was), says more of the wait. The innermost one counts, but for how it sleeps, which any other one
 * explains; and for I/O that is done for want of memory, or by a file system without a disk.
 */
bool kernel_rule_replaces(const KernelRule *rule, const KernelRule *found);

/* The scheduler's: a stack of nothing else below a worker's own function is that of an idle one. */
bool kernel_is_scheduling(const char *function);

/*
 * How many functions, besides the scheduler's, lie inside of that of a rule for REASON_IDLE_WORKER
 * at most if the worker is idle: of any thread of the kernel it is the one that it was made for.
 */
size_t kernel_idle_depth(const KernelRule *rule);

/* Whether a function of a stack is the known one; in the stack it may have a suffix (".isra.0"). */
bool kernel_is_function(const char *known, const char *function);

/* The rule of a function by its name in a stack, or NULL. */
const KernelRule *kernel_rule_of(const char *function);

/* Whether a reason is one of a poll of descriptors. */
bool reason_of_poll(enum reason reason);

/* Whether a reason says no more than the state that the thread slept in: "other". */
bool reason_unexplained(enum reason reason);

/*
 * What a wait is for, given what was told by task state, call and arguments, and the rule that the
 * stack chose. Where the stack only confirms the kind (a futex is waited for), what was told says
 * more (a mutex's); that is kept. in_fault: the stack leads through a page fault.
 */
enum reason kernel_reason(const KernelRule *rule, enum reason told, bool in_fault,
			  enum reason_rule *ret_rule);

/* What an interrupt was for that runs a function; INTERRUPT_UNKNOWN: that does not tell. */
enum interrupt_source kernel_interrupt(const char *function);

/* Whether a function handles a page fault: what is waited for above it is for that fault. */
bool kernel_is_fault(const char *function);

#endif
