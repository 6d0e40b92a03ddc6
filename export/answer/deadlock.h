/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * deadlock.h - threads that wait for mutexes of each other, so that none can go on.
 *
 * Only waits without a time limit count, for mutexes of glibc, which store their owners, within one
 * process. The owner is read when the wait for it begins. That it still has the mutex follows if no
 * wait for the same mutex has ended since: an unlock would have woken one of its waiters. Where
 * something of this is not known, nothing is said.
 */
#ifndef WALLPROF_DEADLOCK_H
#define WALLPROF_DEADLOCK_H

#include "timeline.h"

/*
 * Returns "deadlock: reader (7) waits for a, held by writer (8), which waits for b, held by reader
 * (7)", of the first circle of threads that wait so at the end of the window, or of their process
 * if it was killed; NULL: there is none. The text is fit for a terminal. The caller frees it.
 */
char *deadlock_text(const Timeline *timeline);

#endif
