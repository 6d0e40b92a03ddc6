/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * output.h - the destination of an export: a file, plain or compressed by its suffix
 * (compressor.h), or a stdio stream.
 *
 * A file is written under a temporary name in the same folder and renamed when it is complete, so
 * that no reader opens half a profile. What is not a regular file (a pipe, /dev/stdout) is written
 * directly. After the first error writes are dropped, and output_close() returns the error. Only
 * one thread uses an output, although another may do the writing.
 */
#ifndef WALLPROF_OUTPUT_H
#define WALLPROF_OUTPUT_H

#include "invoker.h"
#include "util.h"
#include <stdio.h>

/* The limit of one output_reserve(). */
#define OUTPUT_RESERVE_MAX 4096

typedef struct Output {
	char *buffer;
	size_t used, capacity;
	int error;	  /* 0 or the first negative errno */
	uint64_t written; /* bytes before compression, without those in the buffer */
	struct OutputSink *sink;
} Output;

/*
 * Opens path for writing; level: of its compression, see compressor_new(); invoker: see
 * atomic_file_open(). Returns 0 or a negative errno, so that a bad path is reported before the work
 * is done.
 */
int output_open(const char *path, int level, const Invoker *invoker, Output **ret_output);

/* Writes plain text to a stream, which the caller keeps and closes. */
Output *output_for_stream(FILE *stream);

/* When the output is closed, an older file of its name becomes NAME.old (atomic_file.h). */
void output_keep_old(Output *output);

/* Returns the temporary name that the output has until it is closed, or NULL if it has none. */
const char *output_temp_path(const Output *output);

void output_write(Output *output, const void *data, size_t size);

/* Makes the buffer empty; what was in it may be written later. */
void output_empty_buffer(Output *output);

/* Writes what is buffered, and waits until it is written. */
void output_flush(Output *output);

/*
 * Makes room for size bytes (at most OUTPUT_RESERVE_MAX) at buffer + used; the caller raises used.
 */
static inline char *output_reserve(Output *output, size_t size)
{
	if (output->capacity - output->used < size)
		output_empty_buffer(output);
	return output->buffer + output->used;
}

/* Returns how many bytes were written, before compression. */
uint64_t output_size(const Output *output);

/* Finishes, renames, frees. On error the temporary file is removed and its errno returned. */
int output_close(Output *output);

/* Frees it and removes the temporary file. */
void output_discard(Output *output);

#endif
