/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "output.h"
#include "packer.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_SIZE   (256 * 1024)
#define TEMP_ATTEMPTS 100

struct OutputSink {
	int fd;
	FILE *stream;
	char *path;	 /* where the file goes in the end */
	char *temp_path; /* NULL: written in place */
	Packer *packer;	 /* NULL: written as it is */
};

static int sink_write(struct OutputSink *sink, const void *data, size_t size)
{
	if (sink->stream) {
		errno = EIO;
		return fwrite(data, 1, size, sink->stream) == size ? 0 : -errno;
	}
	if (sink->packer)
		return packer_write(sink->packer, sink->fd, data, size, /* last= */ false);
	return write_all(sink->fd, data, size);
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

	sink->fd = -1;
	sink->stream = stream;
	return output_new(sink);
}

/* Creates the temporary file; the umask gives its mode, which mkstemp() would not. */
static int open_temp(struct OutputSink *sink)
{
	for (int i = 0; i < TEMP_ATTEMPTS; i++) {
		free(sink->temp_path);
		sink->temp_path = xasprintf("%s.tmp-%d-%d", sink->path, (int)getpid(), i);
		sink->fd = open(sink->temp_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (sink->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	int error = -errno;
	free(sink->temp_path);
	sink->temp_path = NULL;
	return error;
}

static int open_sink(struct OutputSink *sink, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		if (errno != ENOENT || *path == '\0')
			return -errno;
		sink->path = xstrdup(path);
		return open_temp(sink);
	}
	if (!S_ISREG(st.st_mode)) {
		sink->path = xstrdup(path);
		sink->fd = open(path, O_WRONLY | O_CLOEXEC);
		return sink->fd < 0 ? -errno : 0;
	}
	/* A symbolic link stays one: what it points to is replaced. */
	sink->path = realpath(path, NULL);
	return sink->path ? open_temp(sink) : -errno;
}

/* Closes and frees; keep decides whether the file takes its place. */
static int sink_free(struct OutputSink *sink, int error, bool keep)
{
	if (sink->fd >= 0 && close(sink->fd) < 0 && error == 0)
		error = -errno;
	if (sink->temp_path) {
		if (keep && error == 0 && rename(sink->temp_path, sink->path) < 0)
			error = -errno;
		if (!keep || error < 0)
			unlink(sink->temp_path);
	}
	packer_free(sink->packer);
	free(sink->temp_path);
	free(sink->path);
	free(sink);
	return error;
}

int output_open(const char *path, int level, Output **ret_output)
{
	struct OutputSink *sink = xcalloc(1, sizeof(*sink));
	enum packing packing = packing_of(path);
	int r;

	sink->fd = -1;
	r = open_sink(sink, path);
	if (r == 0 && packing != PACKING_NONE) {
		sink->packer = packer_new(packing, level);
		r = sink->packer ? 0 : -ENOMEM;
	}
	if (r < 0)
		return sink_free(sink, r, false);
	*ret_output = output_new(sink);
	return 0;
}

const char *output_temp_path(const Output *output)
{
	return output->sink->temp_path;
}

int output_fd(const Output *output)
{
	return output->sink->fd;
}

void output_flush(Output *output)
{
	if (output->error == 0 && output->used > 0)
		output->error = sink_write(output->sink, output->buffer, output->used);
	output->used = 0;
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
	if (output->error == 0 && output->sink->packer)
		output->error = packer_write(output->sink->packer, output->sink->fd, "", 0,
					     /* last= */ true);
	if (output->error == 0 && output->sink->stream && fflush(output->sink->stream) != 0)
		output->error = -errno;
	return output_free(output, true);
}

void output_discard(Output *output)
{
	output_free(output, false);
}
