/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_files.h - the files in which recorded processes name the code that they make at run time,
 * held open while the processes live: perf maps (/tmp/perf-PID.map) and jitdumps
 * (jit-PID.dump, which a process maps to announce it).
 *
 * As perf does, a perf map is taken only from the process's user or from root (then, unlike
 * perf, only if all may read it), and by the number that the process has in its own PID namespace.
 * Unlike perf, not if it was last changed before the process began: then it is that of another, who
 * had the number earlier. Linux: tools/perf/util/{map,jitdump}.c,
 * tools/perf/Documentation/jit-interface.txt.
 */
#ifndef WALLPROF_JIT_FILES_H
#define WALLPROF_JIT_FILES_H

#include "util.h"
#include <sys/types.h>

enum jit_kind { JIT_PERF_MAP, JIT_DUMP };

typedef struct JitFile {
	enum jit_kind kind;
	uint32_t ns_tgid;
	int fd;		   /* -1: not there yet */
	char *path;	   /* as the process has it */
	int root_fd;	   /* where to look for it; -1 = our own root. Not owned. */
	uid_t owner;	   /* of the process */
	uint64_t start_ns; /* of the process, CLOCK_REALTIME; 0 = not known */
	uint64_t next_try_ns, retry_interval_ns; /* while it is not there */
} JitFile;

typedef struct JitFiles {
	VEC(JitFile) list;
	Map perf_maps;	      /* ns_tgid -> list */
	uint64_t next_try_ns; /* the earliest of all, or before */
} JitFiles;

/*
 * The process has executable memory without a file: looks for its perf map, now and at each
 * further call. root_fd stays open until jit_files_free.
 */
void jit_files_note_process(JitFiles *files, uint32_t ns_tgid, int root_fd);

/*
 * Looks for what is not there yet, for a program may begin its map long after it has memory
 * for code, and in a container that has ended nobody finds it any more. Each is looked for at
 * growing distances: one begun t after the memory was is found by some 2t. To be called often,
 * with the present CLOCK_MONOTONIC.
 */
void jit_files_retry(JitFiles *files, uint64_t ns);

/* Is it the name of a jitdump? */
bool jit_files_is_dump(const char *path);
/* Takes over fd, an open jitdump that ns_tgid mapped. */
void jit_files_add_dump(JitFiles *files, uint32_t ns_tgid, const char *path, int fd);

/* Opens what was not there before. To be called before the files are read. */
void jit_files_open_missing(JitFiles *files);
void jit_files_free(JitFiles *files);

#endif
