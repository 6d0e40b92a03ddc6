/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cache_dir.h - a folder of files that only save time, below wallprof/ in the invoker's cache
 * folder (XDG Base Directory Specification). Files are read and written with the invoker's rights,
 * and each is complete or not there. If all together are too large, the least recently used are
 * deleted.
 *
 * The content of the files is not trusted; their readers check it.
 */
#ifndef WALLPROF_CACHE_DIR_H
#define WALLPROF_CACHE_DIR_H

#include "invoker.h"
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>

typedef struct CacheDir CacheDir;

/*
 * Returns NULL, after saying why with -v, if there is no place for it. size_max: bytes of all
 * files.
 */
CacheDir *cache_dir_open(const Invoker *invoker, const char *name, uint64_t size_max);
/*
 * If something was written, also deletes the oldest files if all together are too large. What other
 * programs put there is counted at the latest when wallprof has written size_max bytes.
 */
void cache_dir_close(CacheDir *folder);

/*
 * Makes the name of an object's file. The inode distinguishes objects with the same build id; two
 * objects can still have one name. The caller frees it.
 */
char *cache_dir_object_name(const uint8_t *build_id, size_t build_id_len, uint64_t device,
			    uint64_t inode, const char *suffix);

/*
 * Opens a file for reading, and notes that it was used. Returns a descriptor or a negative errno.
 */
int cache_dir_read(const CacheDir *folder, const char *name, struct stat *ret_stat);

/*
 * Writes a file under a temporary name and moves it into place: readers see the old file or the new
 * one. Returns 0 or a negative errno.
 */
int cache_dir_replace(CacheDir *folder, const char *name, const struct iovec *parts, size_t count);

#endif
