/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * path_waits.h - what the critical path waited for, and how long.
 *
 * The path itself has no waits for other threads: where a thread waited for another, the path is on
 * the other one. Here each moment of the path is charged to one wait: to that of the thread on the
 * path if it waits for a disk, a file, a pipe or a socket; else to the innermost wait that had
 * begun by then and that the path followed to its waker; else to what the thread on the path waited
 * for. All parts of a turn of waits for an interpreter's lock count as followed. Idle waits
 * (idle.h) that the path followed are not charged. So the sum is at most the path's length.
 */
#ifndef WALLPROF_PATH_WAITS_H
#define WALLPROF_PATH_WAITS_H

#include "timeline.h"

/* A wait of a thread, and the part of the path that is charged to it. */
typedef struct PathWait {
	uint32_t thread;   /* Timeline::threads */
	uint32_t interval; /* Thread::intervals: blocked */
	uint64_t ns;	   /* of the path, charged to this wait */
	uint64_t other_ns; /* of the path, in this wait but charged to another one */
} PathWait;

typedef VEC(PathWait) PathWaits;

/*
 * Returns the waits that a part of the path is charged to or lies in, each once, in no order; empty
 * if there is no path. The caller frees them with vec_free(). To be called after analysis_run().
 */
PathWaits path_waits_find(const Timeline *timeline);

#endif
