/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz.h - what the fuzz targets share. A target is a program by libFuzzer: it calls
 * LLVMFuzzerTestOneInput() with inputs that it changes so that they reach new code.
 * https://llvm.org/docs/LibFuzzer.html
 */
#ifndef WALLPROF_FUZZ_H
#define WALLPROF_FUZZ_H

#include "util.h"
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
				 size_t size2, uint8_t *out, size_t max_out_size,
				 unsigned int seed);
/* libFuzzer's own changes. Returns the new size, at most max_size. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* What must hold whatever the input. */
#define fuzz_require(condition)                                                                    \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__,          \
				#condition);                                                       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

typedef VEC(uint8_t) FuzzBytes;

/* A copy of exactly this size, so that the sanitizer sees a step too far; to be freed. */
static inline void *fuzz_copy(const void *data, size_t size)
{
	void *copy = xmalloc(size);

	if (size)
		memcpy(copy, data, size);
	return copy;
}

/* A file in memory with these contents. */
static inline int fuzz_file(const void *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	fuzz_require(fd >= 0 && write_all(fd, data, size) == 0 && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

/* A number from 0 to below - 1. */
static inline uint32_t fuzz_random(unsigned int *seed, uint32_t below)
{
	return (uint32_t)rand_r(seed) % below;
}

#endif
