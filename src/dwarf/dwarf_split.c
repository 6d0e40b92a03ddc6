/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "dwarf_split.h"
#include "elf_decompress.h"
#include "elf_symbols.h"
#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

/* A .dwo file has several such sections if types are in sections of their own. */
#define INFOS_MAX 256

/* ---- sections ---------------------------------------------------------- */

static DwarfSlice slice_of(Elf_Scn *section)
{
	Elf_Data *data;

	if (!elf_section_data(section, &data))
		return (DwarfSlice){};
	return (DwarfSlice){data->d_buf, data->d_size};
}

static DwarfSlice find_slice(Elf *elf, const char *name)
{
	GElf_Shdr header;

	return slice_of(elf_section_by_name(elf, name, &header));
}

/* What else the file has (locations, macros) may be as large again, and is not needed. */
static void decompress(ElfMap *file)
{
	static const char *const names[] = {
		".debug_info.dwo",	  ".debug_abbrev.dwo",	 ".debug_str.dwo",
		".debug_str_offsets.dwo", ".debug_rnglists.dwo", ".debug_cu_index",
	};
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t strings;

	if (elf_getshdrstrndx(file->elf, &strings))
		return;
	while ((section = elf_nextscn(file->elf, section))) {
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(file->elf, strings, header.sh_name)
					   : NULL;

		for (size_t i = 0; name && i < ARRAY_LEN(names); i++)
			if (!strcmp(name, names[i]))
				elf_decompress(file, section);
	}
}

/* fd is closed. */
static int open_file(int fd, ElfMap *file)
{
	int r = fd < 0 ? fd : elf_map_open(fd, file);

	closep(&fd);
	if (r == 0)
		decompress(file);
	return r;
}

/* ---- a unit's entries, for libdw --------------------------------------- */

static const char image_names[] = "\0.debug_info\0.debug_abbrev\0.shstrtab";

static Elf64_Shdr image_section(const char *name, uint32_t type, uint64_t offset, uint64_t size)
{
	uint32_t at = 0;

	while (strcmp(image_names + at, name))
		at += strlen(image_names + at) + 1;
	return (Elf64_Shdr){.sh_name = at,
			    .sh_type = type,
			    .sh_offset = offset,
			    .sh_size = size,
			    .sh_addralign = 1};
}

static void build_image(DwarfSplit *split)
{
	uint64_t info = sizeof(Elf64_Ehdr), abbrev = info + split->info.size;
	uint64_t names = abbrev + split->abbrev.size;
	uint64_t headers = (names + sizeof(image_names) + 7) & ~7UL;
	Elf64_Shdr sections[] = {
		{},
		image_section(".debug_info", SHT_PROGBITS, info, split->info.size),
		image_section(".debug_abbrev", SHT_PROGBITS, abbrev, split->abbrev.size),
		image_section(".shstrtab", SHT_STRTAB, names, sizeof(image_names)),
	};
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_REL,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_shoff = headers,
		.e_ehsize = sizeof(header),
		.e_shentsize = sizeof(sections[0]),
		.e_shnum = ARRAY_LEN(sections),
		.e_shstrndx = ARRAY_LEN(sections) - 1,
	};

	split->image_size = headers + sizeof(sections);
	split->image = xcalloc(split->image_size, 1);
	memcpy(split->image, &header, sizeof(header));
	memcpy(split->image + info, split->info.data, split->info.size);
	memcpy(split->image + abbrev, split->abbrev.data, split->abbrev.size);
	memcpy(split->image + names, image_names, sizeof(image_names));
	memcpy(split->image + headers, sections, sizeof(sections));
}

static void close_unit(DwarfSplit *split)
{
	if (split->dwarf)
		dwarf_end(split->dwarf);
	elf_end(split->elf);
	free(split->image);
	split->dwarf = NULL;
	split->elf = NULL;
	split->image = NULL;
}

static bool is_wanted(const DwarfSplit *split, Dwarf_Die *die, uint8_t type, uint16_t version,
		      uint64_t id)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;

	if (dwarf_tag(die) != DW_TAG_compile_unit || version != split->version ||
	    (split->address_size != 4 && split->address_size != 8))
		return false;
	if (version >= 5)
		return type == DW_UT_split_compile && id == split->id;
	return dwarf_attr(die, DW_AT_GNU_dwo_id, &attribute) &&
	       !dwarf_formudata(&attribute, &number) && number == split->id;
}

/* Opens the unit with the wanted id among the entries. */
static bool open_entries(DwarfSplit *split, Dwarf_Die *ret_unit)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Half version;
	uint8_t type;

	if (!split->info.size || !split->abbrev.size)
		return false;
	build_image(split);
	if (elf_file_open_image(split->image, split->image_size, &split->elf) == 0)
		split->dwarf = dwarf_begin_elf(split->elf, DWARF_C_READ, NULL);
	while (split->dwarf &&
	       dwarf_get_units(split->dwarf, unit, &unit, &version, &type, ret_unit, NULL) == 0) {
		uint64_t id = 0;

		if (dwarf_cu_info(unit, NULL, NULL, NULL, NULL, &id, &split->address_size,
				  &split->offset_size) == 0 &&
		    is_wanted(split, ret_unit, type, version, id))
			return true;
	}
	close_unit(split);
	return false;
}

