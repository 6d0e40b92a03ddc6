/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spill.h - large arrays that do not have to fit into memory: their parts lie in a file, from which
 * the kernel reads them.
 *
 * From spill_begin() on all growing arrays (VEC) take their memory from here. That of small ones,
 * and while there is enough memory, is realloc()'s; else an array moves into the file when it
 * grows. It is still an array of items, used by pointers.
 *
 * An array in the file is mapped read-only. The first write to a block of it is a fault, whose
 * handler (SIGSEGV) replaces the mapping by anonymous memory; if there is too much of that, the
 * block that was replaced first is written to the file and mapped again. A shared writable mapping
 * would need no handler, but the kernel then writes page by page, and stops the writer at each page
 * when more pages are dirty than it allows (vm.dirty_bytes).
 *
 * One thread uses it. Space in the file is allocated before an array gets it, so a full disk is an
 * error when an array grows. It ends the program with a message, as lack of memory does. A process
 * that is forked must not write to arrays that its parent changes.
 */
#ifndef WALLPROF_SPILL_H
#define WALLPROF_SPILL_H

#include <stddef.h>
#include <stdint.h>

/*
 * From here on arrays together have at most memory_max bytes of anonymous memory; arrays below
 * 64 KiB are counted, but do not move to the file. fd: the file, empty and without a name; it is
 * taken over. folder: the place of the file, and remedy: what helps if it is full, for the message;
 * both are copied. Returns 0, or a negative errno if this system or file system cannot do it: then
 * all stays in memory.
 */
int spill_begin(int fd, const char *folder, const char *remedy, size_t memory_max);

/*
 * Closes the file. Arrays that lie in it must have been freed before. Nothing happens if
 * spill_begin() was not called.
 */
void spill_end(void);

/*
 * Between the two, arrays that grow move out of the file and others stay in memory: for a time in
 * which processes are forked that use arrays of their own.
 */
void spill_pause(void);
void spill_resume(void);

/* Returns the largest size that the file has had, in bytes on the disk. */
uint64_t spill_peak(void);

#endif
