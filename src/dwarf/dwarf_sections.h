/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_sections.h - prepares the sections of an ELF file for libdw: only those that are needed,
 * decompressed one by one, and with terminated strings. Runs in the sandbox.
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
	unsigned damaged; /* sections that could not be decompressed */
} DwarfSections;

/* Call it before dwarf_begin_elf(), for each file that strings can come from. */
void dwarf_sections_prepare(DwarfSections *sections, ElfMap *file);
/*
 * Returns s if it is terminated inside of its section, else NULL. A string outside of all sections
 * is libdw's own.
 */
const char *dwarf_sections_string(const DwarfSections *sections, const char *s);
void dwarf_sections_free(DwarfSections *sections);

#endif
