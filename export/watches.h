/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * watches.h - what an epoll descriptor watches in a recording (REC_WATCH).
 *
 * A record says what it watches at one moment. Descriptors come and go with each connection, so the
 * name of an epoll descriptor, and what a wait for it is called, go by all that it was seen to
 * watch.
 */
#ifndef WALLPROF_WATCHES_H
#define WALLPROF_WATCHES_H

#include "records.h"
#include <stdbool.h>

/* More are not kept of one epoll descriptor: rec_watch::more. */
#define WATCHES_KEPT 64

/*
 * What was seen by now and what a record adds to it. known may be NULL, and is freed; the result is
 * to be freed.
 */
struct rec_watch *watches_add(struct rec_watch *known, const struct rec_watch *record);

/*
 * How many descriptors are watched, by way of others or not, and of which kinds (bits 1 << enum
 * fd_kind). One that only watches others is none of them.
 */
uint32_t watches_leaves(const struct rec_watch *watch, uint32_t *ret_kinds);

/*
 * The numbers of what is watched by way of `via` (watched::via), sockets that listen first, then by
 * descriptor; returns how many. numbers has room for all.
 */
uint32_t watches_sorted(const struct rec_watch *watch, uint32_t via, uint32_t *numbers);

/* Whether it watches something that watches others. */
bool watches_through(const struct rec_watch *watch, uint32_t number);

#endif
