/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "output.h"
#include "atomic_file.h"
#include "compressor.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_SIZE (256 * 1024)

/*
 * A file is compressed and written by a thread of its own, while the next buffer is filled: both
 * take a tenth of an export's time, and a disk may take long.
 */
typedef struct Writer {
	bool runs;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char *full; /* what is to be written; NULL: nothing */
	size_t full_size;
	char *spare; /* an empty buffer; NULL while `full` is not */
	bool ended;
	int error; /* 0 or the first negative errno */
} Writer;

struct OutputSink {
	AtomicFile file; /* without names: written in place */
	FILE *stream;
	Compressor *compressor; /* NULL: not compressed */
	bool keep_old;
	Writer writer;
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

static void *write_buffers(void *argument)
{
	struct OutputSink *sink = argument;
	Writer *writer = &sink->writer;

	pthread_mutex_lock(&writer->lock);
	for (;;) {
		int error = 0;

		while (!writer->full && !writer->ended)
			pthread_cond_wait(&writer->changed, &writer->lock);
		if (!writer->full)
			break;
		if (writer->error == 0) {
			pthread_mutex_unlock(&writer->lock);
			error = sink_write(sink, writer->full, writer->full_size);
			pthread_mutex_lock(&writer->lock);
		}
		if (error)
			writer->error = error;
		writer->spare = writer->full;
		writer->full = NULL;
		pthread_cond_signal(&writer->changed);
	}
	pthread_mutex_unlock(&writer->lock);
	return NULL;
}

/* Without a thread the caller writes. */
static void writer_start(struct OutputSink *sink)
{
	Writer *writer = &sink->writer;
	sigset_t all, before;

	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->changed, NULL);
	writer->spare = xmalloc(BUFFER_SIZE);
	/* Signals are for the main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	writer->runs = !pthread_create(&writer->thread, NULL, write_buffers, sink);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Gives the writer a full buffer for an empty one. Returns the error that it had before, if any. */
static int writer_hand_over(Writer *writer, char **buffer, size_t size)
{
	int error;

	pthread_mutex_lock(&writer->lock);
	while (writer->full)
		pthread_cond_wait(&writer->changed, &writer->lock);
	writer->full = *buffer;
	writer->full_size = size;
	*buffer = writer->spare;
	writer->spare = NULL;
	error = writer->error;
	pthread_cond_signal(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
	return error;
}

/* Waits until all that was handed over is written. Returns 0 or the first negative errno. */
static int writer_wait(Writer *writer)
{
	int error;

	if (!writer->runs)
		return 0;
	pthread_mutex_lock(&writer->lock);
	while (writer->full)
		pthread_cond_wait(&writer->changed, &writer->lock);
	error = writer->error;
	pthread_mutex_unlock(&writer->lock);
	return error;
}

/* Ends the thread when all is written. Returns 0 or the first negative errno. */
static int writer_stop(Writer *writer)
{
	if (!writer->runs)
		return 0;
	pthread_mutex_lock(&writer->lock);
	writer->ended = true;
	pthread_cond_signal(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
	pthread_join(writer->thread, NULL);
	writer->runs = false;
	return writer->error;
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
	free(sink->writer.spare);
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
	writer_start(sink);
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

void output_empty_buffer(Output *output)
{
	if (output->error == 0 && output->used > 0)
		output->error = output->sink->writer.runs
					? writer_hand_over(&output->sink->writer, &output->buffer,
							   output->used)
					: sink_write(output->sink, output->buffer, output->used);
	output->written += output->used;
	output->used = 0;
}

void output_flush(Output *output)
{
	int error;

	output_empty_buffer(output);
	error = writer_wait(&output->sink->writer);
	if (output->error == 0)
		output->error = error;
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
	int written = writer_stop(&sink->writer);
	int error = output->error ? output->error : written;

	free(output->buffer);
	free(output);
	return sink_free(sink, error, keep);
}

int output_close(Output *output)
{
	output_flush(output);
	writer_stop(&output->sink->writer);
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
