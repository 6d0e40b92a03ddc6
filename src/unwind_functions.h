/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_functions.h - where functions begin in an ELF file, as far as its symbols and its code
 * tell.
 *
 * Local functions of a stripped library have no symbols, but something calls them, or takes their
 * address. A program's first function, DT_INIT's and DT_FINI's are known from the headers.
 */
#ifndef WALLPROF_UNWIND_FUNCTIONS_H
#define WALLPROF_UNWIND_FUNCTIONS_H

#include "unwind_sections.h"

/* Counted from base_svma; 32 bits are enough for what sections leave in. Ascending, each once. */
typedef VEC(uint32_t) UnwindFunctions;

/*
 * Reads the symbol tables of both files (debug: NULL or not open: none) and looks at all code, if
 * that is not more than is worth it. To be freed.
 */
void unwind_functions_find(const ElfMap *file, const ElfMap *debug, uint64_t base_svma,
			   const UnwindSections *sections, UnwindFunctions *ret_functions);

/* Those alone that the headers name. To be freed. */
void unwind_functions_of_headers(const UnwindSections *sections, UnwindFunctions *ret_functions);

/* Nops, breakpoints and zeros between functions. Returns the length; 0 = there are none. */
uint8_t unwind_padding_length(const uint8_t *bytes, size_t size);

/* Functions begin at such addresses, unless they are compiled for size. */
#define UNWIND_ALIGNMENT 16

#endif
