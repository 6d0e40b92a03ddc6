/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table_cache.h - unwind tables that were built before: a file for each object, in wallprof/tables
 * below the invoker's cache folder (see cache_dir.h).
 *
 * As for names (symbol_cache.h), a build id is only what a file says of itself. So the object must
 * be the very same inode, unchanged (ctime), and so must the debug file. The format of the files is
 * in table_file.h.
 */
#ifndef WALLPROF_TABLE_CACHE_H
#define WALLPROF_TABLE_CACHE_H

#include "invoker.h"
#include "table_file.h"

#define TABLE_CACHE_MAX (512ULL << 20) /* bytes of all files together */

/*
 * Returns false if a file that is found later could not be proven to be the same: it has no build
 * id, or no name any more (deleted, or in memory only). debug_fd may be -1.
 */
bool table_key_make(int fd, int debug_fd, uint64_t base_svma, const uint8_t *build_id,
		    uint8_t build_id_len, TableKey *ret_key);
/*
 * Returns whether the files had the content that key stands for while the table was made. They had
 * not if they have changed since key was made, or so shortly before that a change may have left
 * their times as they were.
 */
bool table_key_holds(const TableKey *key, int fd, int debug_fd);

typedef struct TableCache TableCache;

/* Returns NULL, after saying why with -v, if there is no place for a cache. */
TableCache *table_cache_open(const Invoker *invoker);
/* Also removes the oldest files if all together are too large. */
void table_cache_close(TableCache *cache);

/* Returns as table_file_read(). */
bool table_cache_load(const TableCache *cache, const TableKey *key, UnwindTable *table,
		      char *ret_debuglink);
/*
 * debuglink is as in table_file_header(). Returns 0 or a negative errno. A failure only costs time
 * in the next run; it is shown with -v.
 */
int table_cache_store(const TableCache *cache, const TableKey *key, const UnwindTable *table,
		      const char *debuglink);

#endif
