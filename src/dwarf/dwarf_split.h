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
#include "dwarf_package.h"
#include "dwarf_sections.h"
#include <elfutils/libdw.h>

typedef struct DwarfExtent {
	uint64_t start, end;
} DwarfExtent;
typedef VEC(DwarfExtent) DwarfExtents;

/* A unit in an image. */
typedef struct DwarfSplitUnit {
	uint64_t offset; /* of its DIE */
	uint16_t version;
	uint8_t offset_size, address_size;
} DwarfSplitUnit;

typedef struct PackageFile {
	ElfMap file;
	DwarfPackage index;
} PackageFile;

typedef struct DwarfSplit {
	/* The caller sets these. find is that of ObjectHost (object_names.h). */
	const ElfMap *file; /* with the skeletons */
	const DwarfSections *sections;
	int (*find)(void *user, const Companion *companion);
	void *user;
	uint64_t unit_begin; /* DwarfUnit::begin of the unit that is opened next */
	/* The files that are open, and the name of the .dwo file that was looked for last. */
	PackageFile package;
	int package_error; /* 0 = not looked for; what it means if the package lacks a unit */
	ElfMap dwo;
	Companion *companion;
	/* An ELF file of some entries and abbreviations, kept for the next units in them. */
	DwarfSlice info, abbrev;
	uint8_t *image;
	size_t image_size;
	Elf *elf;
	Dwarf *dwarf;
	uint64_t decoded; /* bytes of abbreviations since libdw was started */
	VEC(DwarfSplitUnit) units;
	Map unit_of; /* id -> units */
	/* The unit that is open. */
	uint16_t version;
	uint8_t offset_size, address_size;
	bool is_whole; /* DwarfParts::is_whole */
	uint64_t id;
	uint64_t address_base, ranges_base; /* in the sections of `file` */
	uint64_t low_pc;
	DwarfSlice addresses, ranges; /* of `file`; ranges of DWARF 4 only */
	DwarfSlice strings, string_offsets, range_lists;
} DwarfSplit;

enum dwarf_split_result {
	DWARF_SPLIT_NONE, /* the unit is whole: it has no split file */
	DWARF_SPLIT_OPEN,
	DWARF_SPLIT_NO_FILE,
	DWARF_SPLIT_OTHER_FILE,	     /* the .dwo file does not have the unit */
	DWARF_SPLIT_OTHER_PACKAGE,   /* the .dwp file does not, and there is no .dwo file */
	DWARF_SPLIT_DAMAGED_PACKAGE, /* the .dwp file cannot be read, and there is no .dwo file */
};

/*
 * Opens the unit of which this is the skeleton, instead of the one that was open before. *ret_unit
 * is its DIE if it is open. If it is nowhere, *ret_name is the name of the .dwo file, valid until
 * the next call.
 */
enum dwarf_split_result dwarf_split_open(DwarfSplit *split, Dwarf_Die *skeleton,
					 Dwarf_Die *ret_unit, const char **ret_name);
/* Closes all, also what dwarf_split_open() keeps for the next unit. */
void dwarf_split_close(DwarfSplit *split);

/* Returns the attribute's string, valid while the unit is open, or NULL. */
const char *dwarf_split_string(const DwarfSplit *split, Dwarf_Attribute *attribute);
/* Reads the ranges of addresses of a DIE into *extents, which is emptied first. */
void dwarf_split_ranges(const DwarfSplit *split, Dwarf_Die *die, DwarfExtents *extents);

#endif
