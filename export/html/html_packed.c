/* SPDX-License-Identifier: GPL-2.0-or-later */
/* html_packed.c - compresses the data, and writes them in characters that HTML passes on as is. */
#include "html_parts.h"
#include <errno.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* the largest one, and gzip's header */
#define LINE_BYTES  3072      /* a multiple of 3, so that only the last line is padded */

static void write_group(char *to, const uint8_t *from, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = from[0] << 16;

	if (size > 1)
		bits |= from[1] << 8;
	if (size > 2)
		bits |= from[2];
	to[0] = digits[bits >> 18];
	to[1] = digits[bits >> 12 & 63];
	to[2] = size > 1 ? digits[bits >> 6 & 63] : '=';
	to[3] = size > 2 ? digits[bits & 63] : '=';
}

void html_packed_write(Output *output, const Bytes *packed)
{
	char line[LINE_BYTES / 3 * 4 + 1];

	for (size_t at = 0; at < packed->count; at += LINE_BYTES) {
		size_t part = MIN(packed->count - at, (size_t)LINE_BYTES), length = 0;

		for (size_t i = 0; i < part; i += 3, length += 4)
			write_group(line + length, packed->items + at + i, part - i);
		line[length++] = '\n';
		output_write(output, line, length);
	}
}

int html_packed_make(Bytes *data)
{
	z_stream stream = {.next_in = data->items, .avail_in = data->count};
	Bytes packed = {};
	int got;

	/* zlib counts in 32 bits, and no browser reads that much. */
	if (data->count > UINT32_MAX / 2)
		return -EFBIG;
	if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 9,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	vec_reserve(&packed, deflateBound(&stream, data->count));
	stream.next_out = packed.items;
	stream.avail_out = packed.capacity;
	got = deflate(&stream, Z_FINISH);
	packed.count = stream.total_out;
	deflateEnd(&stream);
	vec_free(data);
	*data = packed;
	return got == Z_STREAM_END ? 0 : -EIO;
}
