/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ring_buffers.h - the ring buffers by which the BPF programs send records.
 *
 * A ring has one lock for all CPUs that write to it, so each group of CPUs has rings of its own,
 * one of each kind. The programs find them in one map, group_rings.
 */
#ifndef WALLPROF_RING_BUFFERS_H
#define WALLPROF_RING_BUFFERS_H

#include "ring_reader.h"
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>

/* How many rings there are, and how large each is. */
typedef struct RingLayout {
	uint64_t size;	     /* bytes of a ring: a power of two, at least a page */
	uint32_t group_cpus; /* CPUs that share rings; their numbers are neighbours */
	uint32_t groups;     /* 1 to RING_GROUPS_MAX */
} RingLayout;

/*
 * Returns the layout for the CPUs that are online. size and group_cpus may be 0: then there are at
 * most 16 groups, and the rings of a kind have 16 MiB together, but at least 4 MiB each. Rings are
 * halved until all of them have at most `most` bytes together, or a page each: then the size of the
 * result is less than what was asked for.
 */
RingLayout ring_layout(uint64_t size, uint32_t group_cpus, uint32_t cpus, uint64_t most);

/*
 * Returns what all rings together may have, in bytes: a quarter of this machine's memory or, if
 * that is less, of what the process's cgroups may have. The kernel takes all pages of a ring when
 * it is created, and does not swap them out.
 */
uint64_t ring_memory_max(void);

/* Returns the bytes of all rings of a layout. */
uint64_t ring_layout_bytes(const RingLayout *layout);

/* Returns a size of rings as --ring-size takes it, such as 64K or 16M. The caller frees it. */
char *ring_size_text(uint64_t size);

/*
 * Returns the group of a CPU, also of one whose number is higher than cpus, because it was offline.
 */
static inline uint32_t ring_layout_group(const RingLayout *layout, uint32_t cpu)
{
	return cpu / layout->group_cpus % layout->groups;
}

typedef struct RingBuffers RingBuffers;

/*
 * Creates the rings; without copies, those of RING_COPY have one page. The kernel clears all their
 * pages, which takes 10 ms for 48 MiB; if aside is set, a thread does it.
 */
RingBuffers *ring_buffers_new(const RingLayout *layout, bool copies, bool aside);

/*
 * Waits until the rings exist, makes the map group_rings of an object that is not loaded yet use
 * them, and starts to put them into it. Returns 0 or a negative errno.
 */
int ring_buffers_attach(RingBuffers *rings, struct bpf_map *group_rings);

/*
 * Waits until all rings are in the map. It is called before the programs are attached, but after
 * they are loaded, because it takes 10 to 20 ms before Linux 6.19. Returns 0 or a negative errno.
 */
int ring_buffers_ready(RingBuffers *rings);

RingLayout ring_buffers_layout(const RingBuffers *rings);

/* Returns what reads the rings. */
RingReader *ring_buffers_reader(RingBuffers *rings);

/* Returns the descriptor of a ring, which is readable when the kernel wakes its reader. */
int ring_buffers_fd(const RingBuffers *rings, uint32_t group, enum ring_index kind);

void ring_buffers_free(RingBuffers *rings);

#endif
