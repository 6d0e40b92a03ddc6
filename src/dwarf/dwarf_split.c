/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "dwarf_split.h"
#include "elf_decompress.h"
#include "elf_symbols.h"
#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

/* A .dwo file has several such sections if types are in sections of their own. */
#define INFOS_MAX 65536
/* Bytes of abbreviations: libdw takes some four times as much memory for what it has decoded. */
#define DECODED_MAX (16u << 20)

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

static void close_image(DwarfSplit *split)
{
	if (split->dwarf)
		dwarf_end(split->dwarf);
	elf_end(split->elf);
	free(split->image);
	map_free(&split->unit_of);
	vec_free(&split->units);
	split->dwarf = NULL;
	split->elf = NULL;
	split->image = NULL;
	split->info = split->abbrev = (DwarfSlice){};
}

/* libdw keeps the abbreviations that it has decoded, and decodes them again for each unit. */
static bool begin_libdw(DwarfSplit *split)
{
	if (split->dwarf)
		dwarf_end(split->dwarf);
	split->dwarf = dwarf_begin_elf(split->elf, DWARF_C_READ, NULL);
	split->decoded = 0;
	return split->dwarf;
}

/* Returns whether it is a unit of functions that has been split off. */
static bool read_id(Dwarf_Die *unit, uint16_t version, uint8_t type, uint64_t *id)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;

	if (dwarf_tag(unit) != DW_TAG_compile_unit)
		return false;
	if (version >= 5)
		return type == DW_UT_split_compile;
	if (!dwarf_attr(unit, DW_AT_GNU_dwo_id, &attribute) || dwarf_formudata(&attribute, &number))
		return false;
	*id = number;
	return true;
}

static void list_units(DwarfSplit *split)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Half version;
	Dwarf_Die die;
	uint8_t type;

	while (dwarf_get_units(split->dwarf, unit, &unit, &version, &type, &die, NULL) == 0) {
		DwarfSplitUnit found = {.offset = dwarf_dieoffset(&die), .version = version};
		uint64_t id = 0;

		if (dwarf_cu_info(unit, NULL, NULL, NULL, NULL, &id, &found.address_size,
				  &found.offset_size) ||
		    !read_id(&die, version, type, &id) || map_get(&split->unit_of, id) != MAP_NONE)
			continue;
		map_set(&split->unit_of, id, split->units.count);
		*vec_push(&split->units) = found;
	}
}

/* Returns whether a unit's header has the id; headers of DWARF 4 have none, so any may. */
static bool may_have(DwarfSlice info, uint64_t id)
{
	uint64_t at = 0;

	while (at < info.size) {
		CfiBytes bytes = dwarf_slice_bytes(info, at);
		uint64_t length = cfi_fixed(&bytes, 4);
		bool is_64 = length == DWARF_64;
		unsigned type;

		if (is_64)
			length = cfi_fixed(&bytes, 8);
		if (cfi_fixed(&bytes, 2) < 5)
			return !bytes.bad;
		type = cfi_u8(&bytes);
		cfi_u8(&bytes);			  /* the size of an address */
		cfi_fixed(&bytes, is_64 ? 8 : 4); /* the offset of its abbreviations */
		if (type == DW_UT_split_compile && cfi_fixed(&bytes, 8) == id && !bytes.bad)
			return true;
		if (bytes.bad || length > info.size)
			return false;
		at += length + (is_64 ? 12 : 4);
	}
	return false;
}

static bool same_slice(DwarfSlice a, DwarfSlice b)
{
	return a.data == b.data && a.size == b.size;
}

/* The image stays, for the next units of the same file. */
static bool open_image(DwarfSplit *split, const DwarfParts *parts)
{
	if (split->image && same_slice(split->info, parts->info) &&
	    same_slice(split->abbrev, parts->abbrev))
		return true;
	if (!parts->info.size || !parts->abbrev.size || !may_have(parts->info, split->id))
		return false;
	close_image(split);
	split->info = parts->info;
	split->abbrev = parts->abbrev;
	build_image(split);
	if (elf_file_open_image(split->image, split->image_size, &split->elf) == 0 &&
	    begin_libdw(split)) {
		list_units(split);
		return true;
	}
	close_image(split);
	return false;
}

/* Opens the unit with the wanted id among the entries. */
static bool open_entries(DwarfSplit *split, const DwarfParts *parts, Dwarf_Die *ret_unit)
{
	const DwarfSplitUnit *unit;
	uint32_t number;

	if (!open_image(split, parts))
		return false;
	number = map_get(&split->unit_of, split->id);
	if (number == MAP_NONE)
		return false;
	unit = &split->units.items[number];
	if (unit->version != split->version || (unit->address_size != 4 && unit->address_size != 8))
		return false;
	if (split->decoded > DECODED_MAX && !begin_libdw(split))
		return false;
	split->decoded += parts->abbrev.size;
	split->address_size = unit->address_size;
	split->offset_size = unit->offset_size;
	split->strings = parts->strings;
	split->string_offsets = parts->string_offsets;
	split->range_lists = parts->range_lists;
	split->is_whole = parts->is_whole;
	return dwarf_offdie(split->dwarf, unit->offset, ret_unit);
}

