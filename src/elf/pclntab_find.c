/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pclntab_find.c - finds a Go program's pclntab, and the beginning of the code that it describes.
 *
 * Go's own linker gives it a section. Another linker, for a position-independent program, puts it
 * into a section with other data, which is searched. Up to Go 1.25 its header says where the code
 * begins; since then only moduledata does, which begins with a pointer to the table. In a
 * position-independent program the file may have zeros in place of pointers, and relocations.
 */
#include "elf_file.h"
#include "elf_symbols.h"
#include "pclntab.h"
#include <errno.h>
#include <string.h>

#define WORD 8
/* Offset in the table's header. */
#define HEADER_TEXT  24
#define HEADER_NAMES 32
/*
 * The offset in moduledata, in words: pcHeader, six slices, findfunctab, minpc and maxpc precede
 * it.
 */
#define MODULE_TEXT 22
/*
 * For Go 1.18 and 1.19; for later versions, with covctrs and ecovctrs before it; and since Go 1.27
 * after lengths of types and itabs. In the last case the table's end follows, so it cannot be
 * mistaken.
 */
#define MODULE_FUNCDATA_118 38
#define MODULE_FUNCDATA	    40
#define MODULE_FUNCDATA_127 43
#define ALIGNMENT	    16 /* of the table, at least */
/* Pointers to the table that are looked at: moduledata has the one. */
#define POINTERS_MAX 16
#define TABLES_MAX                                                                                 \
	4 /* The limit for pointers to the table: moduledata has the only one that counts. */

static uint64_t word_at(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/*
 * Returns the bytes from an address to the end of its section; empty if no section in the file has
 * it.
 */
static PclntabBytes bytes_at(Elf *elf, uint64_t address)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		Elf_Data *data;
		uint64_t skipped;

		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_ALLOC) ||
		    address < header.sh_addr || address - header.sh_addr >= header.sh_size ||
		    !elf_section_data(section, &data))
			continue;
		skipped = address - header.sh_addr;
		if (skipped < data->d_size)
			return (PclntabBytes){(const uint8_t *)data->d_buf + skipped,
					      data->d_size - skipped};
	}
	return (PclntabBytes){};
}

/* ---- pointers that are relocated -------------------------------------------------- */

/* Relocations that only add the load address, which all tables have. */
typedef struct Relocations {
	Elf *elf;
	unsigned tables; /* how many have been read */
	Elf_Scn *section;
	Elf_Data *data;
	size_t next;
} Relocations;

static bool next_table(Relocations *relocations)
{
	GElf_Shdr header;

	while (relocations->tables < TABLES_MAX &&
	       (relocations->section = elf_nextscn(relocations->elf, relocations->section))) {
		relocations->next = 0;
		if (!gelf_getshdr(relocations->section, &header) || header.sh_type != SHT_RELA ||
		    !(header.sh_flags & SHF_ALLOC))
			continue;
		relocations->tables++;
		if (elf_section_data(relocations->section, &relocations->data))
			return true;
	}
	relocations->section = NULL;
	return false;
}

static bool next_relative(Relocations *relocations, Elf64_Rela *ret_relocation)
{
	while (relocations->section || next_table(relocations)) {
		const Elf_Data *data = relocations->data;

		while ((relocations->next + 1) * sizeof(*ret_relocation) <= data->d_size) {
			memcpy(ret_relocation,
			       (const uint8_t *)data->d_buf +
				       relocations->next++ * sizeof(*ret_relocation),
			       sizeof(*ret_relocation));
			if (ELF64_R_TYPE(ret_relocation->r_info) == R_X86_64_RELATIVE)
				return true;
		}
		if (!next_table(relocations))
			break;
	}
	return false;
}

/*
 * Returns the pointer that is at an address if the program is loaded where it was linked; 0 =
 * unknown.
 */
static uint64_t pointer_at(Elf *elf, uint64_t address)
{
	PclntabBytes bytes = bytes_at(elf, address);
	uint64_t pointer = bytes.size >= WORD ? word_at(bytes.at) : 0;
	Relocations relocations = {.elf = elf};
	Elf64_Rela relocation;

	while (!pointer && next_relative(&relocations, &relocation))
		if (relocation.r_offset == address)
			pointer = relocation.r_addend;
	return pointer;
}

/* ---- moduledata --------------------------------------------------------------------- */

typedef struct Module {
	Elf *elf;
	const PclntabLocation *location;
	unsigned pointers; /* how many have been checked */
	uint64_t address;  /* SVMA; 0 = not found */
} Module;

