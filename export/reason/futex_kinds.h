/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * futex_kinds.h - the kind of a futex by the functions of the C library, of C++'s and of Rust's,
 * and of the run-time systems of Python and Go.
 *
 * Operation and value, which the kernel has, are shared by several kinds: 2 is a locked mutex, and
 * any count of 2; 0 is a condition variable, and a semaphore.
 */
#ifndef WALLPROF_FUTEX_KINDS_H
#define WALLPROF_FUTEX_KINDS_H

#include "reason.h"
#include <stdbool.h>

/*
 * How certain the reason of a function is, if the function lies outside of another one with a
 * reason.
 */
enum certainty {
	/*
	 * syscall(): any function outside of it has a better reason, except one of
	 * CERTAINTY_LIBRARY.
	 */
	CERTAINTY_WEAK,
	/* The C library's: it does not use syscall(). */
	CERTAINTY_LIBRARY,
	/*
	 * It shows what the C library's condition variable is used for, for example by a run-time
	 * system's lock.
	 */
	CERTAINTY_CALLER,
	CERTAINTY_STRONG,
};

/*
 * Returns what a thread waits for that calls futex() in a function, by the function's name in a
 * stack; REASON_NONE: the name does not show it. The innermost function with a reason decides,
 * except that CERTAINTY_WEAK yields to any other, and a CERTAINTY_CALLER outside of a condition
 * variable takes precedence.
 */
enum reason user_reason_of(const char *function, enum certainty *ret_certainty);

/* Where a thread without a goroutine waits in Go's run-time system. */
enum go_place {
	GO_NOT_WAITING,
	GO_WITHOUT_WORK, /* its scheduler has found no goroutine for the thread */
	GO_MONITOR,	 /* the thread monitors the others from time to time */
};
enum go_place user_go_place(const char *function);

/* Returns whether only musl, a C library, has this function. */
bool futex_kind_is_musl(const char *function);

/* Returns whether it waits for a condition variable with a time limit. */
bool futex_kind_has_timeout(const char *function);

/*
 * Returns whether it waits without a time limit for a mutex of glibc, which stores its owner.
 * Functions that wait for glibc's own locks, which have no owner, are none of these.
 */
bool futex_kind_is_owned_mutex(const char *function);

/* Returns whether threads wait for futexes with this reason. */
bool futex_kind_reason(enum reason reason);

#endif
