/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * static_files.h - the files that the server hands out.
 */
#ifndef WALLPROF_STATIC_FILES_H
#define WALLPROF_STATIC_FILES_H

#include <stdint.h>

typedef struct ServedFile {
	int fd; /* the caller closes it */
	uint64_t size;
	const char *type;     /* of HTTP's Content-Type */
	const char *encoding; /* of Content-Encoding; NULL = as it is */
} ServedFile;

/* A profile, compressed or not. Returns 0 or a negative errno; -EMEDIUMTYPE: it is none. */
int static_files_profile(const char *path, ServedFile *ret_file);

/*
 * A plain file below a folder: no link and no ".." leads out of it (RESOLVE_BENEATH of openat2(2)).
 * Returns 0 or a negative errno.
 */
int static_files_below(int folder_fd, const char *path, ServedFile *ret_file);

#endif