/*
 * Returns whether moduledata begins at a pointer to the table: the pointer to the names follows it.
 */
static bool is_module(Module *module, uint64_t address)
{
	uint64_t names =
		module->location->address + word_at(module->location->bytes.at + HEADER_NAMES);

	return module->pointers++ < POINTERS_MAX &&
	       pointer_at(module->elf, address + WORD) == names;
}

static bool find_in_section(Module *module, const char *name)
{
	GElf_Shdr header;
	Elf_Data *data;

	if (!elf_section_data(elf_section_by_name(module->elf, name, &header), &data))
		return false;
	for (uint64_t at = 0; at + WORD <= data->d_size; at += WORD)
		if (word_at((const uint8_t *)data->d_buf + at) == module->location->address &&
		    is_module(module, header.sh_addr + at)) {
			module->address = header.sh_addr + at;
			return true;
		}
	return false;
}

static void find_module(Module *module)
{
	static const char *const sections[] = {".go.module", ".noptrdata", ".data", ".data.rel.ro"};
	Relocations relocations = {.elf = module->elf};
	Elf64_Rela relocation;

	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		if (find_in_section(module, sections[i]))
			return;
	while (!module->address && next_relative(&relocations, &relocation))
		if ((uint64_t)relocation.r_addend == module->location->address &&
		    is_module(module, relocation.r_offset))
			module->address = relocation.r_offset;
}

/* Returns a pointer in moduledata; 0 = unknown. */
static uint64_t module_pointer(const Module *module, unsigned word)
{
	return module->address ? pointer_at(module->elf, module->address + word * WORD) : 0;
}

/* Returns the address of the inlined calls; 0 = unknown. */
static uint64_t find_funcdata(const Module *module)
{
	const PclntabLocation *location = module->location;
	uint64_t begin, end;

	if (pclntab_is_118(location->bytes))
		return module_pointer(module, MODULE_FUNCDATA_118);
	begin = module_pointer(module, MODULE_FUNCDATA_127);
	end = module_pointer(module, MODULE_FUNCDATA_127 + 1);
	if (begin >= location->address && begin < end &&
	    end <= location->address + location->bytes.size)
		return begin;
	return module_pointer(module, MODULE_FUNCDATA);
}

/* ---- the table ------------------------------------------------------------------------ */

static bool locate_section(Elf *elf, const char *name, PclntabLocation *location)
{
	GElf_Shdr header;
	Elf_Data *data;

	if (!elf_section_data(elf_section_by_name(elf, name, &header), &data))
		return false;
	location->bytes = (PclntabBytes){data->d_buf, data->d_size};
	location->address = header.sh_addr;
	return true;
}

/* Searches inside of a section. */
static bool search_section(Elf *elf, const char *name, PclntabLocation *location)
{
	PclntabLocation section = {};

	if (!locate_section(elf, name, &section))
		return false;
	for (uint64_t at = 0; at + PCLNTAB_HEADER <= section.bytes.size; at += ALIGNMENT) {
		PclntabBytes rest = {section.bytes.at + at, section.bytes.size - at};

		if (!pclntab_begins(rest))
			continue;
		location->bytes = rest;
		location->address = section.address + at;
		return true;
	}
	return false;
}

static bool is_go(Elf *elf)
{
	GElf_Shdr header;

	return elf_section_by_name(elf, ".note.go.buildid", &header) ||
	       elf_section_by_name(elf, ".go.buildinfo", &header);
}

int pclntab_locate(Elf *elf, PclntabLocation *ret_place)
{
	PclntabLocation location = {};
	Module module = {.elf = elf, .location = &location};
	uint64_t funcdata;

	if (elf_file_is_32(elf))
		return -ENODATA;
	if (!locate_section(elf, ".gopclntab", &location) &&
	    !locate_section(elf, ".data.rel.ro.gopclntab", &location) &&
	    !(is_go(elf) && search_section(elf, ".data.rel.ro", &location)))
		return -ENODATA;
	if (!pclntab_begins(location.bytes))
		return -ENOTSUP;
	find_module(&module);
	location.text = pointer_at(elf, location.address + HEADER_TEXT);
	if (!location.text)
		location.text = module_pointer(&module, MODULE_TEXT);
	if (!location.text)
		return -ENOTSUP;
	funcdata = find_funcdata(&module);
	if (funcdata)
		location.funcdata = bytes_at(elf, funcdata);
	*ret_place = location;
	return 0;
}
