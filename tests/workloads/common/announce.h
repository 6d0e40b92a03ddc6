/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * announce.h - what a program does, and on which calls: the truth of the tests of stacks.
 *
 * A workload spins or sleeps at a place whose chain of calls it knows, and appends a line
 * to the file that $WALLPROF_ANNOUNCE names:
 *
 *   {"pid":1,"tid":1,"kind":"spin","begin_ns":1,"end_ns":2,"offset_ns":3,"chain":"main f
 * announce_spin"}
 *
 * Times are CLOCK_MONOTONIC, offset_ns is what CLOCK_REALTIME is more. From begin_ns to end_ns
 * every user stack of that thread is, below where threads begin, exactly the chain, from
 * the outermost function to the innermost. Its words:
 *
 *   name      one frame of that function        name*20   so many of them
 *   .         one frame, whichever              lib:NAME  one or more frames of that library
 *   plt:      one stub           + a b …   and then any of these, any number of times, or nothing
 *   ^         before all others: nothing calls the first function, no thread begins there
 *
 * All this asks the kernel by system calls of its own: nothing of libc is on the stack, and
 * it works in signal handlers, vfork's children, and threads that libc knows nothing of. It needs
 * nothing but fork() to keep the environment.
 */
#ifndef WALLPROF_ANNOUNCE_H
#define WALLPROF_ANNOUNCE_H

#include "frame.h"
#include <stdint.h>

#define NSEC_PER_MSEC 1000000ULL

#ifdef __cplusplus
extern "C" {
#endif

/* Opens $WALLPROF_ANNOUNCE; its absence ends the program with status 2. Before all others. */
void announce_open(void);

/* Burns so much CPU time, or sleeps, then announces it; the chain ends in announce_spin or
 * announce_sleep.
 */
void announce_spin(uint64_t ms, const char *chain);
void announce_sleep(uint64_t ms, const char *chain);

/*
 * The same for what the caller does itself, between the two calls: from within the one to within
 * the other, so that both may be found on the stack.
 */
uint64_t announce_now(void);
void announce(const char *kind, uint64_t begin_ns, const char *chain);

/* The CPU time that this thread has used, in ns. */
uint64_t announce_cpu(void);

/* A line that the tests read beside the others: {"kind":KIND,"value":…}. */
void announce_value(const char *kind, uint64_t value);

/* Ends the program with "what" and status 1 if failed. */
void announce_check(int ok, const char *what);

#ifdef __cplusplus
}
#endif

#endif
