/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "compressor.h"
#include "util.h"
#include <errno.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define BUFFER_SIZE (256 * 1024)
/*
 * At the lowest levels numbers compress to within a few per cent of level 6, at several times the
 * speed.
 */
#define GZIP_LEVEL  2
#define GZIP_WINDOW (15 + 16) /* largest window, gzip header */
#define ZSTD_LEVEL  3

struct Compressor {
	z_stream zip; /* one of the two is used */
	ZSTD_CCtx *zstd;
	unsigned char packed[BUFFER_SIZE];
};

enum packing compressor_packing(const char *path)
{
	size_t length = strlen(path);

	if (length >= 3 && !strcmp(path + length - 3, ".gz"))
		return PACKING_GZIP;
	if (length >= 4 && !strcmp(path + length - 4, ".zst"))
		return PACKING_ZSTD;
	return PACKING_NONE;
}

static bool begin_gzip(Compressor *compressor, int level)
{
	return deflateInit2(&compressor->zip, level ? level : GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW,
			    9, Z_DEFAULT_STRATEGY) == Z_OK;
}

static bool begin_zstd(Compressor *compressor, int level)
{
	compressor->zstd = ZSTD_createCCtx();
	return compressor->zstd &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(compressor->zstd, ZSTD_c_compressionLevel,
						    level ? level : ZSTD_LEVEL)) &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(compressor->zstd, ZSTD_c_checksumFlag, 1));
}

Compressor *compressor_new(enum packing packing, int level)
{
	Compressor *compressor = xcalloc(1, sizeof(*compressor));

	if (packing == PACKING_ZSTD ? begin_zstd(compressor, level) : begin_gzip(compressor, level))
		return compressor;
	compressor_free(compressor);
	return NULL;
}

static int write_gzip(Compressor *compressor, int fd, const void *data, size_t size, bool last)
{
	compressor->zip.next_in = (Bytef *)data;
	compressor->zip.avail_in = size;
	do {
		int error;

		compressor->zip.next_out = compressor->packed;
		compressor->zip.avail_out = BUFFER_SIZE;
		if (deflate(&compressor->zip, last ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_ERROR)
			return -EIO;
		error = write_all(fd, compressor->packed, BUFFER_SIZE - compressor->zip.avail_out);
		if (error)
			return error;
	} while (compressor->zip.avail_out == 0);
	return 0;
}

static int write_zstd(Compressor *compressor, int fd, const void *data, size_t size, bool last)
{
	ZSTD_inBuffer in = {.src = data, .size = size};
	size_t left;

	do {
		ZSTD_outBuffer out = {.dst = compressor->packed, .size = BUFFER_SIZE};
		int error;

		left = ZSTD_compressStream2(compressor->zstd, &out, &in,
					    last ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return -EIO;
		error = write_all(fd, compressor->packed, out.pos);
		if (error)
			return error;
	} while (last ? left > 0 : in.pos < in.size);
	return 0;
}

int compressor_write(Compressor *compressor, int fd, const void *data, size_t size, bool last)
{
	return compressor->zstd ? write_zstd(compressor, fd, data, size, last)
				: write_gzip(compressor, fd, data, size, last);
}

void compressor_free(Compressor *compressor)
{
	if (!compressor)
		return;
	if (compressor->zstd)
		ZSTD_freeCCtx(compressor->zstd);
	else
		deflateEnd(&compressor->zip);
	free(compressor);
}
