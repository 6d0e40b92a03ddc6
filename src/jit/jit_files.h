/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_files.h - the files in which recorded processes name the code that they make at run time,
 * held open while the processes live: perf maps (/tmp/perf-PID.map) and jitdumps (jit-PID.dump,
 * which a process maps to announce it).
 *
 * A perf map is opened with the rights that the process has at that moment (safe_open.h). As
 * in perf, it is only accepted from the process's user or from root (then, unlike in perf, only if
 * all may read it), and has the process's id in its own PID namespace in its name. If the process
 * has ended, its last rights are known, but it may have given some up since: then the file must be
 * its user's own, and its path may have no links.
 * Unlike in perf, a file that was last changed before the process began is ignored: it belongs to
 * an earlier process with the same id. Linux: tools/perf/util/{map,jitdump}.c,
 * tools/perf/Documentation/jit-interface.txt.
 */
#ifndef WALLPROF_JIT_FILES_H
#define WALLPROF_JIT_FILES_H

#include "safe_open.h"
#include "util.h"
#include <sys/types.h>

enum jit_kind { JIT_PERF_MAP, JIT_DUMP };

typedef struct JitFile {
	enum jit_kind kind;
	uint32_t ns_tgid;
	uint32_t id;	      /* of its REC_FILE; set by the reader of its names, 0 before */
	int fd;		      /* -1: it does not exist yet, or no descriptor can be kept for it */
	bool at_end;	      /* it is only looked for when it is read */
	char *path;	      /* in the process's view */
	int root_fd;	      /* where its path begins; -1 = wallprof's own root. Not owned. */
	OpenRights rights;    /* of the process, when it was last looked at */
	uint64_t start_ticks; /* of the process; 0 = not known */
	uint64_t start_ns;    /* the same in CLOCK_REALTIME */
	uint64_t next_try_ns, retry_interval_ns; /* while it does not exist */
} JitFile;

typedef struct JitFiles {
	VEC(JitFile) list;
	Map perf_maps;	      /* ns_tgid -> list */
	uint64_t next_try_ns; /* the earliest of all, or earlier */
} JitFiles;

/*
 * Call it when the process has executable memory without a file: it looks for the process's perf
 * map. root_fd must stay open until jit_files_free().
 */
void jit_files_note_process(JitFiles *files, uint32_t ns_tgid, int root_fd);

/*
 * Looks for files that do not exist yet: a program may begin its map long after it has memory for
 * code, and the file of a container that has ended is gone. The interval grows: a file that is
 * begun a time t after the memory is found after about 2t. Those of processes that have ended are
 * left for jit_files_open_last(). Call it often, with the present CLOCK_MONOTONIC.
 */
void jit_files_retry(JitFiles *files, uint64_t ns);

/* Returns whether it is the name of a jitdump. */
bool jit_files_is_dump(const char *path);
/*
 * Takes ownership of fd, a jitdump that ns_tgid has mapped, opened with the given rights; -1: it
 * could not be opened. path, below root_fd (JitFile::root_fd), leads to it again then, or if no
 * descriptor can be kept for it.
 */
void jit_files_add_dump(JitFiles *files, uint32_t ns_tgid, const char *path, int root_fd,
			const OpenRights *rights, int fd);

/* Returns the file whose id in the capture was set to this, or NULL. */
const JitFile *jit_files_by_id(const JitFiles *files, uint32_t id);

/* Looks for a missing file a last time, when it is to be read. Returns whether it is open. */
bool jit_files_open_last(JitFile *file);
void jit_files_free(JitFiles *files);

#endif
