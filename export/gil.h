/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gil.h - which thread has Python's global interpreter lock while others wait for it.
 */
#ifndef WALLPROF_GIL_H
#define WALLPROF_GIL_H

#include "timeline.h"

/*
 * Gives each REASON_GIL the thread that had the lock at its end (Interval::rival). The lock keeps
 * no number of a thread. But while threads wait for it, the one that lets it go wakes one of them,
 * so it had the lock until then, and since the last such wakeup.
 */
void gil_find_holders(Timeline *timeline);

#endif
