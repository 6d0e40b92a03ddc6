/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cached_object.h - what was found before of one object: the answers to all addresses asked so
 * far, and which debug files were looked for; and its form as a file, which is believed no
 * more than what a sandboxed child says.
 *
 * Works on memory and touches nothing else; symbol_cache.c has the files.
 */
#ifndef WALLPROF_CACHED_OBJECT_H
#define WALLPROF_CACHED_OBJECT_H

#include "debug_files.h"
#include "records.h"

/* Answers are kept by address; one without frames = has no name. */
typedef struct CachedObject {
	VEC(uint8_t) records; /* REC_SYMBOLs, file 0 */
	VEC(size_t) places;   /* in records, by address */
	bool asked_debuginfod;
	VEC(TriedFile) tried;
} CachedObject;

/* Returns the answer, or NULL if the address has not been asked for yet. */
const struct rec_symbol *cached_object_find(const CachedObject *object, uint64_t address);
/* Adds an answer; in any order. The object is not to be searched until it is written and read
 * again. */
void cached_object_add(CachedObject *object, const struct rec_symbol *symbol);
void cached_object_free(CachedObject *object);

/*
 * Reads the form that file's object has in the cache. Returns false, and an empty object, if it is
 * damaged, another object's or another version's. read takes the whole file; parse what is in
 * its zstd frame, aligned to 8 bytes.
 */
bool cached_object_read(const MappedFile *file, const uint8_t *data, size_t size,
			CachedObject *ret_object);
bool cached_object_parse(const MappedFile *file, const uint8_t *bytes, size_t size,
			 CachedObject *ret_object);
/* The file, to be freed. Returns 0 or a negative errno. */
int cached_object_write(const MappedFile *file, const CachedObject *object, void **ret_data,
			size_t *ret_size);

#endif
