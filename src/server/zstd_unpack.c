/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "zstd_unpack.h"
#include "safe_open.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

static const unsigned char magic[4] = {0x28, 0xb5, 0x2f, 0xfd}; /* RFC 8878, 3.1.1 */

typedef struct Unpacker {
	ZSTD_DStream *stream;
	int from, to;
	size_t in_size, out_size;
	char *in, *out;
	uint64_t written;
	size_t left;	    /* result of ZSTD_decompressStream(): 0 between two frames */
	const char *reason; /* why the file is invalid */
} Unpacker;

static int open_temporary(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd < 0 ? memfd_create("profile", MFD_CLOEXEC) : fd;
}

/* Decompresses these bytes of the file and writes the result. */
static int unpack_piece(Unpacker *unpacker, size_t size)
{
	ZSTD_inBuffer in = {.src = unpacker->in, .size = size};
	ZSTD_outBuffer out;
	int error;

	do {
		out = (ZSTD_outBuffer){.dst = unpacker->out, .size = unpacker->out_size};
		unpacker->left = ZSTD_decompressStream(unpacker->stream, &out, &in);
		if (ZSTD_isError(unpacker->left)) {
			unpacker->reason = ZSTD_getErrorName(unpacker->left);
			return -EBADMSG;
		}
		unpacker->written += out.pos;
		error = unpacker->written > UNPACKED_MAX
				? -EFBIG
				: write_all(unpacker->to, out.dst, out.pos);
		/* After the end of a frame, zstd has no output without more input. */
	} while (!error && (in.pos < in.size || (out.pos == out.size && unpacker->left > 0)));
	return error;
}

static int unpack_all(Unpacker *unpacker)
{
	for (;;) {
		ssize_t got = read(unpacker->from, unpacker->in, unpacker->in_size);
		int error;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		error = unpack_piece(unpacker, got);
		if (error)
			return error;
	}
	if (unpacker->left == 0)
		return 0;
	unpacker->reason = "it is truncated";
	return -EBADMSG;
}

static int unpack(Unpacker *unpacker)
{
	int error;

	unpacker->stream = ZSTD_createDStream();
	if (!unpacker->stream)
		return -ENOMEM;
	unpacker->in_size = ZSTD_DStreamInSize();
	unpacker->out_size = ZSTD_DStreamOutSize();
	unpacker->in = xmalloc(unpacker->in_size);
	unpacker->out = xmalloc(unpacker->out_size);
	error = unpack_all(unpacker);
	free(unpacker->in);
	free(unpacker->out);
	ZSTD_freeDStream(unpacker->stream);
	return error;
}

int zstd_unpack_open(const char *path, int *ret_fd)
{
	const char *set = getenv("TMPDIR"), *folder = set && *set ? set : "/tmp";
	unsigned char head[sizeof(magic)];
	_cleanup_close_ int from = -1;
	Unpacker unpacker = {};
	struct stat st;
	int error;

	*ret_fd = -1;
	from = safe_open(path, 0, &st);
	if (from < 0 || pread(from, head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head, magic, sizeof(head)) != 0)
		return 0;
	unpacker.from = from;
	unpacker.to = open_temporary(folder);
	error = unpacker.to < 0 ? -errno : unpack(&unpacker);
	if (!error) {
		*ret_fd = unpacker.to;
		return 0;
	}
	closep(&unpacker.to);
	if (unpacker.reason)
		log_error("decompressing %s failed: %s", path, unpacker.reason);
	else
		log_error("decompressing %s into %s failed: %s; set TMPDIR to another folder", path,
			  folder, strerror(-error));
	return error;
}
