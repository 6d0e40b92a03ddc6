/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * progress.h - a line on the terminal that says what takes long: the present step, and for how long
 * it has been going on.
 *
 * There is a line only if standard error is a terminal, messages are not quiet, and more than two
 * seconds have passed. A thread writes it, so that no step has to look at the clock. A message
 * takes the line's place, and the line comes again behind it.
 */
#ifndef WALLPROF_PROGRESS_H
#define WALLPROF_PROGRESS_H

/* From here on the step is `what`, a string that stays valid; the seconds are counted from here. */
void progress_begin(const char *what);

/* The share of the step that is done, 0 to 1. Without a call the line has no share. */
void progress_share(double share);

/* Removes the line, and ends the thread. Nothing happens if there is none. */
void progress_end(void);

#endif
