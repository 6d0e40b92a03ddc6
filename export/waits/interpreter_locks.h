/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * interpreter_locks.h - waits for the lock of an interpreter, which lets one thread at a time
 * interpret: Python's GIL.
 *
 * A thread that wants such a lock may wait for it repeatedly, each time with a time limit. All of
 * that is one turn here, which has parts.
 */
#ifndef WALLPROF_INTERPRETER_LOCKS_H
#define WALLPROF_INTERPRETER_LOCKS_H

#include "frames.h"
#include "timeline.h"

/* Returns whether it is a wait for such a lock. */
static inline bool interpreter_lock_is_wait(const Interval *interval)
{
	return interval->state == STATE_BLOCKED && interval->reason == REASON_GIL;
}

/*
 * Adds what is known of the lock to waits for a word in it at which it could not be read: a thread
 * that has just begun, or that slept when the recording began. To be called before the reasons of
 * waits are decided.
 */
void interpreter_locks_complete(Timeline *timeline);

/*
 * Makes the words of such a lock that threads wait for by turns one object (Object::alike): glibc's
 * condition variables have two. To be called when the reasons of waits are decided, after
 * objects_find_alike().
 */
void interpreter_locks_join_words(Timeline *timeline);

/*
 * Sets the holder at the beginning of each wait for such a lock (Interval::lock_holder). If it
 * could not be read, the holder is that at the end: the thread that ended the wait by releasing the
 * lock, else the one that had it when the waiting thread began to wait again. Where nothing could
 * be read, only the releases are known: while threads wait, the thread that releases the lock wakes
 * one of them, so that one had it until then, and since the last such wakeup.
 */
void interpreter_locks_find_holders(Timeline *timeline);

/* A wait for such a lock, with all its parts. */
typedef struct LockTurn {
	uint32_t thread;      /* Timeline::threads */
	uint32_t first, last; /* Thread::intervals: the first and the last part */
	uint32_t parts;
} LockTurn;

/* Returns the turn that a wait for such a lock, interval i of the thread, is a part of. */
LockTurn interpreter_lock_turn(const Timeline *timeline, const Thread *thread, size_t i);

/* What a thread did while it had a lock, at one moment. */
typedef struct LockPlace {
	uint64_t ns; /* when the stack was taken */
	uint32_t ns_tgid;
	uint32_t user_stack; /* Timeline::stacks, or STACK_NONE: not known */
} LockPlace;

/*
 * Returns where the holder of the lock (Interval::lock_holder) was in a wait for it, interval
 * `part` of the thread: where it was off the CPU when the wait began, or else at its first tick or
 * switch-out in the wait at which it still had the lock. A thread that releases the lock because
 * another one wants it waits for that one next, in the same place.
 */
LockPlace interpreter_lock_place(const Timeline *timeline, const Thread *thread, size_t part);

/* Returns whether both are for the same lock. */
bool interpreter_lock_is_same(const Timeline *timeline, const LockTurn *a, const LockTurn *b);

/* ---- holders ------------------------------------------------------------------------------ */

/* A thread releases the lock. */
typedef struct Handover {
	uint32_t process; /* Timeline::processes */
	uint32_t task;	  /* Timeline::tasks: the holder */
	uint64_t address; /* of the lock; 0: it could not be read */
	uint64_t ns;
} Handover;

typedef VEC(Handover) Handovers;

/* Returns all releases in order of lock and time; the caller frees them with vec_free(). */
Handovers interpreter_lock_handovers_collect(const Timeline *timeline);

/* A thread had a lock at one moment of a wait for it. */
typedef struct LockTenure {
	uint32_t task; /* Timeline::tasks, or THREAD_NONE: not known */
	/* It had the lock since then; the beginning of the wait if it had it before. */
	uint64_t since_ns;
} LockTenure;

/*
 * Returns the holder of the lock just before ns, a moment of the turn after its beginning. While a
 * thread waits, nearly each release of the lock wakes one that does; and the holder is known at the
 * beginning of each part.
 */
LockTenure interpreter_lock_tenure(const Timeline *timeline, const Handovers *handovers,
				   const LockTurn *turn, uint64_t ns);

/* ---- sums -------------------------------------------------------------------------------- */

/* Time in which a thread had a lock, in one function, while others waited for it. */
typedef struct LockHolding {
	uint32_t lock;	    /* InterpreterLocks::locks */
	uint32_t task;	    /* Timeline::tasks, or THREAD_NONE: not known */
	uint32_t function;  /* InterpreterLocks::functions, or UINT32_MAX: not known */
	uint64_t held_ns;   /* in which at least one thread waited */
	uint64_t waited_ns; /* the waits of all threads then */
} LockHolding;

/* Waits of a thread that had the lock, while others waited for it. */
typedef struct LockKept {
	uint32_t lock, task, function;
	enum reason reason;
	uint64_t ns, longest_ns, count;
	uint64_t waited_ns; /* by other threads, for the lock, meanwhile */
} LockKept;

/* The waits of a thread for a lock. */
typedef struct LockWaiter {
	uint32_t lock, thread;
	uint64_t ns, longest_ns, count; /* of turns */
} LockWaiter;

typedef struct InterpreterLock {
	uint32_t process;   /* Timeline::processes */
	uint64_t address;   /* 0 = it could not be read */
	uint8_t language;   /* enum script_language; SCRIPT_NONE: it could not be read */
	uint64_t ns, count; /* of turns */
} InterpreterLock;

/* All of them; each list is in order of locks, and has what is largest first. */
typedef struct InterpreterLocks {
	VEC(InterpreterLock) locks;
	VEC(LockHolding) holdings;
	VEC(LockKept) kept;
	VEC(LockWaiter) waiters;
	Strings functions; /* "compute (app.py)" */
} InterpreterLocks;

/* To be called when the reasons of waits are final. */
InterpreterLocks interpreter_locks_sum(const Timeline *timeline, Frames *frames);
void interpreter_locks_free(InterpreterLocks *locks);

#endif
