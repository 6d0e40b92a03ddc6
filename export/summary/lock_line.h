/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lock_line.h - one line about the lock of an interpreter, if threads waited for it for long. */
#ifndef WALLPROF_LOCK_LINE_H
#define WALLPROF_LOCK_LINE_H

#include "frames.h"
#include "timeline.h"

/*
 * Returns "Python GIL: 4 threads waited 1.857 s, 99 % of it for compute (app.py)"; NULL: all waits
 * for one lock together are less than a tenth of the window. The caller frees it.
 */
char *lock_line_text(const Timeline *timeline, Frames *frames);

#endif
