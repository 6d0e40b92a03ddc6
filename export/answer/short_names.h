/* SPDX-License-Identifier: GPL-2.0-or-later */
/* short_names.h - names of threads and objects for text that has little room. */
#ifndef WALLPROF_SHORT_NAMES_H
#define WALLPROF_SHORT_NAMES_H

#include "timeline.h"

/*
 * Returns what the user knows a thread by: the label of its process, "cc1 slow.c", or its own name,
 * "bio_close_file (redis-server)". Of a title that the process changes all the time it is the
 * beginning. The caller frees it.
 */
char *short_names_thread(const Timeline *timeline, const Thread *thread);

/* Returns the same for a process (Timeline::processes). The caller frees it. */
char *short_names_process(const Timeline *timeline, uint32_t process);

/* Returns at most so many characters of a text, with "…" in place of the rest. The caller frees it.
 */
char *short_names_cut(const char *text, size_t characters);

/* Returns whether a thread has a name of its own, other than its process's. */
bool short_names_own(const Timeline *timeline, const Thread *thread);

/*
 * Returns the part of an object's name that tells it from others: "…/db.wal", "table_lock",
 * "tcp → 10.0.0.2:80". The caller frees it.
 */
char *short_names_object(const Object *object);

/*
 * Returns whether an object has a name that says something. A length of time and "[eventfd]" are
 * none, an address of memory is one only with its variable, and a list of what epoll watches is
 * none if it has numbers of inodes.
 */
bool short_names_exists(const Object *object);

#endif
