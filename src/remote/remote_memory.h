/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * remote_memory.h - memory of other processes. It is the only place that reads it in user space.
 *
 * A sandboxed child reads, and the recorder waits for it up to a deadline. A page that is not in
 * memory is brought by a disk, or by the process itself (a file of its own FUSE file system), which
 * may never bring it. The wait for it may even be uninterruptible. So a child that does not answer
 * in time is killed and left to the kernel, another one is started, and the process is not read
 * any more.
 *
 * The recorder opens /proc/PID/mem and /proc/PID/pagemap with its own rights. The child has these
 * descriptors and no other right. They belong to one address space, so that a reused PID leads to
 * no other process. A page that userfaultfd(2) should bring is not waited for: the kernel refuses
 * it to this file (access_remote_vm() may not drop the lock of the address space).
 */
#ifndef WALLPROF_REMOTE_MEMORY_H
#define WALLPROF_REMOTE_MEMORY_H

#include "util.h"
#include <sys/types.h>

#define REMOTE_PAGE_SIZE 4096u
/* So many pages are read at once. */
#define REMOTE_PAGES_MAX 64u
/* So long is waited for an answer; for longer, up to the second limit, if the child needs a CPU. */
#define REMOTE_WAIT_NS	   (250 * NSEC_PER_MSEC)
#define REMOTE_WAIT_CPU_NS NSEC_PER_SEC
/* After so many processes that have kept a child waiting, none is read any more. */
#define REMOTE_STALLS_MAX 8u
/* The same for children that have ended by themselves, or were killed by others. */
#define REMOTE_RESTARTS_MAX 16u

/* The child, and what was counted: one for a recording. */
typedef struct RemoteMemory RemoteMemory;
/* A process that is read. */
typedef struct RemoteProcess RemoteProcess;

typedef struct RemoteMemoryCounts {
	uint64_t requests;  /* sent to the child */
	uint64_t stalled;   /* processes with memory that did not come in time */
	uint64_t restarted; /* times that the child had ended, and another was started */
	uint64_t refused;   /* reads not made: of a process that stalled, or without a child */
	int error;	    /* of starting the child; 0: it runs, or will be started */
	bool gave_up;	    /* … it is because too many have stalled or ended */
	uint64_t start_ns;  /* what starting children took */
} RemoteMemoryCounts;

/* What a request has read. It is valid until the next one. */
typedef struct RemotePages {
	const uint8_t *data; /* page i is at i * REMOTE_PAGE_SIZE */
	uint64_t read;	     /* bit i: page i was read */
	uint32_t known;	     /* the pages that the process may have; 0: it has ended */
} RemotePages;

/* The child is started when it is needed. */
RemoteMemory *remote_memory_new(void);
void remote_memory_free(RemoteMemory *memory);
RemoteMemoryCounts remote_memory_counts(const RemoteMemory *memory);
/* Returns the child's process id; 0: none runs. */
pid_t remote_memory_child(const RemoteMemory *memory);

/*
 * Opens the address space of a living thread. Returns 0 or a negative errno: -ETIME if the process
 * is not read any more, because it has kept a child waiting, or if no child can be started.
 */
int remote_memory_open(RemoteMemory *memory, pid_t tid, RemoteProcess **ret_process);
void remote_memory_close(RemoteProcess *process);
/* Returns whether its memory is not read any more; remote_memory_open() would return -ETIME. */
bool remote_memory_is_refused(const RemoteProcess *process);

/*
 * Reads those of up to REMOTE_PAGES_MAX pages from this address on that are in memory. Returns
 * false without an answer.
 */
bool remote_memory_pages(RemoteProcess *process, uint64_t address, uint32_t count,
			 RemotePages *ret_pages);

/*
 * Reads bytes, in pages that are in memory. Pages around them are read at once and are kept for
 * later calls, until remote_memory_refresh(). Returns false if a page is absent.
 */
bool remote_memory_read(RemoteProcess *process, uint64_t address, void *to, size_t size);
/* Drops what was kept, unless it was read after that time (CLOCK_MONOTONIC). */
void remote_memory_refresh(RemoteProcess *process, uint64_t ns);

/* Reads bytes, also of pages that have to be brought, and keeps nothing. */
bool remote_memory_bring(RemoteProcess *process, uint64_t address, void *to, size_t size);

#endif
