/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * critical_path.h - the one chain of threads and waits that set how long a run took.
 *
 * It is walked backwards, from where a thread ended. While that thread ran, or waited for a CPU,
 * it was on the path. Where it was asleep the path goes to who woke it, at the moment of the
 * waking, and on from there: what that thread had done before is what the sleeper had to wait for.
 * Where a request to a block device ended the sleep, the path lies on the device since the request
 * was submitted (REASON_ON_DEVICE: before the sleep), and goes on with who submitted it. At its
 * birth a thread hands over to its creator. A timer, the network or a task that is not recorded end
 * a sleep from outside: the sleep itself is then on the path, but only back to where the thread
 * that waited for the sleeper was awake itself: until then that did not wait, and was what the run
 * was doing. Of a thread that waited for it by way of others this holds if it was awake when the
 * sleep ended, and if none between them waited for the whole of the sleep. A sleep for a disk is on
 * the path to its beginning: the sleeper made the request.
 *
 * So at each moment of the run exactly one thread is on the path: to shorten the run, what is on it
 * must become shorter. O(intervals on the path).
 */
#ifndef WALLPROF_CRITICAL_PATH_H
#define WALLPROF_CRITICAL_PATH_H

#include "timeline.h"

/*
 * Finds the path that ends where thread (Timeline::threads) ends, and keeps it in
 * Timeline::path. Once, when the timeline is finished.
 */
void critical_path_find(Timeline *timeline, uint32_t thread);

/*
 * The thread (Timeline::threads) with that number, the last one that had it; tid 0: the one with
 * which the command's process ended, or else the first one that was attached to and ended, and is
 * not the child of another one. THREAD_NONE if there is none, or if a whole system was recorded
 * without a command: a path back from a thread that does not end has no meaning.
 */
uint32_t critical_path_thread(const Timeline *timeline, uint32_t tid);

/*
 * Drops the path if it is that of a server, whose main thread waits nearly all the time for
 * requests or signals: sets CriticalPath::left_out.
 */
void critical_path_drop_service(Timeline *timeline);

/*
 * Where the stretch of the path ends that begins with interval i: those of one thread, or of one
 * thread's request. An interval's number, or how many there are.
 */
size_t critical_path_stretch(const Thread *strip, size_t i);

/* What a stretch is called that begins with interval i: its thread's name, or "[on the device]". */
const char *critical_path_stretch_name(const Timeline *timeline, size_t i);

#endif
