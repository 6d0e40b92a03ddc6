/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "gnu_debugdata.h"
#include "elf_file.h"
#include "elf_symbols.h"
#include <lzma.h>

#define MEMORY_MAX (64u << 20)
#define IMAGE_MAX  (256u << 20)
#define IMAGE_STEP (1u << 20)

/* Decompresses into an image that grows. Returns its size, or 0. */
static size_t decompress(lzma_stream *stream, uint8_t **ret_image)
{
	size_t capacity = IMAGE_STEP;
	uint8_t *image = xmalloc(capacity);
	lzma_ret r;

	stream->next_out = image;
	stream->avail_out = capacity;
	while ((r = lzma_code(stream, LZMA_FINISH)) == LZMA_OK && capacity < IMAGE_MAX) {
		if (stream->avail_out > 0)
			continue;
		image = xrealloc(image, capacity * 2);
		stream->next_out = image + capacity;
		stream->avail_out = capacity;
		capacity *= 2;
	}
	*ret_image = image;
	return r == LZMA_STREAM_END ? stream->total_out : 0;
}

void gnu_debugdata_open(GnuDebugdata *mini, Elf *elf)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_section_by_name(elf, ".gnu_debugdata", &header);
	lzma_stream stream = LZMA_STREAM_INIT;
	Elf_Data *data;
	size_t size;

	*mini = (GnuDebugdata){};
	if (!elf_section_data(section, &data) ||
	    lzma_stream_decoder(&stream, MEMORY_MAX, 0) != LZMA_OK)
		return;
	stream.next_in = data->d_buf;
	stream.avail_in = data->d_size;
	size = decompress(&stream, &mini->image);
	lzma_end(&stream);
	if (size > 0 && elf_file_open_image(mini->image, size, &mini->elf) == 0)
		return;
	elf_end(mini->elf);
	mini->elf = NULL;
}

void gnu_debugdata_close(GnuDebugdata *mini)
{
	elf_end(mini->elf);
	free(mini->image);
	*mini = (GnuDebugdata){};
}
