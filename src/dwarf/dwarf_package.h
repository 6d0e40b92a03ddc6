/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_package.h - the index of a .dwp file: which parts of its sections belong to a unit. Follows
 * DWARF 5, section 7.3.5, and for DWARF 4 https://gcc.gnu.org/wiki/DebugFissionDWP.
 *
 * Several units can come from one .dwo file (link-time optimization). They have its abbreviations
 * in common, and may refer to each other by offsets from the start of that file's entries. So they
 * are given out together.
 */
#ifndef WALLPROF_DWARF_PACKAGE_H
#define WALLPROF_DWARF_PACKAGE_H

#include "dwarf_slice.h"
#include "util.h"
#include <libelf.h>

/* A unit's parts of the sections, valid as long as the file is open. */
typedef struct DwarfParts {
	DwarfSlice info; /* entries: of this unit, or of all units of its .dwo file */
	DwarfSlice abbrev, string_offsets, range_lists, strings;
	bool is_whole; /* offsets from the start of the .dwo file's entries are those in `info` */
} DwarfParts;

/* The units of one .dwo file. */
typedef struct DwarfPackageGroup {
	uint64_t start, end; /* of their entries, in .debug_info.dwo */
	bool has_gap;	     /* something else is in between */
	bool has_types;	     /* it had type units as well, which a packer may have moved */
} DwarfPackageGroup;

typedef struct DwarfPackage {
	DwarfSlice index;
	uint32_t version, columns, units, slots;
	DwarfSlice info, abbrev, string_offsets, range_lists, strings; /* whole sections */
	VEC(DwarfPackageGroup) groups;
	VEC(uint32_t) group_of; /* by row of the index, the first of which is row 1 */
} DwarfPackage;

/*
 * Reads the index. elf stays open until after dwarf_package_close(). Returns 0, or -EBADMSG if
 * there is no index, or one that cannot be read; then nothing is open.
 */
int dwarf_package_open(Elf *elf, DwarfPackage *ret_package);
/* Returns false if it does not have the unit with that id. */
bool dwarf_package_find(const DwarfPackage *package, uint64_t id, DwarfParts *ret_parts);
void dwarf_package_close(DwarfPackage *package);

#endif
