/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * epoll_watches.h - what an epoll descriptor watches in a recording (REC_WATCH).
 *
 * A record says what it watches at one moment. Descriptors come and go with each connection, so an
 * epoll descriptor, and a wait for it, are named by all that it was seen to watch.
 */
#ifndef WALLPROF_EPOLL_WATCHES_H
#define WALLPROF_EPOLL_WATCHES_H

#include "records.h"
#include <stdbool.h>

/* The most that is kept of one epoll descriptor; beyond that rec_watch::more is set. */
#define WATCHES_KEPT 64

/*
 * Merges a record into what was seen so far. known may be NULL, and is freed; the result is to be
 * freed.
 */
struct rec_watch *epoll_watches_add(struct rec_watch *known, const struct rec_watch *record);

/*
 * How many descriptors are watched, directly or through others, and of which kinds (bits 1 << enum
 * fd_kind). Epoll descriptors that watch others are not counted.
 */
uint32_t epoll_watches_leaves(const struct rec_watch *watch, uint32_t *ret_kinds);

/*
 * The indexes of what is watched through `via` (watched::via), listening sockets first, then by
 * descriptor; returns how many. numbers has room for all.
 */
uint32_t epoll_watches_sorted(const struct rec_watch *watch, uint32_t via, uint32_t *numbers);

/* Whether it watches something that watches others. */
bool epoll_watches_through(const struct rec_watch *watch, uint32_t number);

#endif
