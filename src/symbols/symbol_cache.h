/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbol_cache.h - names that were found before, by build id: a file for each object, in
 * wallprof/symbols below the invoker's cache folder (XDG Base Directory Specification).
 *
 * A build id is only what a file says of itself, and its size and time can be set freely. So the
 * object must be the very same inode, unchanged (ctime): a damaged or hostile file must not name
 * the functions of another.
 *
 * A file holds the answers for all addresses that were requested so far, and which debug files were
 * looked for: it is used as long as each of those is unchanged. Files are written under a temporary
 * name and moved into place; the oldest are deleted when all together are too large.
 */
#ifndef WALLPROF_SYMBOL_CACHE_H
#define WALLPROF_SYMBOL_CACHE_H

#include "cached_object.h"
#include "invoker.h"

#define SYMBOL_CACHE_MAX (512ULL << 20) /* bytes of all files together */

typedef struct SymbolCache SymbolCache;

/* Returns NULL, after saying why with -v, if there is no place for a cache. */
SymbolCache *symbol_cache_open(const Invoker *invoker);
/* Also deletes the oldest files if all together are too large. */
void symbol_cache_close(SymbolCache *cache);

/*
 * Reads what is cached for files->file; empty if it is invalid, or if a debug file was added,
 * removed or changed since. The caller always frees it.
 */
void symbol_cache_load(SymbolCache *cache, const DebugFiles *files, CachedObject *ret_object);
/* Replaces the file. Returns 0 or a negative errno; a failure only costs time in the next run. */
int symbol_cache_store(SymbolCache *cache, const MappedFile *file, const CachedObject *object);

#endif
