/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * safe_open.h - opens files by paths that are not trusted.
 */
#ifndef WALLPROF_SAFE_OPEN_H
#define WALLPROF_SAFE_OPEN_H

#include <linux/openat2.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * Opens path for reading if it is a regular file. Nothing else is opened, so that it never waits
 * for a FIFO and wakes no device. resolve: RESOLVE_* of openat2(2); 0 = all links are followed.
 * Returns a descriptor or a negative errno (-EINVAL: not a regular file; -EWOULDBLOCK: a process
 * has a lease on it, and its end is not waited for).
 */
int safe_open(const char *path, uint64_t resolve, struct stat *ret_stat);

/*
 * The same below the folder root_fd (O_PATH is enough), as if that were "/": neither links nor ".."
 * lead out of it. root_fd -1 is wallprof's own root.
 */
int safe_open_in(int root_fd, const char *path, struct stat *ret_stat);

#endif
