/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * futex_kinds.h - what a futex is by the functions of the C library, of C++'s and of Rust's, and of
 * the run-time systems of Python and Go.
 *
 * Operation and value, which the kernel sees, are those of several kinds: 2 is a locked mutex, and
 * any number that somebody counts down; 0 a condition variable, and a semaphore.
 */
#ifndef WALLPROF_FUTEX_KINDS_H
#define WALLPROF_FUTEX_KINDS_H

#include "reason.h"
#include <stdbool.h>

/* How much a function that tells says, if it lies outside of another one that tells. */
enum teller {
	/* syscall(): whose call it is any function outside of it says better, but of
	 * CERTAINTY_LIBRARY
	 */
	CERTAINTY_WEAK,
	CERTAINTY_LIBRARY, /* the C library's: it does not go by way of syscall() */
	/* Says what the C library's condition variable is used for, as by a run-time system's lock.
	 */
	CERTAINTY_CALLER,
	CERTAINTY_STRONG,
};

/*
 * What a thread waits for that calls futex() in a function, by its name in a stack; REASON_NONE:
 * the name does not show it. The innermost function with a reason decides, except that
 * CERTAINTY_WEAK yields to any other, and a CERTAINTY_CALLER outside of a condition variable takes
 * precedence.
 */
enum reason user_reason_of(const char *function, enum teller *ret_certainty);

/* Where a thread without a goroutine waits in Go's run-time system. */
enum go_place {
	GO_NOT_WAITING,
	GO_WITHOUT_WORK, /* its scheduler has found no goroutine for the thread */
	GO_MONITOR,	 /* the thread looks after the others from time to time */
};
enum go_place user_go_place(const char *function);

/* Whether it is a function that only musl, a C library, has. */
bool futex_kind_is_musl(const char *function);

/* Whether it waits for a condition variable with a time limit. */
bool futex_kind_has_timeout(const char *function);

/* Whether a reason is one that a futex is waited for by. */
bool futex_kind_reason(enum reason reason);

#endif
