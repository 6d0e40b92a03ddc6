/* SPDX-License-Identifier: GPL-2.0-or-later */
/* compressor.h - compresses output: gzip (zlib) or zstd, by the file's name. */
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

/* Returns the packing that the name of a file asks for. */
enum packing compressor_packing(const char *path);

typedef struct Compressor Compressor;

/*
 * level is 1 to that packing's maximum; 0: a fast one with a good ratio. Returns NULL if there is
 * no memory.
 */
Compressor *compressor_new(enum packing packing, int level);

/*
 * Writes to fd what is ready, or, if last, all of it and the end of the file. Returns 0 or a
 * negative errno.
 */
int compressor_write(Compressor *compressor, int fd, const void *data, size_t size, bool last);

void compressor_free(Compressor *compressor);

#endif
