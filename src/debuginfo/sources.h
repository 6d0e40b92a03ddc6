/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sources.h - stores the texts of the source files of a recording's frames, so that a profile shows
 * them on a machine without these files.
 *
 * First weigh every path that frames name, then write: the heaviest first, until SOURCES_BUDGET is
 * used up. The paths come from debug information, that is from the recorded program, which may name
 * any file: they are opened with the invoker's rights only, and by root with those of the recorded
 * processes (safe_open.h).
 */
#ifndef WALLPROF_SOURCES_H
#define WALLPROF_SOURCES_H

#include "invoker.h"
#include "record_info.h"
#include "util.h"
#include <sys/stat.h>

#define SOURCES_BUDGET	 (20u << 20) /* bytes of text in total */
#define SOURCES_FILE_MAX (4u << 20)  /* bytes of text of one file */

typedef struct Sources Sources;

/*
 * Returns a descriptor, open for reading, of the regular file that a path names in the view of the
 * processes that mapped `file` (FILE id), with its state, or a negative errno. The caller closes
 * it. Runs with the invoker's rights.
 */
typedef int (*SourcesOpen)(void *user, uint32_t file, const char *path, struct stat *ret_stat);

/*
 * Looks in wallprof's own view of the file system. If a folder on the way
 * does not exist any more, "FOLDER/../" is left out. Relative paths are refused: packages built
 * elsewhere have paths such as "./malloc.c", whose folder is not known, and another file of that
 * name would be wrong.
 */
int sources_open_by_path(void *unused, uint32_t file, const char *path, struct stat *ret_stat);
/*
 * This does the same after the recording. Root does not know what the recorded processes could
 * read, so it opens only files that all users may read.
 */
int sources_open_late(void *unused, uint32_t file, const char *path, struct stat *ret_stat);

typedef struct SourcesOptions {
	const Invoker *invoker;
	/*
	 * NULL = sources_open_by_path(); if root itself is the invoker, only files that all
	 * users may read.
	 */
	SourcesOpen open;
	void *open_user;
} SourcesOptions;

/* options is copied; what it points to must stay. */
Sources *sources_new(const SourcesOptions *options);
void sources_free(Sources *sources);
DEFINE_CLEANUP(Sources *, sources_free)

/* The program or library whose debug information names a source. */
typedef struct SourceUser {
	uint32_t file;	   /* FILE id */
	uint64_t mtime_ns; /* when it was last changed, CLOCK_REALTIME; 0 = unknown */
} SourceUser;

/*
 * A frame in program names path and stands for so many samples and switch-outs. If several programs
 * name one path, the first decides where it is looked for.
 */
void sources_weigh(Sources *sources, const char *path, uint64_t weight, SourceUser program);

/*
 * The same for all frames of a symbol, which capture_check() has accepted or which was just made;
 * mtime_ns is that of its file.
 */
void sources_weigh_symbol(Sources *sources, const struct rec_symbol *symbol, uint64_t weight,
			  uint64_t mtime_ns);

typedef struct SourcesSummary {
	uint32_t read;
	uint32_t unreadable; /* missing, not permitted, not a regular file, empty, or not text */
	uint32_t omitted;    /* because the budget is used up */
	uint32_t newer; /* of those that were read: newer than the program, so lines may differ */
	uint64_t bytes; /* of text */
} SourcesSummary;

/*
 * Emits a REC_SOURCE for each file that can be read and fits, and counts what was omitted. Call it
 * once, at the end. ret_summary may be NULL. Returns 0 or a negative errno of the sink or of
 * changing the rights.
 */
int sources_write(Sources *sources, RecordSink sink, void *user, SourcesSummary *ret_summary);

#endif
