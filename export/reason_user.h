/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reason_user.h - what a futex is by the functions of the C library, of C++'s and of Rust's.
 *
 * Operation and value, which the kernel sees, are those of several kinds: 2 is a locked mutex, and
 * any number that somebody counts down; 0 a condition variable, and a semaphore.
 */
#ifndef WALLPROF_REASON_USER_H
#define WALLPROF_REASON_USER_H

#include "reason.h"
#include <stdbool.h>

/* How much a function that tells says, if it lies outside of another one that tells. */
enum teller {
	/* syscall(): whose call it is any function outside of it says better, but of TELLER_LIBRARY
	 */
	TELLER_WEAK,
	TELLER_LIBRARY, /* the C library's: it does not go by way of syscall() */
	TELLER_STRONG,
	/* A lock of a run-time system's own, for which it calls the C library's condition variable.
	 */
	TELLER_AROUND,
};

/*
 * What a thread waits for that calls futex() in a function, by its name in a stack; REASON_NONE:
 * that does not tell. The innermost function that tells counts, but for TELLER_WEAK, and where
 * TELLER_AROUND lies outside of a condition variable.
 */
enum reason user_reason_of(const char *function, enum teller *ret_teller);

/* Whether a reason is one that a futex is waited for by. */
bool reason_of_futex(enum reason reason);

#endif
