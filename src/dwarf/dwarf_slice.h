/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dwarf_slice.h - bytes of a section, or of a unit's part of it, which are never left. */
#ifndef WALLPROF_DWARF_SLICE_H
#define WALLPROF_DWARF_SLICE_H

#include "cfi.h"

/* The first word of a header whose lengths and offsets have 64 bits. */
#define DWARF_64 0xffffffffu

typedef struct DwarfSlice {
	const uint8_t *data; /* NULL = there is nothing */
	size_t size;
} DwarfSlice;

/* Returns the part from offset on, as far as it lies in the slice. */
static inline DwarfSlice dwarf_slice_part(DwarfSlice slice, uint64_t offset, uint64_t size)
{
	if (offset >= slice.size)
		return (DwarfSlice){};
	return (DwarfSlice){slice.data + offset, MIN(size, slice.size - offset)};
}

/* Returns a reader of the bytes from offset on. */
static inline CfiBytes dwarf_slice_bytes(DwarfSlice slice, uint64_t offset)
{
	static const uint8_t nothing[1];
	DwarfSlice rest = dwarf_slice_part(slice, offset, SIZE_MAX);

	if (!rest.data)
		return (CfiBytes){.at = nothing, .end = nothing, .bad = true};
	return (CfiBytes){.at = rest.data, .end = rest.data + rest.size};
}

#endif
