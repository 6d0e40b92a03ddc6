/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_parts.h - up to three ELF files in one input of fuzz_object, one after the other, and behind
 * them a struct elf_trailer. Without one, all is the object. Changes are made to one piece of
 * one file: a header table or the contents of a section.
 */
#ifndef WALLPROF_ELF_PARTS_H
#define WALLPROF_ELF_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum elf_part { ELF_PART_OBJECT, ELF_PART_DEBUG, ELF_PART_DWZ, ELF_PARTS };

#define ELF_TRAILER_MAGIC 0x53545241u /* "ARTS" */

struct elf_trailer {
	uint32_t debug_size, dwz_size;
	uint32_t debug_by_build_id; /* found by it, else by .gnu_debuglink */
	uint32_t magic;
};

typedef struct ElfPart {
	const uint8_t *data;
	size_t size;
} ElfPart;

typedef struct ElfParts {
	ElfPart parts[ELF_PARTS];
	bool debug_by_build_id;
	bool has_trailer;
} ElfParts;

/* Points into data. */
ElfParts elf_parts_of(const uint8_t *data, size_t size);

#endif
