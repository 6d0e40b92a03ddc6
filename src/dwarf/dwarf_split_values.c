/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dwarf_split_values.c - what the entries of a split unit refer to: addresses, strings, ranges. */
#include "dwarf_split.h"
#include <dwarf.h>
#include <elf.h>
#include <string.h>

/* No compiler makes a list with so many ranges. */
#define RANGES_MAX 65536u

/* ---- what entries refer to --------------------------------------------- */

/* Returns the bytes of an attribute's value, to the end of the entries. */
static CfiBytes value_of(const DwarfSplit *split, const Dwarf_Attribute *attribute)
{
	const uint8_t *start = split->image + sizeof(Elf64_Ehdr), *end = start + split->info.size;
	bool inside = attribute->valp >= start && attribute->valp < end;

	return (CfiBytes){.at = inside ? attribute->valp : end, .end = end, .bad = !inside};
}

/* Reads the number of an entry in a table of addresses or strings. */
static uint64_t read_number(CfiBytes *bytes, unsigned form)
{
	/* The names of these forms end in the number of bytes. */
	if (form >= DW_FORM_strx1 && form <= DW_FORM_strx4)
		return cfi_fixed(bytes, form - DW_FORM_strx1 + 1);
	if (form >= DW_FORM_addrx1 && form <= DW_FORM_addrx4)
		return cfi_fixed(bytes, form - DW_FORM_addrx1 + 1);
	return cfi_uleb(bytes);
}

static bool read_address(const DwarfSplit *split, uint64_t number, uint64_t *ret_address)
{
	CfiBytes bytes;

	if (number > split->addresses.size / split->address_size ||
	    split->address_base > split->addresses.size)
		return false;
	bytes = dwarf_slice_bytes(split->addresses,
				  split->address_base + number * split->address_size);
	*ret_address = cfi_fixed(&bytes, split->address_size);
	return !bytes.bad;
}

static bool address_of(const DwarfSplit *split, const Dwarf_Attribute *attribute,
		       uint64_t *ret_address)
{
	CfiBytes bytes = value_of(split, attribute);
	uint64_t number;

	switch (attribute->form) {
	case DW_FORM_addr:
		*ret_address = cfi_fixed(&bytes, split->address_size);
		return !bytes.bad;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		number = read_number(&bytes, attribute->form);
		return !bytes.bad && read_address(split, number, ret_address);
	default:
		return false;
	}
}

static const char *text_at(DwarfSlice slice, uint64_t offset)
{
	DwarfSlice rest = dwarf_slice_part(slice, offset, UINT64_MAX);

	return rest.data && memchr(rest.data, '\0', rest.size) ? (const char *)rest.data : NULL;
}

static const char *string_of_number(const DwarfSplit *split, uint64_t number)
{
	uint64_t header = split->version < 5 ? 0 : split->offset_size == 8 ? 16 : 8;
	CfiBytes bytes;
	uint64_t offset;

	if (number > split->string_offsets.size)
		return NULL;
	bytes = dwarf_slice_bytes(split->string_offsets, header + number * split->offset_size);
	offset = cfi_fixed(&bytes, split->offset_size);
	return bytes.bad ? NULL : text_at(split->strings, offset);
}

const char *dwarf_split_string(const DwarfSplit *split, Dwarf_Attribute *attribute)
{
	CfiBytes bytes = value_of(split, attribute);
	uint64_t number;

	switch (attribute->form) {
	case DW_FORM_string:
		return !bytes.bad && memchr(bytes.at, '\0', bytes.end - bytes.at)
			       ? (const char *)bytes.at
			       : NULL;
	case DW_FORM_strp:
		number = cfi_fixed(&bytes, split->offset_size);
		return bytes.bad ? NULL : text_at(split->strings, number);
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		number = read_number(&bytes, attribute->form);
		return bytes.bad ? NULL : string_of_number(split, number);
	default:
		return NULL;
	}
}

/* ---- ranges ------------------------------------------------------------ */

static void add_extent(DwarfExtents *extents, uint64_t start, uint64_t end)
{
	if (start < end)
		*vec_push(extents) = (DwarfExtent){start, end};
}

