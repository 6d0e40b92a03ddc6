/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_plt.c - names the stubs through which calls leave a file.
 *
 * Linkers lay them out in many ways (with and without IBT, lazy or bound at start), but each stub
 * jumps through a slot of the GOT, and the relocation of that slot names the function. So this file
 * searches for the jump, and does not rely on a layout.
 */
#include "elf_symbols.h"
#include <elf.h>
#include <stdio.h>
#include <string.h>

#define STUB_SIZE     16
#define STUB_SIZE_MIN 8
#define STUBS_MAX     (1u << 20)
#define NAME_MAX_PLT  1024

/* jmp *disp32(%rip) */
static const uint8_t jump[] = {0xff, 0x25};
#define JUMP_SIZE 6

/* GOT slot -> symbol of .dynsym. */
typedef struct Slots {
	Map symbol_of;
	Elf_Data *symbols;
	size_t strings; /* the section with their names */
} Slots;

static void read_relocations(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, Slots *slots)
{
	Elf_Scn *symbols = elf_getscn(elf, header->sh_link);
	GElf_Shdr symbols_header;
	Elf_Data *data;
	GElf_Rela rela;

	if (!elf_section_data(section, &data) || !symbols ||
	    !gelf_getshdr(symbols, &symbols_header) || symbols_header.sh_type != SHT_DYNSYM ||
	    !elf_section_data(symbols, &slots->symbols))
		return;
	slots->strings = symbols_header.sh_link;
	for (unsigned i = 0; i < STUBS_MAX && gelf_getrela(data, i, &rela); i++) {
		unsigned type = GELF_R_TYPE(rela.r_info);

		if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT)
			map_set(&slots->symbol_of, rela.r_offset,
				MIN(GELF_R_SYM(rela.r_info), (uint64_t)INT32_MAX));
	}
}

static void read_slots(Elf *elf, Slots *slots)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_RELA)
			read_relocations(elf, section, &header, slots);
}

/* Returns the slot that the stub jumps through, or 0. */
static uint64_t slot_of(const uint8_t *stub, size_t size, uint64_t address)
{
	int32_t distance;

	for (size_t i = 0; i + JUMP_SIZE <= size; i++) {
		if (memcmp(stub + i, jump, sizeof(jump)))
			continue;
		memcpy(&distance, stub + i + sizeof(jump), sizeof(distance));
		return address + i + JUMP_SIZE + (int64_t)distance;
	}
	return 0;
}

static void add_stub(ElfSymbols *symbols, Elf *elf, const Slots *slots, uint64_t slot,
		     uint64_t start, uint64_t size)
{
	uint32_t symbol_index = slot ? map_get(&slots->symbol_of, slot) : MAP_NONE;
	char name[NAME_MAX_PLT];
	const char *function;
	GElf_Sym symbol;
	size_t name_offset = symbols->names.count;

	if (symbol_index == MAP_NONE || !gelf_getsym(slots->symbols, symbol_index, &symbol))
		return;
	function = elf_strptr(elf, slots->strings, symbol.st_name);
	if (!function || !*function)
		return;
	snprintf(name, sizeof(name), "%s@plt", function);
	for (const char *p = name; p == name || p[-1]; p++)
		*vec_push(&symbols->names) = *p;
	*vec_push(&symbols->candidates) = (ElfCandidate){
		.symbol = {.start = start, .size = size, .name = name_offset},
		.limit = start + size,
		.source = SYMBOL_PLT,
	};
}

static void read_stubs(ElfSymbols *symbols, Elf *elf, const Slots *slots, const char *section_name)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_section_by_name(elf, section_name, &header);
	size_t size, count = 0;
	Elf_Data *data;

	if (!elf_section_data(section, &data))
		return;
	size = header.sh_entsize == STUB_SIZE_MIN ? STUB_SIZE_MIN : STUB_SIZE;
	for (size_t at = 0; at + size <= data->d_size && count < STUBS_MAX; at += size, count++) {
		uint64_t start = header.sh_addr + at;

		add_stub(symbols, elf, slots,
			 slot_of((const uint8_t *)data->d_buf + at, size, start), start, size);
	}
}

void elf_symbols_add_plt(ElfSymbols *symbols, Elf *elf)
{
	static const char *const sections[] = {".plt", ".plt.sec", ".plt.got"};
	Slots slots = {};

	read_slots(elf, &slots);
	if (slots.symbols)
		for (size_t i = 0; i < ARRAY_LEN(sections); i++)
			read_stubs(symbols, elf, &slots, sections[i]);
	map_free(&slots.symbol_of);
}
