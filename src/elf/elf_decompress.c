/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf_decompress.h"
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <zstd.h>

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2 /* glibc's elf.h has it since 2.37 */
#endif

/* The type by which libelf gives out the contents; it refuses symbols of another type. */
static Elf_Type content_type(const GElf_Shdr *header)
{
	return header->sh_type == SHT_SYMTAB || header->sh_type == SHT_DYNSYM ? ELF_T_SYM
									      : ELF_T_BYTE;
}

static void replace(Elf_Data *data, void *bytes, const Elf64_Chdr *compression, Elf_Type type)
{
	data->d_buf = bytes;
	data->d_size = compression->ch_size;
	data->d_align = MAX(compression->ch_addralign, 1);
	data->d_type = type;
}

/*
 * libelf has no call that sets the contents of a section of a file that is read. It gives out its
 * own Elf_Data, though, one for the raw bytes and one for the converted ones, and reads no others.
 */
static int install(ElfMap *map, Elf_Scn *section, GElf_Shdr *header, void *bytes,
		   const Elf64_Chdr *compression)
{
	Elf_Data *raw = elf_rawdata(section, NULL), *converted = elf_getdata(section, NULL);
	Elf_Type type = content_type(header);

	if (!raw || !converted)
		return -EBADMSG;
	header->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
	header->sh_size = compression->ch_size;
	header->sh_addralign = compression->ch_addralign;
	if (!gelf_update_shdr(section, header))
		return -EBADMSG;
	replace(raw, bytes, compression, type);
	replace(converted, bytes, compression, type);
	*vec_push(&map->decompressed) = bytes;
	return 0;
}

static size_t head_size(const ElfMap *map)
{
	return elf_file_is_32(map->elf) ? sizeof(Elf32_Chdr) : sizeof(Elf64_Chdr);
}

static Elf64_Chdr read_head(const ElfMap *map, const void *bytes)
{
	Elf32_Chdr narrow;
	Elf64_Chdr head;

	if (!elf_file_is_32(map->elf)) {
		memcpy(&head, bytes, sizeof(head));
		return head;
	}
	memcpy(&narrow, bytes, sizeof(narrow));
	return (Elf64_Chdr){.ch_type = narrow.ch_type,
			    .ch_size = narrow.ch_size,
			    .ch_addralign = narrow.ch_addralign};
}

static int decompress_zstd(ElfMap *map, Elf_Scn *section, GElf_Shdr *header, const Elf_Data *raw,
			   const Elf64_Chdr *compression)
{
	const uint8_t *frame = (const uint8_t *)raw->d_buf + head_size(map);
	/* The size is what the file says: there may be no memory for it. */
	_cleanup_free_ void *bytes = malloc(compression->ch_size);
	size_t size;
	int r;

	if (!bytes)
		return -ENOMEM;
	size = ZSTD_decompress(bytes, compression->ch_size, frame, raw->d_size - head_size(map));
	if (ZSTD_isError(size) || size != compression->ch_size)
		return -EBADMSG;
	r = install(map, section, header, bytes, compression);
	if (r == 0)
		(void)take_pointer(bytes);
	return r;
}

int elf_decompress(ElfMap *map, Elf_Scn *section)
{
	Elf64_Chdr compression;
	GElf_Shdr header;
	Elf_Data *raw;

	if (!gelf_getshdr(section, &header))
		return -EBADMSG;
	if (!(header.sh_flags & SHF_COMPRESSED))
		return 0;
	raw = elf_rawdata(section, NULL);
	if (header.sh_type == SHT_NOBITS || !raw || !raw->d_buf || raw->d_size < head_size(map))
		return -EBADMSG;
	compression = read_head(map, raw->d_buf);
	if (compression.ch_size == 0 || compression.ch_size > ELF_DECOMPRESSED_MAX)
		return -EFBIG;
	switch (compression.ch_type) {
	case ELFCOMPRESS_ZSTD:
		return decompress_zstd(map, section, &header, raw, &compression);
	case ELFCOMPRESS_ZLIB:
		return elf_compress(section, 0, 0) < 0 ? -EBADMSG : 0;
	default:
		return -ENOTSUP;
	}
}

void elf_decompress_tables(ElfMap *map)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while (map->elf && (section = elf_nextscn(map->elf, section)))
		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM ||
		     header.sh_type == SHT_STRTAB))
			elf_decompress(map, section);
}
