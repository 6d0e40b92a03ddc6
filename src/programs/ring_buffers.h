/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ring_buffers.h - the rings through which the BPF programs' records come
 * (Documentation/bpf/ringbuf.rst).
 */
#ifndef WALLPROF_RING_BUFFERS_H
#define WALLPROF_RING_BUFFERS_H

#include "records.h"
#include <bpf/libbpf.h>
#include <stdint.h>

/* Not "enum ring": libbpf 1.3 and later declare a struct of that name. */
enum ring_index {
	RING_SCHED, /* must not lose */
	RING_BULK,
	RING_COPY, /* stacks for the recorder alone */
	RINGS,
};

typedef struct RingBuffers RingBuffers;

/*
 * Makes them, of so many bytes each (a power of two, at least a page). The kernel clears all their
 * pages, which takes it some 10 ms; aside: a thread is begun that does it.
 */
RingBuffers *ring_buffers_new(const uint32_t sizes[static RINGS], bool aside);

/*
 * Waits until they are made, and lets these maps, whose object is not loaded yet, be them.
 * Returns 0 or a negative errno: what the kernel refused it with.
 */
int ring_buffers_attach(RingBuffers *rings, struct bpf_map *const maps[static RINGS]);

/* Hands every record that waits to take, which returns 0 or a negative errno. */
int ring_buffers_drain(RingBuffers *rings, int (*take)(void *user, const struct record *record),
		       void *user);

void ring_buffers_free(RingBuffers *rings);

#endif
