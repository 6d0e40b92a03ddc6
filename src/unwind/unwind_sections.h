/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_sections.h - finds the parts of an ELF file that an unwind table is made from: call frame
 * information, and the bytes of the code. Follows the ELF gABI and the LSB 5, chapter 10.6.2
 * (.eh_frame_hdr). All is untrusted: what is returned lies within the file.
 */
#ifndef WALLPROF_UNWIND_SECTIONS_H
#define WALLPROF_UNWIND_SECTIONS_H

#include "cfi.h"
#include "elf_file.h"

/* Addresses are relative to base_svma; what is beyond 4 GiB is omitted. */
typedef struct UnwindRange {
	uint64_t from, to;
	const uint8_t *bytes; /* to - from bytes; NULL: unknown */
} UnwindRange;
typedef VEC(UnwindRange) UnwindRanges; /* ascending, none touches another */

typedef struct UnwindSections {
	CfiSection eh_frame, debug_frame; /* point into the files */
	UnwindRanges executable;	  /* the segments */
	UnwindRanges code; /* the parts of them that are marked as code, or all of them */
	/*
	 * Relative to base_svma; UINT64_MAX: none. The last two are the functions of DT_INIT and
	 * DT_FINI.
	 */
	uint64_t entry, init, fini;
	bool needs_others;   /* it has DT_NEEDED entries */
	uint64_t unreadable; /* bytes of sections that cannot be read */
} UnwindSections;

/*
 * Decompresses what it needs in the files. Returns 0 or -ENOEXEC. The caller frees *ret_sections
 * before the files are closed.
 */
int unwind_sections_find(ElfMap *file, ElfMap *debug, uint64_t base_svma,
			 UnwindSections *ret_sections);
void unwind_sections_free(UnwindSections *sections);

/*
 * Finds only the executable segments, by what elf_file_identify() found in a file; without their
 * bytes if file is NULL. The caller frees the result.
 */
void unwind_executable_find(const ElfMap *file, const ElfIdentity *identity, uint64_t base_svma,
			    UnwindRanges *ret_ranges);

/* Returns the range that contains the address, or NULL. */
const UnwindRange *unwind_ranges_find(const UnwindRanges *ranges, uint64_t address);

#endif
