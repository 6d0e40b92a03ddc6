/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * output.h - where an export goes: a file, plain or compressed by its suffix (compressor.h), or a
 * stdio stream.
 *
 * A file is written under a temporary name beside its place and renamed when
 * whole, so that nobody ever opens half a profile; what is not a regular file
 * (a pipe, /dev/stdout) is written directly. The first error sticks: later
 * writes are dropped, and output_close() returns it.
 */
#ifndef WALLPROF_OUTPUT_H
#define WALLPROF_OUTPUT_H

#include "launch.h"
#include "util.h"
#include <stdio.h>

/* The most that output_reserve() can be asked for. */
#define OUTPUT_RESERVE_MAX 4096

typedef struct Output {
	char *buffer;
	size_t used, capacity;
	int error; /* 0 or the first negative errno */
	struct OutputSink *sink;
} Output;

/*
 * Opens path for writing; level: of its compression, see compressor_new(); invoker: see
 * atomic_file_open(). Returns 0 or a negative errno, so that a bad path is known before any work is
 * done for it.
 */
int output_open(const char *path, int level, const Invoker *invoker, Output **ret_output);

/* Writes plain text to a stream, which stays open and the caller's. */
Output *output_for_stream(FILE *stream);

/* The temporary name that the output has until it is closed, or NULL if it has none. */
const char *output_temp_path(const Output *output);

void output_write(Output *output, const void *data, size_t size);

/* Hands on what is buffered. */
void output_flush(Output *output);

/* Room for size bytes (at most OUTPUT_RESERVE_MAX) at buffer + used; the caller raises used. */
static inline char *output_reserve(Output *output, size_t size)
{
	if (output->capacity - output->used < size)
		output_flush(output);
	return output->buffer + output->used;
}

/* Finishes, renames, frees. On error the temporary file is removed and its errno returned. */
int output_close(Output *output);

/* Frees and leaves nothing behind. */
void output_discard(Output *output);

#endif