/* ---- .dwo -------------------------------------------------------------- */

static bool open_in_dwo(DwarfSplit *split, Dwarf_Die *ret_unit)
{
	Elf *elf = split->dwo.elf;
	Elf_Scn *section = NULL;
	unsigned infos = 0;
	GElf_Shdr header;
	size_t strings;

	if (!elf || elf_getshdrstrndx(elf, &strings))
		return false;
	split->abbrev = find_slice(elf, ".debug_abbrev.dwo");
	split->strings = find_slice(elf, ".debug_str.dwo");
	split->string_offsets = find_slice(elf, ".debug_str_offsets.dwo");
	split->range_lists = find_slice(elf, ".debug_rnglists.dwo");
	while (infos < INFOS_MAX && (section = elf_nextscn(elf, section))) {
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(elf, strings, header.sh_name)
					   : NULL;

		if (!name || strcmp(name, ".debug_info.dwo"))
			continue;
		infos++;
		split->info = slice_of(section);
		if (open_entries(split, ret_unit))
			return true;
	}
	return false;
}

/* ---- .dwp -------------------------------------------------------------- */

/* The columns of the index that are needed; the numbers of DWARF 5 and of the GNU form. */
enum column { COLUMN_INFO = 1, COLUMN_ABBREV = 3, COLUMN_STRING_OFFSETS = 6, COLUMN_RANGES = 8 };

typedef struct Index {
	DwarfSlice slice;
	uint32_t version, columns, units, slots;
} Index;

#define INDEX_HEADER 16

static bool read_index(const DwarfSplit *split, Index *index)
{
	CfiBytes bytes;

	index->slice = find_slice(split->dwp.elf, ".debug_cu_index");
	bytes = dwarf_slice_bytes(index->slice, 0);
	/* DWARF 5 has two bytes of version and two of padding. */
	index->version = cfi_fixed(&bytes, 4) & 0xffff;
	index->columns = cfi_fixed(&bytes, 4);
	index->units = cfi_fixed(&bytes, 4);
	index->slots = cfi_fixed(&bytes, 4);
	return !bytes.bad && (index->version == 2 || index->version == 5) && index->slots > 0 &&
	       !(index->slots & (index->slots - 1)) && index->columns <= 16;
}

/* Returns the row of the unit's id in the hash table, from 1 on, or 0. */
static uint32_t find_row(const Index *index, uint64_t id)
{
	uint64_t mask = index->slots - 1, at = id & mask, step = ((id >> 32) & mask) | 1;
	uint64_t rows = INDEX_HEADER + 8ULL * index->slots;

	for (uint32_t tries = 0; tries < index->slots; tries++) {
		CfiBytes signature = dwarf_slice_bytes(index->slice, INDEX_HEADER + 8 * at);
		CfiBytes number = dwarf_slice_bytes(index->slice, rows + 4 * at);
		uint64_t found = cfi_fixed(&signature, 8);
		uint32_t row = cfi_fixed(&number, 4);

		if (signature.bad || number.bad || row == 0 || row > index->units)
			return 0;
		if (found == id)
			return row;
		at = (at + step) & mask;
	}
	return 0;
}

/* Returns the row's part of a section. */
static DwarfSlice contribution(const DwarfSplit *split, const Index *index, uint32_t row,
			       enum column wanted, const char *section)
{
	uint64_t columns = INDEX_HEADER + 12ULL * index->slots;
	uint64_t width = 4ULL * index->columns;

	for (uint32_t i = 0; i < index->columns; i++) {
		CfiBytes column = dwarf_slice_bytes(index->slice, columns + 4 * i);
		CfiBytes offset = dwarf_slice_bytes(index->slice, columns + row * width + 4 * i);
		CfiBytes size = dwarf_slice_bytes(
			index->slice, columns + (index->units + (uint64_t)row) * width + 4 * i);
		uint64_t from, length;

		if (cfi_fixed(&column, 4) != wanted)
			continue;
		from = cfi_fixed(&offset, 4);
		length = cfi_fixed(&size, 4);
		if (column.bad || offset.bad || size.bad)
			break;
		return dwarf_slice_part(find_slice(split->dwp.elf, section), from, length);
	}
	return (DwarfSlice){};
}

