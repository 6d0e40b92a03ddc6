/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * deferred_free.h - giving the BPF maps' memory back while others go about their work.
 *
 * A worker of the kernel frees a map's pages in one go, some 4 MB in a millisecond, and mostly lets
 * go of its CPU only then (kernel/bpf/syscall.c: bpf_map_free_deferred()); of several maps, several
 * workers at once, until every CPU has one. So where the target runs on, they are freed
 * one after the other.
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
 * Holds those of the object, loaded and about to be closed, that take a while to free: they outlive
 * it.
 */
void deferred_free_hold(DeferredFree *maps, const struct bpf_object *object);

/*
 * Waits until the object's programs are likely to be gone, which hold the maps, too: after a grace
 * period of RCU tasks trace (kernel/rcu/tasks.h), if they may sleep.
 */
void deferred_free_wait(const DeferredFree *maps);

/* Waits for about as long as the kernel takes to free so many bytes. */
void deferred_free_pause(uint64_t bytes);

/* Gives back what is held, one after the other. */
void deferred_free_release(DeferredFree *maps);

#endif
