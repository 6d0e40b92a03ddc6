/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture_content.c - how large the records of a capture are, by the headers of its frames and
 * blocks alone (the zstd format, RFC 8878).
 */
#include "capture_format.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define FRAME_HEADER_MAX 18
#define BLOCK_HEADER	 3

/* Of the descriptor byte, which follows the frame's magic number. */
#define DESCRIPTOR_CHECKSUM 0x04
#define DESCRIPTOR_SINGLE   0x20
#define CHECKSUM_SIZE	    4

/* A block holds up to 128 KiB, so this is enough for all captures that a disk can hold. */
#define BLOCKS_MAX (4u << 20)

enum block_type { BLOCK_RAW, BLOCK_RLE, BLOCK_COMPRESSED };

static uint64_t frame_header_size(uint8_t descriptor)
{
	static const uint8_t dictionary[] = {0, 1, 2, 4}, content[] = {0, 2, 4, 8};
	bool single = descriptor & DESCRIPTOR_SINGLE;
	uint64_t size = sizeof(u32) + 1 + !single + dictionary[descriptor & 3];

	return size + (descriptor >> 6 ? content[descriptor >> 6] : single);
}

/* Returns where the blocks that begin at offset end, or 0 if the file ends before. Counts them. */
static uint64_t blocks_end(int fd, uint64_t offset, uint32_t *blocks)
{
	while ((*blocks)++ < BLOCKS_MAX) {
		uint8_t bytes[BLOCK_HEADER];
		uint32_t header, size;

		if (pread(fd, bytes, sizeof(bytes), offset) != sizeof(bytes))
			return 0;
		header = bytes[0] | bytes[1] << 8 | (uint32_t)bytes[2] << 16;
		size = (header >> 1 & 3) == BLOCK_RLE ? 1 : header >> 3;
		offset += sizeof(bytes) + size;
		if (header & 1) /* the last one of the frame */
			return offset;
	}
	return 0;
}

uint64_t capture_content_size(int fd)
{
	uint64_t offset = 0, content = 0;
	uint8_t start[FRAME_HEADER_MAX];
	uint32_t blocks = 0;
	struct stat st;
	ssize_t have;

	if (fstat(fd, &st))
		return 0;
	while ((have = pread(fd, start, sizeof(start), offset)) >= CAPTURE_SKIPPABLE_LEN) {
		unsigned long long size;
		u32 words[2];

		memcpy(words, start, sizeof(words));
		if ((words[0] & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START) {
			offset += CAPTURE_SKIPPABLE_LEN + (uint64_t)words[1];
			continue;
		}
		size = ZSTD_getFrameContentSize(start, have);
		if (size > CAPTURE_FRAME_MAX)
			break;
		offset = blocks_end(fd, offset + frame_header_size(start[4]), &blocks);
		if (offset == 0)
			break;
		offset += start[4] & DESCRIPTOR_CHECKSUM ? CHECKSUM_SIZE : 0;
		if (offset > (uint64_t)st.st_size)
			break;
		content += size;
	}
	return content;
}
