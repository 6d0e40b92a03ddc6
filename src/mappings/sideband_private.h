/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sideband_private.h - what sideband.c uses of the kernel; the unit test plays the kernel. */
#ifndef WALLPROF_SIDEBAND_PRIVATE_H
#define WALLPROF_SIDEBAND_PRIVATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The rings of a CPU. Only the first one wakes the recorder at each event. */
enum sideband_ring {
	SIDEBAND_MAPPINGS, /* MMAP2 */
	SIDEBAND_TASKS,	   /* FORK, EXIT, COMM: of threads, too, so there are many */
	SIDEBAND_RINGS,
};

typedef struct SidebandKernel {
	uint64_t (*now_ns)(void);
	/* Opens an event of a CPU. Returns a descriptor, or -1 with errno. */
	int (*open_event)(int cpu, enum sideband_ring ring);
	ssize_t (*read)(int fd, void *to, size_t size);
	void (*pause)(unsigned int us);
} SidebandKernel;

extern SidebandKernel sideband_kernel;

#endif
