/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbol_cache.h - names that were found before, by build id: a file for each object, in
 * wallprof/symbols below the invoker's cache folder (XDG Base Directory Specification).
 *
 * A build id is only what a file says of itself, so its size and time count as well: a damaged
 * or a hostile file must not name the functions of another.
 *
 * A file holds the answers to all addresses asked so far, and which debug files were looked
 * for: it is used as long as each of those is as it was. Files are written under another name and
 * moved into place; the oldest go when all together are too large. What is read is
 * believed no more than what a sandboxed child says.
 */
#ifndef WALLPROF_SYMBOL_CACHE_H
#define WALLPROF_SYMBOL_CACHE_H

#include "debug_files.h"
#include "launch.h"
#include "records.h"

#define SYMBOL_CACHE_MAX (512ULL << 20) /* bytes of all files */

typedef struct SymbolCache SymbolCache;

/* NULL, after saying why with -v, if there is no place for one. */
SymbolCache *symbol_cache_open(const Invoker *invoker);
/* Also removes what is too much. */
void symbol_cache_close(SymbolCache *cache);

/* What is known of one object. Answers are kept by address; one without frames = has no name. */
typedef struct CachedObject {
	VEC(uint8_t) records; /* REC_SYMBOLs, file 0 */
	VEC(size_t) places;   /* in records, by address */
	bool asked_debuginfod;
	VEC(TriedFile) tried;
} CachedObject;

/*
 * Reads what there is for files->file; empty if nothing valid, or if a debug file has come, gone
 * or changed since. Always to be freed.
 */
void symbol_cache_load(SymbolCache *cache, const DebugFiles *files, CachedObject *ret_object);
/* Returns the answer, or NULL if the address has not been asked for yet. */
const struct rec_symbol *cached_object_find(const CachedObject *object, uint64_t address);
/* Adds an answer; in any order. The object is not to be searched until it is stored and loaded
 * again. */
void cached_object_add(CachedObject *object, const struct rec_symbol *symbol);
/* Replaces the file. A failure costs time at the next run, so it is only said with -v. */
void symbol_cache_store(SymbolCache *cache, const MappedFile *file, CachedObject *object);
void cached_object_free(CachedObject *object);

#endif
