/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_units.h - the units of a file's DWARF, and which addresses belong to each. Follows DWARF 5,
 * sections 2.17.3, 3.1.1 and 6.2. Runs in the sandbox; all is untrusted.
 */
#ifndef WALLPROF_DWARF_UNITS_H
#define WALLPROF_DWARF_UNITS_H

#include "util.h"
#include <elfutils/libdw.h>

#define DWARF_UNIT_NONE UINT32_MAX

typedef struct DwarfUnit {
	Dwarf_Off die;
	/* Where its code begins, if that is known from its lines alone; else 0. */
	uint64_t begin;
} DwarfUnit;

typedef struct DwarfUnitRange {
	uint64_t start, end;
	uint32_t unit;
} DwarfUnitRange;

typedef struct DwarfUnits {
	VEC(DwarfUnit) units;
	VEC(DwarfUnitRange) ranges; /* ascending by start */
} DwarfUnits;

/*
 * Reads all units. dwarf is open on elf. Returns false if libdw cannot read a unit; it does not
 * find the ones behind it then. In any case the caller frees *ret_units.
 */
bool dwarf_units_read(DwarfUnits *ret_units, Elf *elf, Dwarf *dwarf);
/* Returns the index of the unit that contains the address, or DWARF_UNIT_NONE. */
uint32_t dwarf_units_find(const DwarfUnits *units, uint64_t address);
void dwarf_units_free(DwarfUnits *units);

#endif
