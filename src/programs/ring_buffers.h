/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ring_buffers.h - the ring buffers by which the BPF programs send records
 * (Documentation/bpf/ringbuf.rst).
 */
#ifndef WALLPROF_RING_BUFFERS_H
#define WALLPROF_RING_BUFFERS_H

#include "records.h"
#include <bpf/libbpf.h>
#include <stdint.h>

/* Not "enum ring": libbpf 1.3 and later declare a struct of that name. */
enum ring_index {
	RING_SCHED, /* must not lose records */
	RING_BULK,
	RING_COPY, /* stack copies, which only the recorder reads */
	RINGS,
};

typedef struct RingBuffers RingBuffers;

/*
 * Creates the rings, with this number of bytes each (a power of two, at least a page). The kernel
 * clears all their pages, which takes about 10 ms; if aside is set, a thread does it.
 */
RingBuffers *ring_buffers_new(const uint32_t sizes[static RINGS], bool aside);

/*
 * Waits until the rings exist, and makes these maps, whose object is not loaded yet, use them.
 * Returns 0 or the negative errno of creating them.
 */
int ring_buffers_attach(RingBuffers *rings, struct bpf_map *const maps[static RINGS]);

/* Passes every record in the rings to on_record, which returns 0 or a negative errno. */
int ring_buffers_drain(RingBuffers *rings,
		       int (*on_record)(void *user, const struct record *record), void *user);

void ring_buffers_free(RingBuffers *rings);

#endif
