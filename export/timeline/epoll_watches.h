/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * epoll_watches.h - what an epoll descriptor watches in a recording (REC_WATCH).
 *
 * A record lists what it watches at one moment. Descriptors come and go with each connection, so an
 * epoll descriptor, and a wait for it, are named by everything that it was found to watch.
 */
#ifndef WALLPROF_EPOLL_WATCHES_H
#define WALLPROF_EPOLL_WATCHES_H

#include "records.h"
#include <stdbool.h>

/* The limit of entries per epoll descriptor; beyond it rec_watch::more is set. */
#define WATCHES_KEPT 64

/*
 * Merges a record into the entries so far. Frees `known`, which may be NULL. The caller frees the
 * result.
 */
struct rec_watch *epoll_watches_add(struct rec_watch *known, const struct rec_watch *record);

/*
 * Returns how many descriptors are watched, directly or through others, and sets their kinds (bits
 * 1 << enum fd_kind). Epoll descriptors that watch others are not counted.
 */
uint32_t epoll_watches_leaves(const struct rec_watch *watch, uint32_t *ret_kinds);

/*
 * Writes the indexes of what is watched through `via` (watched::via): listening sockets first, then
 * by descriptor. Returns how many; numbers must have room for all.
 */
uint32_t epoll_watches_sorted(const struct rec_watch *watch, uint32_t via, uint32_t *numbers);

/* Returns whether it watches a descriptor that itself watches others. */
bool epoll_watches_through(const struct rec_watch *watch, uint32_t number);

#endif
