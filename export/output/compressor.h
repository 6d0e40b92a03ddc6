/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compressor.h - compression of what is written: gzip (zlib) or zstd, by the file's name.
 */
#ifndef WALLPROF_COMPRESSOR_H
#define WALLPROF_COMPRESSOR_H

#include <stdbool.h>
#include <stddef.h>

#define COMPRESSOR_GZIP_LEVEL_MAX 9
#define COMPRESSOR_ZSTD_LEVEL_MAX 19

enum packing {
	PACKING_NONE,
	PACKING_GZIP, /* ".gz" */
	PACKING_ZSTD, /* ".zst" */
};

/* What the name of a file says. */
enum packing compressor_packing(const char *path);

typedef struct Compressor Compressor;

/* level: 1 to that packing's maximum; 0: a fast one that packs well. NULL: no memory. */
Compressor *compressor_new(enum packing packing, int level);

/* Writes to fd what is ready; all of it, with what ends the file, if last. Returns 0 or a negative
 * errno. */
int compressor_write(Compressor *compressor, int fd, const void *data, size_t size, bool last);

void compressor_free(Compressor *compressor);

#endif
