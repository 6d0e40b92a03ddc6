/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "dwarf_package.h"
#include "elf_symbols.h"
#include <errno.h>

/* The columns of the index that are needed; the numbers of DWARF 5 and of the GNU form. */
enum column { COLUMN_INFO = 1, COLUMN_ABBREV = 3, COLUMN_STRING_OFFSETS = 6, COLUMN_RANGES = 8 };

#define INDEX_HEADER 16
#define COLUMNS_MAX  16
#define NO_GROUP     UINT32_MAX

/* ---- the index ------------------------------------------------------------- */

static DwarfSlice find_section(Elf *elf, const char *name)
{
	GElf_Shdr header;
	Elf_Data *data;

	if (!elf_section_data(elf_section_by_name(elf, name, &header), &data))
		return (DwarfSlice){};
	return (DwarfSlice){data->d_buf, data->d_size};
}

static bool read_header(DwarfPackage *package, DwarfSlice slice)
{
	CfiBytes bytes = dwarf_slice_bytes(slice, 0);
	uint64_t size;

	package->index = slice;
	/* DWARF 5 has two bytes of version and two of padding. */
	package->version = cfi_fixed(&bytes, 4) & 0xffff;
	package->columns = cfi_fixed(&bytes, 4);
	package->units = cfi_fixed(&bytes, 4);
	package->slots = cfi_fixed(&bytes, 4);
	if (bytes.bad || (package->version != 2 && package->version != 5) ||
	    package->columns == 0 || package->columns > COLUMNS_MAX)
		return false;
	size = INDEX_HEADER + 12ULL * package->slots + 4ULL * package->columns +
	       8ULL * package->columns * package->units;
	return package->slots > 0 && !(package->slots & (package->slots - 1)) && size <= slice.size;
}

/* Returns the row of the unit's id in the hash table, from 1 on, or 0. */
static uint32_t find_row(const DwarfPackage *package, uint64_t id)
{
	uint64_t mask = package->slots - 1, at = id & mask, step = ((id >> 32) & mask) | 1;
	uint64_t rows = INDEX_HEADER + 8ULL * package->slots;

	for (uint32_t tries = 0; tries < package->slots; tries++) {
		CfiBytes signature = dwarf_slice_bytes(package->index, INDEX_HEADER + 8 * at);
		CfiBytes number = dwarf_slice_bytes(package->index, rows + 4 * at);
		uint64_t found = cfi_fixed(&signature, 8);
		uint32_t row = cfi_fixed(&number, 4);

		if (signature.bad || number.bad || row == 0 || row > package->units)
			return 0;
		if (found == id)
			return row;
		at = (at + step) & mask;
	}
	return 0;
}

typedef struct Extent {
	uint64_t start, size;
} Extent;

/* Returns the place of the row's part in the section of that column; its size is 0 if none. */
static Extent part_of(const DwarfPackage *package, uint32_t row, enum column wanted)
{
	uint64_t columns = INDEX_HEADER + 12ULL * package->slots;
	uint64_t width = 4ULL * package->columns;

	for (uint32_t i = 0; i < package->columns; i++) {
		CfiBytes column = dwarf_slice_bytes(package->index, columns + 4 * i);
		CfiBytes start = dwarf_slice_bytes(package->index, columns + row * width + 4 * i);
		CfiBytes size = dwarf_slice_bytes(
			package->index, columns + (package->units + (uint64_t)row) * width + 4 * i);
		Extent extent;

		if (cfi_fixed(&column, 4) != wanted)
			continue;
		extent.start = cfi_fixed(&start, 4);
		extent.size = cfi_fixed(&size, 4);
		return column.bad || start.bad || size.bad ? (Extent){} : extent;
	}
	return (Extent){};
}

static DwarfSlice slice_of(const DwarfPackage *package, uint32_t row, enum column column,
			   DwarfSlice section)
{
	Extent part = part_of(package, row, column);

	return dwarf_slice_part(section, part.start, part.size);
}

/* ---- groups ---------------------------------------------------------------- */

/* A unit, and where its parts are. */
typedef struct Member {
	Extent abbrev, info;
	uint32_t row; /* 0: of a type unit */
} Member;
typedef VEC(Member) Members;

