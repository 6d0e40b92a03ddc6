/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * core_file.h - a process as a core file has it: its threads, its memory, and which files it had
 * mapped where. Follows core(5), and the kernel's fill_files_note() (NT_FILE).
 */
#ifndef WALLPROF_CORE_FILE_H
#define WALLPROF_CORE_FILE_H

#include "util.h"
#include "walk_state.h"
#include <libelf.h>
#include <sys/types.h>

typedef struct CoreThread {
	pid_t tid;
	uint64_t regs[DWARF_REGS + 1]; /* as WalkInput has them */
	int64_t syscall;	       /* in which it may be; negative: in none */
} CoreThread;

typedef struct CoreMapping {
	uint64_t start, end, offset;
	const char *path; /* NULL: an executable segment of no file */
	int fd;		  /* of the file, as it is now; -1: it is gone */
} CoreMapping;

typedef struct CoreFile {
	int fd;
	Elf *elf;
	VEC(CoreThread) threads;
	VEC(CoreMapping) mappings; /* those of each file ascending */
} CoreFile;

/* Returns 0 or a negative errno; in any case to be closed. */
int core_file_open(const char *path, CoreFile *ret_core);
void core_file_close(CoreFile *core);

/* Memory, or, of what was not dumped because it is as in its file, that; false if neither has it.
 */
bool core_file_read(const CoreFile *core, uint64_t address, void *to, size_t size);

#endif
