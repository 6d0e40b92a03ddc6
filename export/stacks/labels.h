/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * labels.h - the words of profiles and reports for record kinds, causes of loss, ends of stacks and
 * system calls.
 */
#ifndef WALLPROF_LABELS_H
#define WALLPROF_LABELS_H

#include "records.h"
#include <stdbool.h>

/* How a user stack ends: enum stack_result, and ends that are only found when it is resolved. */
enum stack_end {
	STACK_END_STALE = STACK_RESULTS, /* a table was of what had been mapped there before */
	STACK_END_LOST,			 /* its definition was lost */
	STACK_END_UNKNOWN,		 /* a result that this version does not know */
	STACK_ENDS
};

/* Returns "ring full", …; never NULL. */
const char *loss_cause_label(uint32_t cause);

/*
 * Returns "gap in unwind table", …: the text between "[truncated: " and "]"; NULL for a complete
 * stack.
 */
const char *stack_end_words(enum stack_end end);

/* Returns "complete", "gap", …: a key for other programs. */
const char *stack_end_key(enum stack_end end);

/* Returns the name of an x86-64 system call that can block; NULL for others. */
const char *syscall_label(int syscall);
/* Returns whether a system call has that label. */
bool syscall_is_named(const char *name);

/* What a frame's code is in, which mostly decides whether its caller can be found. */
enum code_kind {
	CODE_FILE,   /* an ELF file that could be read */
	CODE_MADE,   /* memory, or a file without a name in any folder: made at run time */
	CODE_UNREAD, /* a file that is no ELF file, or that could not be read */
	CODE_32_BIT,
	CODE_NOWHERE, /* nothing is known to be mapped there */
	CODE_KINDS,
};

/* Return its name for people, and in JSON. */
const char *stack_code_words(enum code_kind kind);
const char *stack_code_key(enum code_kind kind);

#endif
