/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_functions.h - finds where functions begin in an ELF file, by its symbols and its code.
 *
 * Local functions of a stripped library have no symbols, but other code calls them or takes their
 * address. The entry point, DT_INIT and DT_FINI are known from the headers.
 */
#ifndef WALLPROF_UNWIND_FUNCTIONS_H
#define WALLPROF_UNWIND_FUNCTIONS_H

#include "unwind_sections.h"

/* Offsets from base_svma, ascending and unique. Code sections end below 4 GiB. */
typedef VEC(uint32_t) UnwindFunctions;

/*
 * Reads the symbol tables of both files (debug may be NULL or not open). Also decodes all code, up
 * to 16 MiB of it: more would take longer than a table is worth, and then only symbols count. The
 * caller frees the list.
 */
void unwind_functions_find(const ElfMap *file, const ElfMap *debug, uint64_t base_svma,
			   const UnwindSections *sections, UnwindFunctions *ret_functions);

/* Returns only the functions that the headers name. The caller frees the list. */
void unwind_functions_of_headers(const UnwindSections *sections, UnwindFunctions *ret_functions);

/* Returns the length of one padding instruction (nop, int3, zero byte); 0: there is none. */
uint8_t unwind_padding_length(const uint8_t *bytes, size_t size);

/* Compilers align functions to this many bytes, except with -Os. */
#define UNWIND_ALIGNMENT 16

#endif
