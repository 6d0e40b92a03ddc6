/* SPDX-License-Identifier: GPL-2.0-or-later */
/* analysis.h - derives everything from a timeline that its writers show. */
#ifndef WALLPROF_ANALYSIS_H
#define WALLPROF_ANALYSIS_H

#include "frames.h"
#include "timeline.h"
#include <sys/types.h>

/*
 * Runs every pass over the timeline, in the order of their dependencies. After this the timeline is
 * only read. frames must have the symbols.
 *
 * critical_tid: the thread at whose end the critical path ends; 0 = the command's. Returns 0, or
 * -ESRCH if the recording has no such thread.
 */
int analysis_run(Timeline *timeline, Frames *frames, pid_t critical_tid);

#endif
