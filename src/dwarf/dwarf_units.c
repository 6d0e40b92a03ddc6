/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "dwarf_units.h"
#include "dwarf_slice.h"
#include "elf_symbols.h"
#include <dwarf.h>

/* The number of ranges that a search goes back for one that contains others. */
#define NESTED_MAX 16
/* libdw keeps all lines that it has decoded, so it is started again after so many. */
#define LINES_MAX 400000

/* A unit with ranges relative to where it begins, which does not say where that is. */
typedef struct Unbased {
	uint32_t unit;
	uint64_t size;
} Unbased;

typedef struct Reader {
	DwarfUnits *units;
	DwarfSlice range_lists;
	VEC(Unbased) unbased;
} Reader;

/* Returns a reader of the unit's list of ranges, which it names by its number. */
static CfiBytes list_of(const Reader *reader, Dwarf_Die *unit)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number, base;
	uint8_t offset_size;
	CfiBytes bytes = {.bad = true};
	uint64_t offset;

	if (!dwarf_attr(unit, DW_AT_ranges, &attribute) || attribute.form != DW_FORM_rnglistx ||
	    dwarf_formudata(&attribute, &number) || number > reader->range_lists.size ||
	    !dwarf_attr(unit, DW_AT_rnglists_base, &attribute) ||
	    dwarf_formudata(&attribute, &base) || base > reader->range_lists.size ||
	    dwarf_cu_info(unit->cu, NULL, NULL, NULL, NULL, NULL, NULL, &offset_size))
		return bytes;
	bytes = dwarf_slice_bytes(reader->range_lists, base + number * offset_size);
	offset = cfi_fixed(&bytes, offset_size);
	return bytes.bad || offset > reader->range_lists.size
		       ? (CfiBytes){.bad = true}
		       : dwarf_slice_bytes(reader->range_lists, base + offset);
}

/*
 * clang 15 and later writes a unit's only range as an offset from the unit's own start, and no
 * DW_AT_low_pc that would say where that is: in split debug information of a module with several
 * units whose functions are in one section. By DWARF 5, section 2.17.3, the range would begin at 0.
 * Returns the size of such a range, or 0.
 */
static uint64_t unbased_size(const Reader *reader, Dwarf_Die *unit)
{
	CfiBytes bytes = list_of(reader, unit);
	uint64_t start, size;

	if (bytes.bad || dwarf_hasattr(unit, DW_AT_low_pc) || cfi_u8(&bytes) != DW_RLE_offset_pair)
		return 0;
	start = cfi_uleb(&bytes);
	size = cfi_uleb(&bytes);
	return start == 0 && cfi_u8(&bytes) == DW_RLE_end_of_list && !bytes.bad ? size : 0;
}

static void add_range(DwarfUnits *units, uint32_t unit, uint64_t start, uint64_t end)
{
	if (start && start < end) /* 0: the linker dropped the function */
		*vec_push(&units->ranges) = (DwarfUnitRange){start, end, unit};
}

static void add_unit(Reader *reader, Dwarf_Die *die)
{
	uint32_t unit = reader->units->units.count;
	uint64_t size = unbased_size(reader, die);
	Dwarf_Addr base, start, end;
	ptrdiff_t position = 0;

	*vec_push(&reader->units->units) = (DwarfUnit){.die = dwarf_dieoffset(die)};
	if (size > 0)
		*vec_push(&reader->unbased) = (Unbased){unit, size};
	while ((position = dwarf_ranges(die, position, &base, &start, &end)) > 0)
		add_range(reader->units, unit, start, end);
}

/* ---- units that do not say where they begin ---------------------------------- */

/* Returns the start of the only sequence of lines that has this size, or 0. */
static uint64_t start_of_lines(Dwarf_Lines *lines, size_t count, uint64_t size)
{
	uint64_t found = 0, start = 0;
	bool is_first = true;

	for (size_t i = 0; i < count; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		Dwarf_Addr address;
		bool is_end;

		if (dwarf_lineaddr(line, &address) || dwarf_lineendsequence(line, &is_end))
			return 0;
		if (is_first)
			start = address;
		if (is_end && !is_first && address - start == size) {
			if (found)
				return 0;
			found = start;
		}
		is_first = is_end;
	}
	return found;
}

/* The lines of a unit lie where its code lies, and there are as many bytes of both. */
static void find_begins(Reader *reader, Elf *elf)
{
	Dwarf *dwarf = NULL;
	size_t decoded = 0;

	for (size_t i = 0; i < reader->unbased.count; i++) {
		const Unbased *unbased = &reader->unbased.items[i];
		DwarfUnit *unit = &reader->units->units.items[unbased->unit];
		Dwarf_Lines *lines;
		Dwarf_Die die;
		size_t count;

		if (!dwarf)
			dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
		if (!dwarf || !dwarf_offdie(dwarf, unit->die, &die) ||
		    dwarf_getsrclines(&die, &lines, &count))
			continue;
		unit->begin = start_of_lines(lines, count, unbased->size);
		add_range(reader->units, unbased->unit, unit->begin, unit->begin + unbased->size);
		decoded += count;
		if (decoded > LINES_MAX) {
			dwarf_end(dwarf);
			dwarf = NULL;
			decoded = 0;
		}
	}
	if (dwarf)
		dwarf_end(dwarf);
}

/* ---- interface ---------------------------------------------------------------- */

static int compare_ranges(const void *a, const void *b)
{
	const DwarfUnitRange *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

bool dwarf_units_read(DwarfUnits *ret_units, Elf *elf, Dwarf *dwarf)
{
	Reader reader = {.units = ret_units};
	Dwarf_CU *unit = NULL;
	GElf_Shdr header;
	Elf_Data *data;
	Dwarf_Die die;
	int r;

	*ret_units = (DwarfUnits){};
	if (elf_section_data(elf_section_by_name(elf, ".debug_rnglists", &header), &data))
		reader.range_lists = (DwarfSlice){data->d_buf, data->d_size};
	while ((r = dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL)) == 0)
		if (dwarf_tag(&die) == DW_TAG_compile_unit ||
		    dwarf_tag(&die) == DW_TAG_skeleton_unit)
			add_unit(&reader, &die);
	find_begins(&reader, elf);
	if (ret_units->ranges.count)
		qsort(ret_units->ranges.items, ret_units->ranges.count, sizeof(DwarfUnitRange),
		      compare_ranges);
	vec_free(&reader.unbased);
	return r > 0;
}

uint32_t dwarf_units_find(const DwarfUnits *units, uint64_t address)
{
	const DwarfUnitRange *ranges = units->ranges.items;
	size_t next = partition_point(middle, units->ranges.count, ranges[middle].start <= address);

	for (size_t back = 0; back < MIN(next, (size_t)NESTED_MAX); back++)
		if (address < ranges[next - 1 - back].end)
			return ranges[next - 1 - back].unit;
	return DWARF_UNIT_NONE;
}

void dwarf_units_free(DwarfUnits *units)
{
	vec_free(&units->units);
	vec_free(&units->ranges);
}
