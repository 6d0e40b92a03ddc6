/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cached_object.h - what is cached for one object: the answers for all addresses that were
 * requested so far, and which debug files were looked for; and its format as a file, which is
 * trusted no more than the messages of a sandboxed child.
 *
 * Works on memory and touches nothing else; symbol_cache.c handles the files.
 */
#ifndef WALLPROF_CACHED_OBJECT_H
#define WALLPROF_CACHED_OBJECT_H

#include "debug_files.h"
#include "records.h"

/* Answers are sorted by address; an answer without frames means that there is no name. */
typedef struct CachedObject {
	VEC(uint8_t) records; /* REC_SYMBOLs, file 0 */
	VEC(size_t) offsets;  /* offsets in records, by address */
	bool asked_debuginfod;
	char *note; /* what of the debug information could not be used; NULL = all was */
	VEC(TriedFile) tried;
} CachedObject;

/* Returns the answer, or NULL if the address was never requested. */
const struct rec_symbol *cached_object_find(const CachedObject *object, uint64_t address);
/*
 * Adds an answer, in any order. The object cannot be searched until it is written and read again.
 */
void cached_object_add(CachedObject *object, const struct rec_symbol *symbol);
void cached_object_free(CachedObject *object);

/*
 * Reads the cached form of that file's object. Returns false, and an empty object, if it is
 * damaged, or belongs to another object or version. read handles the whole file; parse handles the
 * content of its zstd frame, aligned to 8 bytes.
 */
bool cached_object_read(const MappedFile *file, const uint8_t *data, size_t size,
			CachedObject *ret_object);
bool cached_object_parse(const MappedFile *file, const uint8_t *bytes, size_t size,
			 CachedObject *ret_object);
/* Makes the file's content, which the caller frees. Returns 0 or a negative errno. */
int cached_object_write(const MappedFile *file, const CachedObject *object, void **ret_data,
			size_t *ret_size);

#endif
