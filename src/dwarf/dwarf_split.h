/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_split.h - debug information that a compiler has put beside the program (-gsplit-dwarf): for
 * each unit a .dwo file, or one .dwp file for all of them. What is left in the program is a
 * "skeleton" of each unit, with its lines. Follows DWARF 5, sections 3.1.2, 3.1.3, 7.3.2, 7.3.5 and
 * 7.26 to 7.28, and for DWARF 4 the GNU extension that these were made from
 * (https://gcc.gnu.org/wiki/DebugFission, https://gcc.gnu.org/wiki/DebugFissionDWP).
 *
 * libdw opens such files by itself, which the sandbox does not allow, and reads a .dwp file only
 * since 0.191. So the entries of a unit are given to libdw alone, and what they refer to in other
 * sections (addresses, ranges, strings) is read here. Runs in the sandbox; all is untrusted.
 */
#ifndef WALLPROF_DWARF_SPLIT_H
#define WALLPROF_DWARF_SPLIT_H

#include "debug_link.h"
#include "dwarf_sections.h"
#include "dwarf_slice.h"
#include <elfutils/libdw.h>

typedef struct DwarfExtent {
	uint64_t start, end;
} DwarfExtent;
typedef VEC(DwarfExtent) DwarfExtents;

typedef struct DwarfSplit {
	/* The caller sets these. find is that of ObjectHost (object_names.h). */
	const ElfMap *file; /* with the skeletons */
	const DwarfSections *sections;
	int (*find)(void *user, const Companion *companion);
	void *user;
	/* The files that are open, and the name of the .dwo file. */
	ElfMap dwp, dwo;
	bool sought_dwp;
	Companion *companion;
	/* The unit that is open. */
	uint16_t version;
	uint8_t offset_size, address_size;
	uint64_t id;
	uint64_t address_base, ranges_base; /* in the sections of `file` */
	uint64_t low_pc;
	DwarfSlice addresses, ranges; /* of `file`; ranges of DWARF 4 only */
	DwarfSlice info, abbrev, strings, string_offsets, range_lists;
	uint8_t *image; /* an ELF file of the unit's entries and abbreviations */
	size_t image_size;
	Elf *elf;
	Dwarf *dwarf;
} DwarfSplit;

/*
 * Opens the unit of which this is the skeleton, instead of the one that was open before. Returns 1
 * with its DIE; 0 if it has no split file; -ENOENT if there is no file, and -ESTALE if the one that
 * is there has no such unit: then *ret_name is the name of the .dwo file, valid until the next
 * call.
 */
int dwarf_split_open(DwarfSplit *split, Dwarf_Die *skeleton, Dwarf_Die *ret_unit,
		     const char **ret_name);
/* Closes all, also what dwarf_split_open() keeps for the next unit. */
void dwarf_split_close(DwarfSplit *split);

/* Returns the attribute's string, valid while the unit is open, or NULL. */
const char *dwarf_split_string(const DwarfSplit *split, Dwarf_Attribute *attribute);
/* Reads the ranges of addresses of a DIE into *extents, which is emptied first. */
void dwarf_split_ranges(const DwarfSplit *split, Dwarf_Die *die, DwarfExtents *extents);

#endif
