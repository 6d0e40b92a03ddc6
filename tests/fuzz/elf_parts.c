/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf_parts.h"
#include "fuzz.h"
#include <elf.h>

ElfParts elf_parts_of(const uint8_t *data, size_t size)
{
	ElfParts all = {.parts[ELF_PART_OBJECT] = {data, size}};
	struct elf_trailer trailer;
	size_t files;

	if (size < sizeof(trailer))
		return all;
	files = size - sizeof(trailer);
	memcpy(&trailer, data + files, sizeof(trailer));
	if (trailer.magic != ELF_TRAILER_MAGIC || trailer.debug_size > files ||
	    trailer.dwz_size > files - trailer.debug_size)
		return all;
	files -= trailer.debug_size + trailer.dwz_size;
	return (ElfParts){
		.parts = {{data, files},
			  {data + files, trailer.debug_size},
			  {data + files + trailer.debug_size, trailer.dwz_size}},
		.debug_by_build_id = trailer.debug_by_build_id & 1,
		.has_trailer = true,
	};
}

/* ---- changes ---------------------------------------------------------------- */

typedef struct Region {
	uint64_t offset, size;
} Region;

static Region clip(uint64_t offset, uint64_t size, size_t file_size)
{
	if (offset >= file_size)
		return (Region){0, file_size};
	return (Region){offset, MIN(size, file_size - offset)};
}

/* The program headers with the file's, the section headers, or the contents of a section. */
static Region choose_region(const ElfPart *part, unsigned int *seed)
{
	Elf64_Ehdr header;
	Elf64_Shdr section;
	uint32_t choice;
	uint64_t place;

	if (part->size < sizeof(header))
		return (Region){0, part->size};
	memcpy(&header, part->data, sizeof(header));
	choice = fuzz_random(seed, header.e_shnum + 2u);
	if (choice == 0)
		return clip(0, sizeof(header) + (uint64_t)header.e_phnum * sizeof(Elf64_Phdr),
			    part->size);
	if (choice == 1)
		return clip(header.e_shoff, header.e_shnum * sizeof(section), part->size);
	if (header.e_shoff > part->size)
		return (Region){0, part->size};
	place = header.e_shoff + (choice - 2) * sizeof(section);
	if (place > part->size || part->size - place < sizeof(section))
		return (Region){0, part->size};
	memcpy(&section, part->data + place, sizeof(section));
	return clip(section.sh_offset, section.sh_size, part->size);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	ElfParts all = elf_parts_of(data, size);
	const ElfPart *part = &all.parts[fuzz_random(&seed, all.has_trailer ? ELF_PARTS : 1)];
	_cleanup_free_ uint8_t *changed = NULL;
	Region region;

	/* Also the trailer, and sizes. */
	if (part->size == 0 || fuzz_random(&seed, 16) == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	region = choose_region(part, &seed);
	if (region.size == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	changed = fuzz_copy(part->data + region.offset, region.size);
	for (uint32_t times = 1 + fuzz_random(&seed, 3); times > 0; times--)
		LLVMFuzzerMutate(changed, region.size, region.size);
	/* All stays where it is: what became shorter keeps its old end. */
	memcpy(data + (part->data - data) + region.offset, changed, region.size);
	return size;
}
