/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_sections.h - makes the sections of an ELF file fit for libdw: only those that are asked
 * for, decompressed one by one, and no string that does not end. Runs in the sandbox.
 */
#ifndef WALLPROF_DWARF_SECTIONS_H
#define WALLPROF_DWARF_SECTIONS_H

#include "elf_file.h"

/* A section that strings are read from. */
typedef struct DwarfText {
	const char *start, *end;
} DwarfText;

typedef struct DwarfSections {
	VEC(DwarfText) texts;
} DwarfSections;

/* To be called before dwarf_begin_elf(), for each file that strings can come from. */
void dwarf_sections_prepare(DwarfSections *sections, const ElfMap *file);
/* s if it ends before its section does, else NULL. What lies in no section is libdw's own. */
const char *dwarf_sections_string(const DwarfSections *sections, const char *s);
void dwarf_sections_free(DwarfSections *sections);

#endif
