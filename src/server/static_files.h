/* SPDX-License-Identifier: GPL-2.0-or-later */
/* static_files.h - opens the files that the server sends. */
#ifndef WALLPROF_STATIC_FILES_H
#define WALLPROF_STATIC_FILES_H

#include <stdint.h>

typedef struct ServedFile {
	int fd; /* the caller closes it */
	uint64_t size;
	const char *type;     /* value of Content-Type */
	const char *encoding; /* value of Content-Encoding; NULL = none */
} ServedFile;

/*
 * Opens a profile, which may be compressed, or a page (html.h). Returns 0 or a negative errno;
 * -EMEDIUMTYPE if it is neither.
 */
int static_files_profile(const char *path, ServedFile *ret_file);

/*
 * Opens a regular file below a folder: neither a symbolic link nor ".." leads out of it
 * (RESOLVE_BENEATH of openat2(2)). Returns 0 or a negative errno.
 */
int static_files_below(int folder_fd, const char *path, ServedFile *ret_file);

#endif
