/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbol_cache.h - names that were found before, by build id: a file for each object, in
 * wallprof/symbols below the invoker's cache folder (XDG Base Directory Specification).
 *
 * A build id is only what a file says of itself, and its size and time are
 * anybody's to choose; so it must be the very same inode, unchanged (ctime): a damaged or a hostile
 * file must not name the functions of another.
 *
 * A file holds the answers to all addresses asked so far, and which debug files were looked
 * for: it is used as long as each of those is as it was. Files are written under another name and
 * moved into place; the oldest go when all together are too large.
 */
#ifndef WALLPROF_SYMBOL_CACHE_H
#define WALLPROF_SYMBOL_CACHE_H

#include "cached_object.h"
#include "launch.h"

#define SYMBOL_CACHE_MAX (512ULL << 20) /* bytes of all files */

typedef struct SymbolCache SymbolCache;

/* NULL, after saying why with -v, if there is no place for one. */
SymbolCache *symbol_cache_open(const Invoker *invoker);
/* Also removes what is too much. */
void symbol_cache_close(SymbolCache *cache);

/*
 * Reads what there is for files->file; empty if nothing valid, or if a debug file has come, gone
 * or changed since. Always to be freed.
 */
void symbol_cache_load(SymbolCache *cache, const DebugFiles *files, CachedObject *ret_object);
/* Replaces the file. A failure costs time at the next run, so it is only said with -v. */
void symbol_cache_store(SymbolCache *cache, const MappedFile *file, const CachedObject *object);

#endif
