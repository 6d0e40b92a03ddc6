/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * safe_open.h - opening files by paths that somebody else chose.
 */
#ifndef WALLPROF_SAFE_OPEN_H
#define WALLPROF_SAFE_OPEN_H

#include <linux/openat2.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * Opens path for reading if it is a regular file; nothing else is touched, so no FIFO is waited
 * for and no device is woken. resolve: RESOLVE_* of openat2(2), 0 = links of every kind are
 * followed. Returns a descriptor or a negative errno (-EINVAL: not a regular file; -EWOULDBLOCK:
 * somebody has a lease on it, whose end is not waited for).
 */
int safe_open(const char *path, uint64_t resolve, struct stat *ret_stat);

/*
 * The same below the folder root_fd (O_PATH will do), as if that were "/": neither links nor ".."
 * lead out of it. root_fd -1 is our own root.
 */
int safe_open_in(int root_fd, const char *path, struct stat *ret_stat);

#endif
