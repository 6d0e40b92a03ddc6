/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * anon_paths.h - paths without the names that a user has given.
 *
 * What the distribution and the kernel have named is kept: /usr/bin, /usr/lib and the folders of
 * the file system hierarchy (hier(7)), nodes of /dev and /proc. Everything else is replaced part by
 * part, so that files of one folder stay files of one folder.
 */
#ifndef WALLPROF_ANON_PATHS_H
#define WALLPROF_ANON_PATHS_H

#include "anon_names.h"

/*
 * Returns what stands for a path. It also takes what the kernel writes in the place of one
 * ("[heap]", "/memfd:NAME (deleted)"), and what Python does ("<string>"). A path that does not
 * begin with a slash is relative to an unknown folder. The caller frees it.
 */
char *anon_paths_replace(AnonNames *names, const char *path);

/* Returns whether a path is kept as it is. */
bool anon_paths_is_kept(AnonNames *names, const char *path);

/* Returns how many bytes at the begin of an absolute path are kept as they are. */
size_t anon_paths_kept_length(const char *path);

/*
 * Returns what stands for the kernel's name of a file without an inode of its own, "[eventfd]". The
 * caller frees it.
 */
char *anon_paths_object(AnonNames *names, const char *name);

#endif
