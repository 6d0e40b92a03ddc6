/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tar-writer.h - how tar-extract's chunks of data get into their files: at once,
 * by threads behind a bounded queue, by an io_uring, or by threads with a ring
 * each. Errors end the program.
 */
#ifndef TAR_WRITER_H
#define TAR_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CHUNK_SIZE (128 * 1024)

/* A file that is being written; dropping the last reference finishes and closes it. */
typedef struct File File;

typedef struct Chunk {
	File *file;
	uint64_t offset;
	size_t length; /* at first CHUNK_SIZE */
	char data[CHUNK_SIZE];
} Chunk;

void *allocate(size_t size);

/* Takes over fd; mode and mtime are set when all is written. */
File *file_new(int fd, const char *name, mode_t mode, time_t mtime);
void file_release(File *file);

/* Holds a reference to the file until it is written. */
Chunk *chunk_new(File *file, uint64_t offset);

void writer_start(unsigned int thread_count, bool use_uring);
/* Takes over the chunk. */
void writer_put(Chunk *chunk);
/* Returns when all is written. */
void writer_finish(void);

#endif
