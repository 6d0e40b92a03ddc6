/* SPDX-License-Identifier: GPL-2.0-or-later */
/* waited_for.h - the one thing that was waited for most: a file, a lock, a peer, a child. */
#ifndef WALLPROF_WAITED_FOR_H
#define WALLPROF_WAITED_FOR_H

#include "timeline.h"

typedef struct WaitedFor {
	enum reason reason;
	char *name; /* "…/db.wal", "table_lock, held by writer (app)"; NULL: nothing has a name */
	uint64_t ns;
} WaitedFor;

/*
 * Finds it on the critical path (path_waits.h) or, without a path, among all waits that are not
 * idle. but: a thread's name that has been said already. The caller frees the name.
 */
WaitedFor waited_for_find(const Timeline *timeline, const char *but);

/*
 * Returns whether an interval of a thread counts. Idle waits never do. Without a path
 * unknown time does not: no thread waited for it. In a recording of the whole system most threads
 * are asleep until another one has work for them, which is recorded itself: only waits for disks,
 * pages and locks count.
 */
bool waited_for_reason_counts(const Timeline *timeline, enum reason reason); /* of a wait */
bool waited_for_counts(const Timeline *timeline, const Interval *interval);

/* Returns the words of a reason, "mutex wait". The caller frees them. */
char *waited_for_words(enum reason reason);

#endif