static bool open_in_dwp(DwarfSplit *split, Dwarf_Die *ret_unit)
{
	Index index;
	uint32_t row;

	if (!split->dwp.elf || !read_index(split, &index))
		return false;
	row = find_row(&index, split->id);
	if (!row)
		return false;
	split->info = contribution(split, &index, row, COLUMN_INFO, ".debug_info.dwo");
	split->abbrev = contribution(split, &index, row, COLUMN_ABBREV, ".debug_abbrev.dwo");
	split->string_offsets =
		contribution(split, &index, row, COLUMN_STRING_OFFSETS, ".debug_str_offsets.dwo");
	/* In the GNU form that column has macros. */
	split->range_lists = index.version == 5 ? contribution(split, &index, row, COLUMN_RANGES,
							       ".debug_rnglists.dwo")
						: (DwarfSlice){};
	split->strings = find_slice(split->dwp.elf, ".debug_str.dwo");
	return open_entries(split, ret_unit);
}

/* ---- from the skeleton ------------------------------------------------- */

static uint64_t number_of(Dwarf_Die *die, unsigned name, unsigned gnu_name, uint64_t otherwise)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if ((dwarf_attr(die, name, &attribute) || dwarf_attr(die, gnu_name, &attribute)) &&
	    dwarf_formudata(&attribute, &value) == 0)
		return value;
	return otherwise;
}

static void read_skeleton(DwarfSplit *split, Dwarf_Die *skeleton)
{
	Elf *elf = split->file->elf;
	Dwarf_Addr low_pc;
	Dwarf_Half version = 0;

	dwarf_cu_info(skeleton->cu, &version, NULL, NULL, NULL, &split->id, NULL, NULL);
	split->version = version;
	if (version < 5)
		split->id = number_of(skeleton, DW_AT_GNU_dwo_id, DW_AT_GNU_dwo_id, 0);
	/* DWARF 5 has a header of 8 bytes before the addresses. */
	split->address_base =
		number_of(skeleton, DW_AT_addr_base, DW_AT_GNU_addr_base, version >= 5 ? 8 : 0);
	split->ranges_base = number_of(skeleton, DW_AT_GNU_ranges_base, DW_AT_GNU_ranges_base, 0);
	split->low_pc = dwarf_lowpc(skeleton, &low_pc) == 0 ? low_pc : 0;
	split->addresses = find_slice(elf, ".debug_addr");
	split->ranges = find_slice(elf, ".debug_ranges");
}

/*
 * The name of the .dwo file is relative to the folder that the compiler ran in. companion->tail
 * leads to the part of it that a file beside the program has.
 */
static bool read_name(const DwarfSplit *split, Dwarf_Die *skeleton, Companion *companion)
{
	Dwarf_Attribute attribute;
	const char *name = NULL, *folder = NULL;
	int length;

	if (dwarf_attr(skeleton, DW_AT_dwo_name, &attribute) ||
	    dwarf_attr(skeleton, DW_AT_GNU_dwo_name, &attribute))
		name = dwarf_sections_string(split->sections, dwarf_formstring(&attribute));
	if (!name || !*name)
		return false;
	if (*name != '/' && dwarf_attr(skeleton, DW_AT_comp_dir, &attribute))
		folder = dwarf_sections_string(split->sections, dwarf_formstring(&attribute));
	memset(companion, 0, sizeof(*companion));
	companion->kind = COMPANION_DWO;
	length = folder && *folder
			 ? snprintf(companion->name, sizeof(companion->name), "%s/%s", folder, name)
			 : snprintf(companion->name, sizeof(companion->name), "%s", name);
	if (length < 0 || (size_t)length >= sizeof(companion->name))
		return false;
	companion->tail = length - strlen(name);
	return true;
}

/* Opens the .dwo file, unless it is the one that is open already: several units can share one. */
static int open_dwo(DwarfSplit *split, Companion *companion)
{
	if (split->dwo.elf && split->companion && !strcmp(split->companion->name, companion->name))
		return 0;
	elf_map_close(&split->dwo);
	return open_file(split->find(split->user, companion), &split->dwo);
}

static void open_dwp(DwarfSplit *split)
{
	_cleanup_free_ Companion *companion = NULL;

	if (split->sought_dwp)
		return;
	split->sought_dwp = true;
	companion = xcalloc(1, sizeof(*companion));
	companion->kind = COMPANION_DWP;
	open_file(split->find(split->user, companion), &split->dwp);
}

int dwarf_split_open(DwarfSplit *split, Dwarf_Die *skeleton, Dwarf_Die *ret_unit,
		     const char **ret_name)
{
	_cleanup_free_ Companion *companion = xcalloc(1, sizeof(*companion));
	int r;

	close_unit(split);
	if (!read_name(split, skeleton, companion))
		return 0;
	read_skeleton(split, skeleton);
	open_dwp(split);
	if (open_in_dwp(split, ret_unit))
		return 1;
	r = open_dwo(split, companion);
	free(split->companion);
	split->companion = take_pointer(companion);
	*ret_name = split->companion->name;
	if (r < 0)
		return -ENOENT;
	return open_in_dwo(split, ret_unit) ? 1 : -ESTALE;
}

void dwarf_split_close(DwarfSplit *split)
{
	close_unit(split);
	elf_map_close(&split->dwp);
	elf_map_close(&split->dwo);
	free(split->companion);
	split->companion = NULL;
}
