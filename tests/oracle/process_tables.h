/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * process_tables.h - a process's executable mappings and the unwind tables of what they
 * map, for walk_user(): made on the spot, from /proc or from a core file.
 */
#ifndef WALLPROF_PROCESS_TABLES_H
#define WALLPROF_PROCESS_TABLES_H

#include "core_file.h"
#include "walk_user.h"
#include <sys/types.h>

typedef struct ProcessTables ProcessTables;

ProcessTables *process_tables_new(void);
void process_tables_free(ProcessTables *tables);

/*
 * Reads the mappings of a process that stands still; tables of files that were met before are kept.
 * Returns whether the executable mappings differ from the last time, or -errno.
 */
int process_tables_load(ProcessTables *tables, pid_t pid);

/*
 * The same of a core file, which stays the caller's; instead of a process. A file that is gone is
 * read as the process had it in its memory, as far as that was dumped.
 */
void process_tables_load_core(ProcessTables *tables, const CoreFile *core);

/* Reads of its memory; false if it is not there. */
bool process_tables_read(const ProcessTables *tables, uint64_t address, void *to, size_t size);

/* In the place of a frame that walk_user() has not kept. */
#define FRAME_NOT_KEPT 0

/*
 * Walks from regs, as WalkInput has them, in the process loaded last. Writes all frames, at most
 * max, leaf first, and their number. Returns how the stack ends.
 */
int process_tables_walk(ProcessTables *tables, const uint64_t regs[DWARF_REGS + 1], bool in_syscall,
			uint64_t *ret_frames, size_t max, size_t *ret_count);

#endif
