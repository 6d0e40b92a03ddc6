/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * critical_path.h - the one chain of threads and waits that determined how long a run took.
 *
 * It is followed backwards, from where a thread ended. While that thread ran, or waited for a CPU,
 * it was on the path. Where it was asleep the path goes to its waker, at the moment of the wakeup,
 * and on from there: what the waker had done before is what the sleeper had to wait for. Where a
 * request to a block device ended the sleep, the path lies on the device since the request was
 * submitted (REASON_ON_DEVICE: before the sleep), and continues with the submitter. If the
 * submitter slept until the device's queue had room, the path lies on the device only since then.
 * In a wait for an interpreter's lock it goes to the thread that had the lock, and from there,
 * until the wait began, to the one that had it before (interpreter_lock_tenure()). At a thread's
 * birth the path goes to its creator. A timer, the network or a task that is not recorded ends a
 * sleep from outside: the sleep itself is then on the path, but only back to where the thread that
 * waited for the sleeper was awake itself. Before that it did not wait, and was what the run was
 * doing. A thread that waited for the sleeper through others counts likewise if it was awake when
 * the sleep ended, and if none between them waited for the whole sleep. A sleep for a disk is on
 * the path from its beginning: the sleeper made the request.
 *
 * So at each moment of the run exactly one thread is on the path: to shorten the run, what is on
 * the path must become shorter. O(intervals on the path).
 */
#ifndef WALLPROF_CRITICAL_PATH_H
#define WALLPROF_CRITICAL_PATH_H

#include "timeline.h"

/*
 * Finds the path that ends where thread (Timeline::threads) ends, and stores it in Timeline::path.
 * To be called once, when the timeline is finished.
 */
void critical_path_find(Timeline *timeline, uint32_t thread);

/*
 * Returns the thread (Timeline::threads) with this tid, the last one that had it. tid 0: the thread
 * with which the command's process ended; without a command, the first one that was attached to and
 * ended, unless it is the child of another one. THREAD_NONE if there is none, or if the whole
 * system was recorded without a command: a path back from a thread that does not end has no
 * meaning.
 */
uint32_t critical_path_thread(const Timeline *timeline, uint32_t tid);

/*
 * Hides the path, and sets CriticalPath::hidden, if nearly all of it is waits that say nothing
 * about the run: a server's main thread waits for requests or signals; a command slept while the
 * whole system was recorded (`-a -- sleep 10`).
 */
void critical_path_hide(Timeline *timeline);

/*
 * Returns the end of the stretch of the path that begins with interval i: the index after the last
 * interval of one thread, or of one thread's request.
 */
size_t critical_path_stretch(const Thread *track, size_t i);

/*
 * Returns the name of the stretch that begins with interval i: its thread's, or "[on the device]".
 */
const char *critical_path_stretch_name(const Timeline *timeline, size_t i);

#endif
