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

/*
 * What a thread waits for that calls futex() in a function, by its name in a stack; REASON_NONE:
 * that does not tell. The innermost function that tells counts, but for *ret_weak: any other one
 * tells more.
 */
enum reason user_reason_of(const char *function, bool *ret_weak);

/* Whether a reason is one that a futex is waited for by. */
bool reason_of_futex(enum reason reason);

#endif
