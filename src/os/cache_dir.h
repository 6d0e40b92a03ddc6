/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cache_dir.h - a folder of files that only save time, below wallprof/ in the invoker's cache
 * folder (XDG Base Directory Specification): read and written with the invoker's rights, each
 * file whole or not at all, the oldest by use removed when all together are too large.
 *
 * What is in the files is for their readers to doubt.
 */
#ifndef WALLPROF_CACHE_DIR_H
#define WALLPROF_CACHE_DIR_H

#include "launch.h"
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>

typedef struct CacheDir CacheDir;

/* NULL, after saying why with -v, if there is no place for one. size_max: bytes of all files. */
CacheDir *cache_dir_open(const Invoker *invoker, const char *name, uint64_t size_max);
/* Also removes what is too much. */
void cache_dir_close(CacheDir *folder);

/*
 * The name of an object's file: which of those with its build id it is, its inode tells; not to
 * be relied on, for two can have one name. To be freed.
 */
char *cache_dir_object_name(const uint8_t *build_id, size_t build_id_len, uint64_t device,
			    uint64_t inode, const char *suffix);

/*
 * Opens a file for reading, and notes that it was used. Returns a descriptor or a negative errno.
 */
int cache_dir_read(const CacheDir *folder, const char *name, struct stat *ret_stat);

/*
 * Writes a file under another name, and moves it into place: readers at the same time see the old
 * one or the new one. Returns 0 or a negative errno.
 */
int cache_dir_replace(const CacheDir *folder, const char *name, const struct iovec *parts,
		      size_t count);

#endif
