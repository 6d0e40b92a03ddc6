/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_fde.c - where functions begin, when nothing names them: the unwind table of a stripped
 * file has an entry (FDE) for each. .eh_frame_hdr lists them in the form that linkers write:
 * pairs of (start, place of the entry), both signed 32-bit, relative to the header.
 */
#include "elf_symbols.h"
#include <dwarf.h>
#include <elf.h>
#include <string.h>

#define HEADER_SIZE 12
#define FDES_MAX    (16u << 20)

struct header {
	uint8_t version, frame_encoding, count_encoding, table_encoding;
	int32_t frame;
	uint32_t count;
};

struct entry {
	int32_t start, fde;
};

/* The fixed beginning of an entry of .eh_frame with pc-relative 32-bit pointers. */
struct fde {
	uint32_t length, cie;
	int32_t start;
	uint32_t size;
};

/* Size of the function that the entry describes, or 0 if it is not as it should be. */
static uint64_t function_size(const Elf_Data *frame, uint64_t frame_address, uint64_t fde_address,
			      uint64_t start)
{
	uint64_t place = fde_address - frame_address;
	struct fde fde;

	if (fde_address < frame_address || place > frame->d_size ||
	    frame->d_size - place < sizeof(fde))
		return 0;
	memcpy(&fde, (const uint8_t *)frame->d_buf + place, sizeof(fde));
	if (fde_address + offsetof(struct fde, start) + (int64_t)fde.start != start)
		return 0;
	return fde.size;
}

static bool is_usual(const struct header *header)
{
	return header->version == 1 && header->count_encoding == DW_EH_PE_udata4 &&
	       header->table_encoding == (DW_EH_PE_datarel | DW_EH_PE_sdata4);
}

void elf_symbols_add_fdes(ElfSymbols *symbols, Elf *elf)
{
	GElf_Shdr header_section, frame_section;
	Elf_Scn *section = elf_section_by_name(elf, ".eh_frame_hdr", &header_section);
	Elf_Data *table, *frame;
	struct header header;
	uint64_t base = header_section.sh_addr;

	_Static_assert(sizeof(header) == HEADER_SIZE, "LSB 10.6.2");
	if (!elf_section_data(section, &table) || table->d_size < sizeof(header))
		return;
	section = elf_section_by_name(elf, ".eh_frame", &frame_section);
	if (!elf_section_data(section, &frame))
		return;
	memcpy(&header, table->d_buf, sizeof(header));
	if (!is_usual(&header))
		return;
	header.count = MIN(header.count, (table->d_size - sizeof(header)) / sizeof(struct entry));
	for (uint32_t i = 0; i < MIN(header.count, FDES_MAX); i++) {
		struct entry entry;
		uint64_t start;

		memcpy(&entry, (const uint8_t *)table->d_buf + sizeof(header) + i * sizeof(entry),
		       sizeof(entry));
		start = base + (int64_t)entry.start;
		*vec_push(&symbols->candidates) = (ElfCandidate){
			.symbol = {.start = start,
				   .size = function_size(frame, frame_section.sh_addr,
							 base + (int64_t)entry.fde, start),
				   .nameless = true},
			.limit = UINT64_MAX,
			.source = SYMBOL_FDE,
		};
	}
}
