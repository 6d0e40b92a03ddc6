/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * atomic_file.h - a file that takes its place under its name when it is worth it: until then it has
 * a temporary name beside it, so that what was there before is still there if nothing comes of it.
 *
 * It may be made by root in a folder where others can write. So the temporary name is never one
 * that exists (O_EXCL, which follows no link either), and a link that leads to a file of somebody
 * else than the user who called sudo is not followed. The file is for its owner alone, as perf's
 * are: it has paths of all that was recorded, and text of its sources.
 */
#ifndef WALLPROF_ATOMIC_FILE_H
#define WALLPROF_ATOMIC_FILE_H

#include "launch.h"

typedef struct AtomicFile {
	int fd;		 /* open for reading and writing; the caller may take it, and make it -1 */
	char *path;	 /* where it goes in the end: a link at the name that was given stays one */
	char *temp_path; /* NULL once it is there */
} AtomicFile;

/*
 * Under sudo it belongs to the invoker (NULL: as if there were no sudo). Returns 0 or a negative
 * errno: -ENOTSUP if something is at path that is no regular file, -EISDIR if that is a folder,
 * -EPERM if it is a link to somebody else's. To be discarded in any case but an error.
 */
int atomic_file_open(const char *path, const Invoker *invoker, AtomicFile *ret_file);

/* Gives it its name. Returns 0 or a negative errno. */
int atomic_file_commit(AtomicFile *file);

/* Frees and closes; without its name, the file is gone. */
void atomic_file_discard(AtomicFile *file);

#endif
