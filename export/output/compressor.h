/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compressor.h - compression of what is written: gzip (zlib) or zstd, by the file's name.
 */
#ifndef WALLPROF_COMPRESSOR_H
#define WALLPROF_COMPRESSOR_H

#include <stdbool.h>
#include <stddef.h>

#define PACKER_GZIP_LEVEL_MAX 9
#define PACKER_ZSTD_LEVEL_MAX 19

enum packing {
	PACKING_NONE,
	PACKING_GZIP, /* ".gz" */
	PACKING_ZSTD, /* ".zst" */
};

/* What the name of a file says. */
enum packing packing_of(const char *path);

typedef struct Packer Packer;

/* level: 1 to that packing's maximum; 0: a fast one that packs well. NULL: no memory. */
Packer *packer_new(enum packing packing, int level);

/* Writes to fd what is ready; all of it, with what ends the file, if last. Returns 0 or a negative
 * errno. */
int packer_write(Packer *packer, int fd, const void *data, size_t size, bool last);

void packer_free(Packer *packer);

#endif
