/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * idle.h - decides which waits are those of a thread that has nothing to do. This is the only such
 * rule.
 *
 * Whether a wait counts does not follow from the system call, but from what ended it and from where
 * in the program it is. In this order:
 * - it counts if a hundredth of it or more is on the critical path. All waits of a main thread
 *   count if the run waits for the end of this thread;
 * - it is idle if no thread of the recording ended it, or if it did not end. A few timeouts belong
 *   to the wait that follows at the same place, if a thread ended that one; and a wait that did not
 *   end counts if threads ended other waits at its place that count;
 * - it is idle between jobs if a thread ended it and it is in the waiting thread's own outermost
 *   loop, where the thread waits repeatedly: a worker of a pool, an event loop. It is not if the
 *   thread that ended it works for the waiting one, nor if the thread polls only its connection to
 *   a server, which is a wait for the reply;
 * - else it is a wait for the thread that ended it, and counts.
 * This holds for condition variables, semaphores, futexes, events, signals, connections to come,
 * several descriptors at once, and the connection from which a server's thread gets its requests;
 * and, if they do not end, for joins and children. Locks, disks, faults, and data from one peer
 * always count; so does every wait that cannot be decided.
 */
#ifndef WALLPROF_IDLE_H
#define WALLPROF_IDLE_H

#include "timeline.h"

/*
 * Gives waits the reasons of CATEGORY_IDLE and CATEGORY_JOBS, in the threads and their time by
 * state, but not in the critical path. To be called when the waits' reasons are known
 * (wait_reasons.h), and the critical path, if there is one (critical_path.h).
 */
void idle_find(Timeline *timeline);

#endif