/* DWARF 4 has pairs in .debug_ranges of the program, relative to a base. */
static void read_pairs(const DwarfSplit *split, uint64_t offset, DwarfExtents *extents)
{
	CfiBytes bytes = dwarf_slice_bytes(split->ranges, split->ranges_base + offset);
	uint64_t base = split->low_pc;

	while (extents->count < RANGES_MAX) {
		uint64_t start = cfi_fixed(&bytes, split->address_size);
		uint64_t end = cfi_fixed(&bytes, split->address_size);

		if (bytes.bad || (start == 0 && end == 0))
			return;
		if (start == UINT64_MAX >> (64 - 8 * split->address_size))
			base = end;
		else
			add_extent(extents, base + start, base + end);
	}
}

/* Reads an entry of DWARF 5's list, its kind excepted. Returns false at the end. */
static bool read_entry(const DwarfSplit *split, CfiBytes *bytes, unsigned kind, uint64_t *base,
		       DwarfExtents *extents)
{
	uint64_t start = 0, end = 0;
	bool good = true;

	switch (kind) {
	case DW_RLE_base_addressx:
		return read_address(split, cfi_uleb(bytes), base);
	case DW_RLE_base_address:
		*base = cfi_fixed(bytes, split->address_size);
		return true;
	case DW_RLE_startx_endx:
		good = read_address(split, cfi_uleb(bytes), &start);
		good &= read_address(split, cfi_uleb(bytes), &end);
		break;
	case DW_RLE_startx_length:
		good = read_address(split, cfi_uleb(bytes), &start);
		end = start + cfi_uleb(bytes);
		break;
	case DW_RLE_offset_pair:
		start = *base + cfi_uleb(bytes);
		end = *base + cfi_uleb(bytes);
		break;
	case DW_RLE_start_end:
		start = cfi_fixed(bytes, split->address_size);
		end = cfi_fixed(bytes, split->address_size);
		break;
	case DW_RLE_start_length:
		start = cfi_fixed(bytes, split->address_size);
		end = start + cfi_uleb(bytes);
		break;
	default: /* DW_RLE_end_of_list; the size of an unknown kind is not known */
		return false;
	}
	if (good && !bytes->bad)
		add_extent(extents, start, end);
	return true;
}

static void read_list(const DwarfSplit *split, uint64_t offset, DwarfExtents *extents)
{
	CfiBytes bytes = dwarf_slice_bytes(split->range_lists, offset);
	uint64_t base = split->low_pc;

	while (extents->count < RANGES_MAX && !bytes.bad) {
		unsigned kind = cfi_u8(&bytes);

		if (bytes.bad || !read_entry(split, &bytes, kind, &base, extents))
			return;
	}
}

/* Finds the list with that number: the table begins with a header and the lists' offsets. */
static bool find_list(const DwarfSplit *split, uint64_t number, uint64_t *ret_offset)
{
	CfiBytes bytes = dwarf_slice_bytes(split->range_lists, 0);
	bool is_64 = cfi_fixed(&bytes, 4) == DWARF_64;
	uint64_t header = is_64 ? 20 : 12, size = is_64 ? 8 : 4;

	if (number > split->range_lists.size)
		return false;
	bytes = dwarf_slice_bytes(split->range_lists, header + number * size);
	*ret_offset = header + cfi_fixed(&bytes, size);
	return !bytes.bad;
}

static void read_ranges(const DwarfSplit *split, Dwarf_Attribute *attribute, DwarfExtents *extents)
{
	CfiBytes bytes = value_of(split, attribute);
	uint64_t offset;

	if (attribute->form == DW_FORM_rnglistx) {
		if (find_list(split, cfi_uleb(&bytes), &offset) && !bytes.bad)
			read_list(split, offset, extents);
		return;
	}
	offset = cfi_fixed(&bytes, attribute->form == DW_FORM_data4 ? 4 : split->offset_size);
	if (bytes.bad)
		return;
	if (split->version < 5)
		read_pairs(split, offset, extents);
	else
		read_list(split, offset, extents);
}

void dwarf_split_ranges(const DwarfSplit *split, Dwarf_Die *die, DwarfExtents *extents)
{
	Dwarf_Attribute attribute;
	uint64_t start, end;
	Dwarf_Word size;

	extents->count = 0;
	if (dwarf_attr(die, DW_AT_ranges, &attribute)) {
		read_ranges(split, &attribute, extents);
		return;
	}
	if (!dwarf_attr(die, DW_AT_low_pc, &attribute) || !address_of(split, &attribute, &start) ||
	    !dwarf_attr(die, DW_AT_high_pc, &attribute))
		return;
	if (address_of(split, &attribute, &end))
		add_extent(extents, start, end);
	else if (dwarf_formudata(&attribute, &size) == 0 && size <= UINT64_MAX - start)
		add_extent(extents, start, start + size);
}
