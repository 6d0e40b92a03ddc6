/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * atomic_file.h - a file that gets its name only when it is complete. Until then it has a temporary
 * name beside it, so that an older file stays if writing fails.
 *
 * Root may create it in a folder where others can write. So the temporary name is always a new one
 * (O_EXCL, which does not follow links either), and a link to a file of another user than the one
 * who called sudo is not followed. Only its owner may read the file, as for perf's files: it has
 * the paths of all that was recorded, and source text.
 */
#ifndef WALLPROF_ATOMIC_FILE_H
#define WALLPROF_ATOMIC_FILE_H

#include "invoker.h"

typedef struct AtomicFile {
	int fd; /* open for reading and writing; the caller may take it over, and set it to -1 */
	char *path;	 /* the final path: if the given name is a link, the link stays */
	char *temp_path; /* NULL after the commit */
} AtomicFile;

/*
 * Under sudo the file belongs to the invoker (NULL: as without sudo). Returns 0 or a negative
 * errno: -ENOTSUP if path is no regular file, -EISDIR if it is a folder, -EPERM if it is a link to
 * a file of another user. After success the caller must discard it in any case.
 */
int atomic_file_open(const char *path, const Invoker *invoker, AtomicFile *ret_file);

/*
 * Gives the file its name. keep_old: a file that has the name already, and is not empty, becomes
 * NAME.old, which replaces an older one. Returns 0 or a negative errno.
 */
int atomic_file_commit(AtomicFile *file, bool keep_old);

/* Frees and closes. A file that was not committed is deleted. */
void atomic_file_discard(AtomicFile *file);

#endif
