/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_memory.h - reads what a process says of code that it makes at run time: memory in which
 * .eh_frame may be, and the objects that it shows to debuggers.
 *
 * Only pages that are in memory are read, so the recorder does not wait for a swapped page. What is
 * read is not looked into, but for the list of objects.
 */
#ifndef WALLPROF_JIT_MEMORY_H
#define WALLPROF_JIT_MEMORY_H

#include "jit_image.h"
#include "remote_memory.h"

/* Memory of one process is read up to this size, and so are the objects that it shows. */
#define JIT_MEMORY_MAX (32u << 20)
/* So many lists, and objects in them, are followed. */
#define JIT_OBJECTS_MAX 4096u

typedef struct JitRegion {
	uint64_t start, end; /* AVMA */
	bool write, exec, shared;
	uint64_t distance; /* to the nearest executable memory, if jit_memory_sort() was called */
} JitRegion;

typedef struct JitMemoryPiece {
	uint64_t address, size; /* AVMA */
	uint64_t offset;	/* in the file that holds what was read */
	uint64_t object;	/* 1: it is an object; 0: memory */
} JitMemoryPiece;

/* What is being read of one process. */
typedef struct JitMemoryReader {
	RemoteProcess *process; /* NULL: it is closed */
	int fd;			/* a memfd: what was read */
	uint64_t size;		/* of it */
	VEC(JitRegion) todo;	/* in the order in which they are read */
	size_t next;		/* in todo */
	uint64_t done;		/* bytes of that one */
	uint64_t memory_left;	/* bytes that may still be read of memory, */
	uint64_t objects_left;	/* and of objects */
	size_t entries_left;	/* lists, and objects, that may still be followed */
	VEC(JitMemoryPiece) pieces;
	uint64_t omitted; /* bytes, regions and objects for which there was no room */
} JitMemoryReader;

/*
 * Opens the process of a living thread. Returns 0 or a negative errno, as remote_memory_open()
 * does; *ret_reader can be closed in any case.
 */
int jit_memory_open(RemoteMemory *memory, int tid, JitMemoryReader *ret_reader);
void jit_memory_close(JitMemoryReader *reader);

/*
 * Reads the objects that a __jit_debug_descriptor at this address leads to. The list is followed as
 * far as each entry names the one before as its predecessor.
 */
void jit_memory_read_objects(JitMemoryReader *reader, uint64_t descriptor);

void jit_memory_add(JitMemoryReader *reader, const JitRegion *region);
/*
 * Is called when all regions are added: those that cannot be written to are read first, and then
 * the nearest to executable memory. Drops the last ones if there are too many.
 */
void jit_memory_sort(JitMemoryReader *reader, const JitRanges *code);

/*
 * Reads on until the deadline (CLOCK_MONOTONIC). Returns whether all is read, or nothing more can
 * be: remote_memory_is_refused().
 */
bool jit_memory_go_on(JitMemoryReader *reader, uint64_t deadline_ns);

#endif
