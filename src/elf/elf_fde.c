/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_fde.c - finds where functions begin if there are no symbols: the unwind table of a stripped
 * file has an entry (FDE) for each. .eh_frame_hdr lists them in the form that linkers write: pairs
 * of (start, address of the entry), both signed 32-bit, relative to the header. Static executables
 * have no such list, and neither have those that musl's compiler wrapper links; for them all of
 * .eh_frame is read.
 */
#include "cfi.h"
#include "elf_file.h"
#include "elf_symbols.h"
#include <dwarf.h>
#include <elf.h>
#include <string.h>

#define HEADER_SIZE 12
#define FDES_MAX    (16u << 20)
/* The bits of a pointer's encoding that are not about what it is relative to. */
#define POINTER_FORMAT 0x0f

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

/* Returns the size of the function that the entry describes, or 0 if the entry is malformed. */
static uint64_t function_size(const Elf_Data *frame, uint64_t frame_address, uint64_t fde_address,
			      uint64_t start)
{
	uint64_t offset = fde_address - frame_address;
	struct fde fde;

	if (fde_address < frame_address || offset > frame->d_size ||
	    frame->d_size - offset < sizeof(fde))
		return 0;
	memcpy(&fde, (const uint8_t *)frame->d_buf + offset, sizeof(fde));
	if (fde_address + offsetof(struct fde, start) + (int64_t)fde.start != start)
		return 0;
	return fde.size;
}

static bool is_usual(const struct header *header)
{
	return header->version == 1 && header->count_encoding == DW_EH_PE_udata4 &&
	       header->table_encoding == (DW_EH_PE_datarel | DW_EH_PE_sdata4);
}

static void add_function(ElfSymbols *symbols, uint64_t start, uint64_t size)
{
	*vec_push(&symbols->candidates) = (ElfCandidate){
		.symbol = {.start = start, .size = size, .nameless = true},
		.limit = UINT64_MAX,
		.source = SYMBOL_FDE,
	};
}

/* Returns false if there is no such list, or it has another form. */
static bool add_listed(ElfSymbols *symbols, Elf *elf, const Elf_Data *frame, uint64_t frame_address)
{
	GElf_Shdr section_header;
	Elf_Scn *section = elf_section_by_name(elf, ".eh_frame_hdr", &section_header);
	Elf_Data *table;
	struct header header;
	uint64_t base;

	_Static_assert(sizeof(header) == HEADER_SIZE, "LSB 10.6.2");
	if (!elf_section_data(section, &table) || table->d_size < sizeof(header))
		return false;
	memcpy(&header, table->d_buf, sizeof(header));
	if (!is_usual(&header))
		return false;
	base = section_header.sh_addr;
	header.count = MIN(header.count, (table->d_size - sizeof(header)) / sizeof(struct entry));
	for (uint32_t i = 0; i < MIN(header.count, FDES_MAX); i++) {
		struct entry entry;
		uint64_t start;

		memcpy(&entry, (const uint8_t *)table->d_buf + sizeof(header) + i * sizeof(entry),
		       sizeof(entry));
		start = base + (int64_t)entry.start;
		add_function(symbols, start,
			     function_size(frame, frame_address, base + (int64_t)entry.fde, start));
	}
	return true;
}

/* ---- entry by entry ---------------------------------------------------------- */

/* In .eh_frame a CIE comes before the entries that refer to it. */
typedef struct Cies {
	Map index; /* offset -> list */
	VEC(CfiCie) list;
	bool is_32; /* its absolute pointers have 4 bytes, which cfi.h does not read */
} Cies;

static void add_cie(Cies *cies, const CfiSection *section, const CfiEntry *entry)
{
	CfiCie cie;

	if (cfi_read_cie(section, entry, &cie) < 0 ||
	    (cies->is_32 && (cie.encoding & POINTER_FORMAT) == DW_EH_PE_absptr))
		return;
	map_set(&cies->index, entry->offset, cies->list.count);
	*vec_push(&cies->list) = cie;
}

static void add_fde(ElfSymbols *symbols, const Cies *cies, const CfiEntry *entry)
{
	uint32_t cie = map_get(&cies->index, entry->cie);
	CfiFde fde;

	/* A linker that drops a function leaves its entry, with address 0. */
	if (cie != MAP_NONE && !cfi_read_fde(entry, &cies->list.items[cie], &fde) && fde.pc &&
	    fde.size)
		add_function(symbols, fde.pc, fde.size);
}

static void add_entries(ElfSymbols *symbols, const Elf_Data *frame, uint64_t frame_address,
			bool is_32)
{
	CfiSection section = {.data = frame->d_buf,
			      .size = frame->d_size,
			      .address = frame_address,
			      .eh_frame = true};
	Cies cies = {.is_32 = is_32};
	uint64_t offset = 0;
	CfiEntry entry;

	for (uint32_t i = 0; i < FDES_MAX && cfi_next(&section, &offset, &entry) > 0; i++) {
		if (entry.is_cie)
			add_cie(&cies, &section, &entry);
		else
			add_fde(symbols, &cies, &entry);
	}
	map_free(&cies.index);
	vec_free(&cies.list);
}

void elf_symbols_add_fdes(ElfSymbols *symbols, Elf *elf)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_section_by_name(elf, ".eh_frame", &header);
	Elf_Data *frame;

	if (elf_section_data(section, &frame) && !add_listed(symbols, elf, frame, header.sh_addr))
		add_entries(symbols, frame, header.sh_addr, elf_file_is_32(elf));
}
