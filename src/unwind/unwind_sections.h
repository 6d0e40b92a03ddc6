/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_sections.h - where an ELF file keeps what an unwind table is made of: its call frame
 * information, and the bytes of its code. Follows the ELF gABI and the LSB 5, chapter 10.6.2
 * (.eh_frame_hdr). All is untrusted: what is returned lies within the file.
 */
#ifndef WALLPROF_UNWIND_SECTIONS_H
#define WALLPROF_UNWIND_SECTIONS_H

#include "cfi.h"
#include "elf_file.h"

/* Addresses are counted from base_svma, and what is beyond 4 GiB is left out. */
typedef struct UnwindRange {
	uint64_t from, to;
	const uint8_t *bytes; /* to - from; NULL: unknown */
} UnwindRange;
typedef VEC(UnwindRange) UnwindRanges; /* ascending, none touches another */

typedef struct UnwindSections {
	CfiSection eh_frame, debug_frame; /* point into the files */
	UnwindRanges executable;	  /* the segments */
	UnwindRanges code;		  /* what of them is said to be code, or all of them */
	/* Counted from base_svma; UINT64_MAX: none. The last two: functions of DT_INIT, DT_FINI. */
	uint64_t entry, init, fini;
	bool needs_others;   /* DT_NEEDED */
	uint64_t unreadable; /* bytes of sections that cannot be had */
} UnwindSections;

/* Returns 0 or -ENOEXEC. To be freed, before the files are closed. */
int unwind_sections_find(const ElfMap *file, const ElfMap *debug, uint64_t base_svma,
			 UnwindSections *ret_sections);
void unwind_sections_free(UnwindSections *sections);

/*
 * The executable segments alone, of what elf_file_identify() has said of a file; without their
 * bytes if file is NULL. To be freed.
 */
void unwind_executable_find(const ElfMap *file, const ElfIdentity *identity, uint64_t base_svma,
			    UnwindRanges *ret_ranges);

/* The range that holds the address, or NULL. */
const UnwindRange *unwind_ranges_find(const UnwindRanges *ranges, uint64_t address);

#endif