/* ---- .dwo -------------------------------------------------------------- */

static bool open_in_dwo(DwarfSplit *split, Dwarf_Die *ret_unit)
{
	Elf *elf = split->dwo.elf;
	Elf_Scn *section = NULL;
	DwarfParts parts = {.is_whole = true};
	unsigned infos = 0;
	GElf_Shdr header;
	size_t strings;

	if (!elf || elf_getshdrstrndx(elf, &strings))
		return false;
	parts.abbrev = find_slice(elf, ".debug_abbrev.dwo");
	parts.strings = find_slice(elf, ".debug_str.dwo");
	parts.string_offsets = find_slice(elf, ".debug_str_offsets.dwo");
	parts.range_lists = find_slice(elf, ".debug_rnglists.dwo");
	while (infos < INFOS_MAX && (section = elf_nextscn(elf, section))) {
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(elf, strings, header.sh_name)
					   : NULL;

		if (!name || strcmp(name, ".debug_info.dwo"))
			continue;
		infos++;
		parts.info = slice_of(section);
		if (open_entries(split, &parts, ret_unit))
			return true;
	}
	return false;
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
	split->low_pc = dwarf_lowpc(skeleton, &low_pc) == 0 ? low_pc : split->unit_begin;
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

/* ---- finding the files ------------------------------------------------- */

static void close_dwo(DwarfSplit *split)
{
	close_image(split);
	elf_map_close(&split->dwo);
}

/*
 * Opens the unit in its .dwo file. A path may lead to a file of another build, so all candidates
 * are tried; of units in a file of the same name only the first one's, because that would take the
 * square of their number.
 */
static int open_dwo(DwarfSplit *split, Companion *companion, Dwarf_Die *ret_unit)
{
	int result = -ENOENT;

	if (split->companion && !strcmp(split->companion->name, companion->name)) {
		free(companion);
		return open_in_dwo(split, ret_unit) ? 1 : split->dwo.elf ? -ESTALE : -ENOENT;
	}
	free(split->companion);
	split->companion = companion;
	close_dwo(split);
	for (unsigned i = 0; i < COMPANION_CANDIDATES; i++) {
		ElfMap file;

		companion->candidate = i;
		if (open_file(split->find(split->user, companion), &file))
			continue;
		close_dwo(split);
		split->dwo = file;
		if (open_in_dwo(split, ret_unit))
			return 1;
		result = -ESTALE;
	}
	return result;
}

static void close_package(PackageFile *package)
{
	dwarf_package_close(&package->index);
	elf_map_close(&package->file);
}

/*
 * Opens the first candidate that has the unit, or if none has, the first that can be read: a
 * package may lack some units.
 */
static void open_package(DwarfSplit *split)
{
	_cleanup_free_ Companion *companion = xcalloc(1, sizeof(*companion));

	split->package_error = -ENOENT;
	companion->kind = COMPANION_DWP;
	for (unsigned i = 0; i < COMPANION_CANDIDATES; i++) {
		PackageFile package = {};
		DwarfParts parts;
		int fd;

		companion->candidate = i;
		fd = split->find(split->user, companion);
		if (fd < 0)
			continue;
		if (open_file(fd, &package.file) ||
		    dwarf_package_open(package.file.elf, &package.index)) {
			close_package(&package);
			split->package_error = -EBADMSG;
			continue;
		}
		if (dwarf_package_find(&package.index, split->id, &parts)) {
			close_package(&split->package);
			split->package = package;
			break;
		}
		if (split->package.file.elf)
			close_package(&package);
		else
			split->package = package;
	}
	if (split->package.file.elf)
		split->package_error = -ESTALE;
}

static bool open_in_package(DwarfSplit *split, Dwarf_Die *ret_unit)
{
	DwarfParts parts;

	return dwarf_package_find(&split->package.index, split->id, &parts) &&
	       open_entries(split, &parts, ret_unit);
}

enum dwarf_split_result dwarf_split_open(DwarfSplit *split, Dwarf_Die *skeleton,
					 Dwarf_Die *ret_unit, const char **ret_name)
{
	Companion *companion = xcalloc(1, sizeof(*companion));
	int r;

	if (!read_name(split, skeleton, companion)) {
		free(companion);
		return DWARF_SPLIT_NONE;
	}
	read_skeleton(split, skeleton);
	if (!split->package_error)
		open_package(split);
	if (open_in_package(split, ret_unit)) {
		free(companion);
		return DWARF_SPLIT_OPEN;
	}
	r = open_dwo(split, companion, ret_unit);
	*ret_name = split->companion->name;
	if (r > 0)
		return DWARF_SPLIT_OPEN;
	if (r == -ESTALE)
		return DWARF_SPLIT_OTHER_FILE;
	if (split->package_error == -ESTALE)
		return DWARF_SPLIT_OTHER_PACKAGE;
	return split->package_error == -EBADMSG ? DWARF_SPLIT_DAMAGED_PACKAGE : DWARF_SPLIT_NO_FILE;
}

void dwarf_split_close(DwarfSplit *split)
{
	close_dwo(split);
	close_package(&split->package);
	free(split->companion);
	split->companion = NULL;
}
