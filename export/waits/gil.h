/* SPDX-License-Identifier: GPL-2.0-or-later */
/* gil.h - finds the thread that has Python's global interpreter lock while others wait for it. */
#ifndef WALLPROF_GIL_H
#define WALLPROF_GIL_H

#include "timeline.h"

/*
 * Sets the holder at the end of each REASON_GIL wait (Interval::lock_holder). The lock does not
 * store its owner. But while threads wait for it, the thread that releases it wakes one of them: so
 * that thread held the lock until then, and since the last such wakeup.
 */
void gil_find_holders(Timeline *timeline);

#endif
