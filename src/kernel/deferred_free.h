/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * deferred_free.h - frees the memory of BPF maps while other programs run.
 *
 * A worker of the kernel frees a map's pages in one go, some 4 MB in a millisecond, and usually
 * leaves its CPU only after that (kernel/bpf/syscall.c: bpf_map_free_deferred()). Several maps are
 * freed by several workers at once, until every CPU has one. So if the target is still running, the
 * maps are freed one after the other.
 */
#ifndef WALLPROF_DEFERRED_FREE_H
#define WALLPROF_DEFERRED_FREE_H

#include "util.h"
#include <bpf/libbpf.h>
#include <stdint.h>

typedef struct LargeMap {
	int fd;
	uint64_t bytes;
} LargeMap;

typedef struct DeferredFree {
	uint64_t since_ns;
	VEC(LargeMap) items;
} DeferredFree;

/*
 * Keeps those maps of the object open that take long to free; the object is loaded and about to be
 * closed.
 */
void deferred_free_hold(DeferredFree *maps, const struct bpf_object *object);

/* Does the same for a map that is not of the object, but in one of its maps. */
void deferred_free_hold_map(DeferredFree *maps, int fd, uint64_t bytes);

/*
 * Waits until the object's programs, which also hold the maps, are likely to be freed: if they may
 * sleep, after a grace period of RCU tasks trace (kernel/rcu/tasks.h).
 */
void deferred_free_wait(const DeferredFree *maps);

/* Waits for about as long as the kernel takes to free so many bytes. */
void deferred_free_pause(uint64_t bytes);

/* Releases the maps, one after the other. */
void deferred_free_release(DeferredFree *maps);

#endif
