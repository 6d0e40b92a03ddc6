/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * labels.h - the words by which profiles and reports call record kinds, causes of
 * loss, ends of stacks and system calls.
 */
#ifndef WALLPROF_LABELS_H
#define WALLPROF_LABELS_H

#include "records.h"
#include <stdbool.h>

/* How a user stack ends: enum stack_result, and what only shows when it is looked at. */
enum stack_end {
	STACK_END_STALE = STACK_RESULTS, /* the tables were of what was mapped there before */
	STACK_END_LOST,			 /* its definition was lost */
	STACK_END_UNKNOWN,		 /* a result that this version does not know */
	STACK_ENDS
};

/* "ring full", …; never NULL. */
const char *loss_cause_label(uint32_t cause);

/* "gap in unwind table", …: what is between "[truncated: " and "]"; NULL if nothing is missing. */
const char *stack_end_words(enum stack_end end);

/* "complete", "gap", …: a name for programs. */
const char *stack_end_key(enum stack_end end);

/* Name of an x86-64 system call that can block; NULL for others. */
const char *syscall_label(int syscall);
/* Whether a system call has that label. */
bool syscall_is_named(const char *name);

#endif
