/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * atomic_file.h - a file that gets its name only when it is complete. Until then it has a temporary
 * name beside it, so that an older file stays if writing fails.
 *
 * Root may create it in a folder where others can write. So links of others are not followed
 * (output_place.h), the folder stays open, and the temporary name is always a new one (O_EXCL,
 * which does not follow links either). Only its owner may read the file, as for perf's files: it
 * has the paths of all that was recorded, and source text.
 */
#ifndef WALLPROF_ATOMIC_FILE_H
#define WALLPROF_ATOMIC_FILE_H

#include "output_place.h"

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
 * -ENOTSUP if path is a special file and not in_place, and those of output_place_find(). The caller
 * must discard it in any case.
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

/* Frees and closes. A file that was not committed is deleted. */
void atomic_file_discard(AtomicFile *file);

#endif
