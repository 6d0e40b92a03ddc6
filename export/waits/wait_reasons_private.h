/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wait_reasons_private.h - shared by the two files of wait_reasons.h: wait_reasons.c uses the
 * kernel's functions, wait_reasons_user.c the program's functions and variables.
 */
#ifndef WALLPROF_WAIT_REASONS_PRIVATE_H
#define WALLPROF_WAIT_REASONS_PRIVATE_H

#include "futex_kinds.h"
#include "kernel_rules.h"
#include "timeline.h"
#include "wait_reasons.h"

/* What the functions of one kernel stack say about a wait. */
typedef struct StackReason {
	const KernelRule *rule; /* NULL: nothing */
	bool in_fault;		/* the rule's wait is in a page fault */
	bool no_fault;		/* the thread was not in a page fault */
	bool looked;
} StackReason;

typedef struct Explainer {
	Timeline *timeline;
	Frames *frames;
	Map rule_of_name;      /* Frames::strings -> kernel_rules, or NAME_NOTHING, NAME_FAULT */
	StackReason *by_stack; /* by Timeline::stacks */
	uint8_t *musl;	       /* likewise: whether musl is the caller, enum answer */
	uint8_t *futexes; /* likewise: the reason by the user stack, plus 1; 0: not looked up */
	bool *counted;	  /* likewise: whether StackDef::call_frames is known */
	uint8_t *go;	  /* likewise: enum go_place plus 1; 0: not looked up */
	uint8_t *scripts; /* likewise: the reason by script functions, plus 1; 0: not looked up */
	Map python;  /* Timeline::objects, words of memory -> whether CPython's state has them */
	Map sources; /* Timeline::stacks of wakers -> enum interrupt_source */
} Explainer;

/* The functions of a stack, leaf first. */
typedef struct Functions {
	const uint32_t *frames; /* Frames::list, root first */
	size_t count;
} Functions;

static inline uint32_t function_name(const Explainer *explainer, const Functions *functions,
				     size_t i)
{
	return explainer->frames->list.items[functions->frames[functions->count - 1 - i]].function;
}

/*
 * Returns the user stack's functions, by their names when it was first resolved; valid until the
 * next call.
 */
Functions wait_user_functions(Explainer *explainer, const Thread *thread, const Interval *wait);

/* Decides the kind of futex that a wait is for. */
void wait_explain_futex(Explainer *explainer, Thread *thread, size_t i);

/*
 * Decides what a program that an interpreter runs waits for, by its functions: the interpreter's
 * own locks, and what is made of them, are all one kind of futex. To be called after
 * wait_explain_futex().
 */
void wait_explain_script(Explainer *explainer, Thread *thread, size_t i);

/* Decides which waits are those of Go's scheduler. */
void wait_explain_go(Explainer *explainer, Thread *thread, size_t i);

/* Sets StackDef::call_frames for a wait that may be idle. */
void wait_count_call_frames(Explainer *explainer, const Thread *thread, const Interval *wait);

#endif
