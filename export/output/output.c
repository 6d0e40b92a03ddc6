/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "output.h"
#include "atomic_file.h"
#include "compressor.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_SIZE (256 * 1024)

struct OutputSink {
	AtomicFile file; /* without names: written in place */
	FILE *stream;
	Compressor *compressor; /* NULL: not compressed */
	bool keep_old;
};

static int sink_write(struct OutputSink *sink, const void *data, size_t size)
{
	if (sink->stream) {
		errno = EIO;
		return fwrite(data, 1, size, sink->stream) == size ? 0 : -errno;
	}
	if (sink->compressor)
		return compressor_write(sink->compressor, sink->file.fd, data, size,
					/* last= */ false);
	return write_all(sink->file.fd, data, size);
}

static Output *output_new(struct OutputSink *sink)
{
	Output *output = xcalloc(1, sizeof(*output));

	output->buffer = xmalloc(BUFFER_SIZE);
	output->capacity = BUFFER_SIZE;
	output->sink = sink;
	return output;
}

Output *output_for_stream(FILE *stream)
{
	struct OutputSink *sink = xcalloc(1, sizeof(*sink));

	sink->file = ATOMIC_FILE_NONE;
	sink->stream = stream;
	return output_new(sink);
}

/* Closes and frees; keep: the file gets its final name. */
static int sink_free(struct OutputSink *sink, int error, bool keep)
{
	if (sink->file.fd >= 0 && close(sink->file.fd) < 0 && error == 0)
		error = -errno;
	sink->file.fd = -1;
	if (sink->file.temp_path && keep && error == 0)
		error = atomic_file_commit(&sink->file, sink->keep_old);
	atomic_file_discard(&sink->file);
	compressor_free(sink->compressor);
	free(sink);
	return error;
}

int output_open(const char *path, int level, const Invoker *invoker, Output **ret_output)
{
	struct OutputSink *sink = xcalloc(1, sizeof(*sink));
	enum packing packing = compressor_packing(path);
	int r;

	r = atomic_file_open(path, invoker, /* in_place= */ true, &sink->file);
	if (r == 0 && packing != PACKING_NONE) {
		sink->compressor = compressor_new(packing, level);
		r = sink->compressor ? 0 : -ENOMEM;
	}
	if (r < 0)
		return sink_free(sink, r, false);
	*ret_output = output_new(sink);
	return 0;
}

void output_keep_old(Output *output)
{
	output->sink->keep_old = true;
}

const char *output_temp_path(const Output *output)
{
	return output->sink->file.temp_path;
}

void output_flush(Output *output)
{
	if (output->error == 0 && output->used > 0)
		output->error = sink_write(output->sink, output->buffer, output->used);
	output->written += output->used;
	output->used = 0;
}

uint64_t output_size(const Output *output)
{
	return output->written + output->used;
}

void output_write(Output *output, const void *data, size_t size)
{
	const char *p = data;

	while (size > 0) {
		size_t part = MIN(size, (size_t)OUTPUT_RESERVE_MAX);

		memcpy(output_reserve(output, part), p, part);
		output->used += part;
		p += part;
		size -= part;
	}
}

static int output_free(Output *output, bool keep)
{
	struct OutputSink *sink = output->sink;
	int error = output->error;

	free(output->buffer);
	free(output);
	return sink_free(sink, error, keep);
}

int output_close(Output *output)
{
	output_flush(output);
	if (output->error == 0 && output->sink->compressor)
		output->error =
			compressor_write(output->sink->compressor, output->sink->file.fd, "", 0,
					 /* last= */ true);
	if (output->error == 0 && output->sink->stream && fflush(output->sink->stream) != 0)
		output->error = -errno;
	return output_free(output, true);
}

void output_discard(Output *output)
{
	output_free(output, false);
}
