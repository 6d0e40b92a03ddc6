/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * atomic_file.h - a file that gets its name only when it is complete. Until then it has a temporary
 * name beside it, so that an older file stays if writing fails.
 *
 * Root may write into a folder where others may write too. A link there could lead to any file of
 * root's. fs.protected_symlinks does not help where the folder is not sticky, or belongs to the
 * user who made the link. So root follows a link only if no user but root, or the one who called
 * sudo, can have made it. The path is walked folder by folder, and each folder stays open, so that
 * nothing can be exchanged between the check and the use.
 *
 * Temporary files of earlier runs that were killed are removed when the same file is written again,
 * unless their process still lives, in whatever PID namespace (they are locked).
 *
 * The temporary name is always a new one (O_EXCL, which does not follow links either). Only its
 * owner may read the file, as for perf's files: it has the paths of all that was recorded, and
 * source text.
 */
#ifndef WALLPROF_ATOMIC_FILE_H
#define WALLPROF_ATOMIC_FILE_H

#include "invoker.h"

/* Where a path leads. */
typedef struct OutputPlace {
	int folder;  /* O_PATH */
	char *name;  /* in the folder, and no link; NULL if the path leads to a special file */
	int special; /* O_PATH, of a FIFO, a device or a socket; else -1 */
} OutputPlace;

#define OUTPUT_PLACE_NONE                                                                          \
	((OutputPlace){                                                                            \
		.folder = -1,                                                                      \
		.special = -1,                                                                     \
	})

typedef struct AtomicFile {
	int fd; /* open for reading and writing; the caller may take it over, and set it to -1 */
	OutputPlace place; /* if the given name is a link, where it leads: the link stays */
	char *temp_name;   /* in its folder; NULL after the commit, and if there is none */
	char *temp_path;   /* the same with the folder of the given path, for messages */
} AtomicFile;

#define ATOMIC_FILE_NONE                                                                           \
	((AtomicFile){                                                                             \
		.fd = -1,                                                                          \
		.place = OUTPUT_PLACE_NONE,                                                        \
	})

/*
 * Under sudo the file belongs to the invoker (NULL: as without sudo). in_place: a special file,
 * such as a pipe, is opened for writing, and has no temporary name. Returns 0 or a negative errno:
 * -ENOTSUP if path is a special file and not in_place, -EISDIR if it is a folder, -ENOLINK if it
 * leads through a link, or to a special file, that another user can have put there, -EPERM if it is
 * a link of the invoker's to a file of another user. The caller must discard it in any case.
 */
int atomic_file_open(const char *path, const Invoker *invoker, bool in_place, AtomicFile *ret_file);

/* Describes an error of atomic_file_open(). */
const char *atomic_file_error_text(int error);

/*
 * Gives the file its name. keep_old: a file that has the name already, and is not empty, becomes
 * NAME.old, which replaces an older one. Returns 0 or a negative errno.
 */
int atomic_file_commit(AtomicFile *file, bool keep_old);

/* Deletes a file that was committed. */
void atomic_file_remove(const AtomicFile *file);
/* The same for one that was discarded since. */
void atomic_file_remove_path(const char *path, const Invoker *invoker);

/* Frees and closes. A file that was not committed is deleted. */
void atomic_file_discard(AtomicFile *file);

#endif
