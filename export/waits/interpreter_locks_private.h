/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * interpreter_locks_private.h - shared by the two files of interpreter_locks.h: interpreter_locks.c
 * has single waits, interpreter_lock_sums.c the sums of all.
 */
#ifndef WALLPROF_INTERPRETER_LOCKS_PRIVATE_H
#define WALLPROF_INTERPRETER_LOCKS_PRIVATE_H

#include "interpreter_locks.h"

/*
 * After a time-out a thread that still wants the lock sleeps again within this running time. One
 * that ran longer had the lock in between.
 */
#define LOCK_AGAIN_NS (200 * NSEC_PER_USEC)

/*
 * Returns the index of the first release of a lock at ns or later, which may be another lock's:
 * interpreter_lock_handovers_match() says whether it is.
 */
size_t interpreter_lock_handovers_find(const Handovers *handovers, uint32_t process,
				       uint64_t address, uint64_t ns);
bool interpreter_lock_handovers_match(const Handovers *handovers, size_t i, uint32_t process,
				      uint64_t address);

/* Returns whether a thread of the same process ended the wait. */
bool interpreter_lock_is_handover(const Timeline *timeline, const Thread *thread,
				  const Interval *wait);
/* Returns the holder at the end of a part (Timeline::tasks), or THREAD_NONE. */
uint32_t interpreter_lock_holder_at_end(const Timeline *timeline, const Handovers *handovers,
					const Thread *thread, size_t i);

/* Returns the thread of a task; NULL: it has none. */
const Thread *interpreter_lock_thread_of(const Timeline *timeline, uint32_t task);
LockPlace interpreter_lock_no_place(void);
LockPlace interpreter_lock_place_at(const Timeline *timeline, const Thread *thread, uint64_t ns,
				    uint32_t user_stack);
/* Finds the wait that follows when a thread releases a lock at ns that another one wants. */
LockPlace interpreter_lock_place_of_release(const Timeline *timeline, const Thread *thread,
					    uint64_t ns);
/* Returns the place of interval i, in which the thread did not run, if it had the lock then. */
LockPlace interpreter_lock_place_off_cpu(const Timeline *timeline, const Thread *thread, size_t i);
/* Returns the index of the first interval of a thread that begins after ns. */
size_t interpreter_lock_interval_after(const Thread *thread, uint64_t ns);

#endif