static void add_members(Members *members, const DwarfPackage *package, bool are_types)
{
	for (uint32_t row = 1; row <= package->units; row++)
		*vec_push(members) = (Member){
			.abbrev = part_of(package, row, COLUMN_ABBREV),
			.info = part_of(package, row, COLUMN_INFO),
			.row = are_types ? 0 : row,
		};
}

/* In DWARF 4 types are in a section of their own. */
static void add_types(Members *members, Elf *elf, const DwarfPackage *package)
{
	DwarfPackage types = {};

	if (package->version == 5 && read_header(&types, find_section(elf, ".debug_tu_index")))
		add_members(members, &types, /* are_types= */ true);
}

static int compare_members(const void *a, const void *b)
{
	const Member *x = a, *y = b;

	if (x->abbrev.start != y->abbrev.start)
		return x->abbrev.start < y->abbrev.start ? -1 : 1;
	if (x->info.start != y->info.start)
		return x->info.start < y->info.start ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

/* The members come from one .dwo file, and are sorted by the start of their entries. */
static void add_group(DwarfPackage *package, const Member *members, size_t count)
{
	DwarfPackageGroup group = {};
	bool is_empty = true;

	for (size_t i = 0; i < count; i++) {
		const Extent *info = &members[i].info;

		if (members[i].row == 0) {
			group.has_types = true;
			continue;
		}
		package->group_of.items[members[i].row - 1] = package->groups.count;
		if (is_empty)
			group.start = group.end = info->start;
		group.has_gap |= info->start > group.end;
		group.end = MAX(group.end, info->start + info->size);
		is_empty = false;
	}
	if (!is_empty)
		*vec_push(&package->groups) = group;
}

static void make_groups(DwarfPackage *package, Elf *elf)
{
	Members members = {};

	for (uint32_t i = 0; i < package->units; i++)
		*vec_push(&package->group_of) = NO_GROUP;
	add_members(&members, package, /* are_types= */ false);
	add_types(&members, elf, package);
	if (members.count)
		qsort(members.items, members.count, sizeof(Member), compare_members);
	for (size_t i = 0, next; i < members.count; i = next) {
		for (next = i + 1; next < members.count; next++)
			if (members.items[next].abbrev.start != members.items[i].abbrev.start)
				break;
		add_group(package, members.items + i, next - i);
	}
	vec_free(&members);
}

/* ---- interface ------------------------------------------------------------- */

int dwarf_package_open(Elf *elf, DwarfPackage *ret_package)
{
	*ret_package = (DwarfPackage){};
	if (!read_header(ret_package, find_section(elf, ".debug_cu_index"))) {
		*ret_package = (DwarfPackage){};
		return -EBADMSG;
	}
	ret_package->info = find_section(elf, ".debug_info.dwo");
	ret_package->abbrev = find_section(elf, ".debug_abbrev.dwo");
	ret_package->string_offsets = find_section(elf, ".debug_str_offsets.dwo");
	ret_package->range_lists = find_section(elf, ".debug_rnglists.dwo");
	ret_package->strings = find_section(elf, ".debug_str.dwo");
	make_groups(ret_package, elf);
	return 0;
}

bool dwarf_package_find(const DwarfPackage *package, uint64_t id, DwarfParts *ret_parts)
{
	uint32_t row = package->index.data ? find_row(package, id) : 0;
	const DwarfPackageGroup *group;

	*ret_parts = (DwarfParts){};
	if (row == 0)
		return false;
	ret_parts->info = slice_of(package, row, COLUMN_INFO, package->info);
	ret_parts->abbrev = slice_of(package, row, COLUMN_ABBREV, package->abbrev);
	ret_parts->string_offsets =
		slice_of(package, row, COLUMN_STRING_OFFSETS, package->string_offsets);
	/* In the GNU form that column has macros. */
	if (package->version == 5)
		ret_parts->range_lists =
			slice_of(package, row, COLUMN_RANGES, package->range_lists);
	ret_parts->strings = package->strings;
	group = &package->groups.items[package->group_of.items[row - 1]];
	if (!group->has_gap) {
		ret_parts->info =
			dwarf_slice_part(package->info, group->start, group->end - group->start);
		ret_parts->is_whole = !group->has_types;
	}
	return true;
}

void dwarf_package_close(DwarfPackage *package)
{
	vec_free(&package->groups);
	vec_free(&package->group_of);
	*package = (DwarfPackage){};
}
