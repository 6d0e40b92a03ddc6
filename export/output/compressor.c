/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "compressor.h"
#include "util.h"
#include <errno.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define BUFFER_SIZE (256 * 1024)
/*
 * Numbers compress to within a few per cent of level 6 at the lowest levels, at
 * several times the speed.
 */
#define GZIP_LEVEL  2
#define GZIP_WINDOW (15 + 16) /* largest window, gzip header */
#define ZSTD_LEVEL  3

struct Compressor {
	z_stream zip; /* one of the two */
	ZSTD_CCtx *zstd;
	unsigned char packed[BUFFER_SIZE];
};

enum packing compression_of(const char *path)
{
	size_t length = strlen(path);

	if (length >= 3 && !strcmp(path + length - 3, ".gz"))
		return PACKING_GZIP;
	if (length >= 4 && !strcmp(path + length - 4, ".zst"))
		return PACKING_ZSTD;
	return PACKING_NONE;
}

static bool begin_gzip(Compressor *packer, int level)
{
	return deflateInit2(&packer->zip, level ? level : GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 9,
			    Z_DEFAULT_STRATEGY) == Z_OK;
}

static bool begin_zstd(Compressor *packer, int level)
{
	packer->zstd = ZSTD_createCCtx();
	return packer->zstd &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel,
						    level ? level : ZSTD_LEVEL)) &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_checksumFlag, 1));
}

Compressor *compressor_new(enum packing packing, int level)
{
	Compressor *packer = xcalloc(1, sizeof(*packer));

	if (packing == PACKING_ZSTD ? begin_zstd(packer, level) : begin_gzip(packer, level))
		return packer;
	compressor_free(packer);
	return NULL;
}

static int write_gzip(Compressor *packer, int fd, const void *data, size_t size, bool last)
{
	packer->zip.next_in = (Bytef *)data;
	packer->zip.avail_in = size;
	do {
		int error;

		packer->zip.next_out = packer->packed;
		packer->zip.avail_out = BUFFER_SIZE;
		if (deflate(&packer->zip, last ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_ERROR)
			return -EIO;
		error = write_all(fd, packer->packed, BUFFER_SIZE - packer->zip.avail_out);
		if (error)
			return error;
	} while (packer->zip.avail_out == 0);
	return 0;
}

static int write_zstd(Compressor *packer, int fd, const void *data, size_t size, bool last)
{
	ZSTD_inBuffer in = {.src = data, .size = size};
	size_t left;

	do {
		ZSTD_outBuffer out = {.dst = packer->packed, .size = BUFFER_SIZE};
		int error;

		left = ZSTD_compressStream2(packer->zstd, &out, &in,
					    last ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return -EIO;
		error = write_all(fd, packer->packed, out.pos);
		if (error)
			return error;
	} while (last ? left > 0 : in.pos < in.size);
	return 0;
}

int compressor_write(Compressor *packer, int fd, const void *data, size_t size, bool last)
{
	return packer->zstd ? write_zstd(packer, fd, data, size, last)
			    : write_gzip(packer, fd, data, size, last);
}

void compressor_free(Compressor *packer)
{
	if (!packer)
		return;
	if (packer->zstd)
		ZSTD_freeCCtx(packer->zstd);
	else
		deflateEnd(&packer->zip);
	free(packer);
}
