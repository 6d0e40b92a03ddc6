/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_fdes.h - the FDEs of a section that count, in the order of their addresses.
 */
#ifndef WALLPROF_UNWIND_FDES_H
#define WALLPROF_UNWIND_FDES_H

#include "cfi_program.h"
#include "pclntab.h"
#include "unwind_sections.h"
#include "unwind_table.h"

typedef struct UnwindCie {
	CfiCie cie;
	CfiState initial;
	bool broken; /* its instructions are */
} UnwindCie;

/* In 24 bytes, for there are hundred thousands. */
typedef struct UnwindFde {
	uint32_t pc, size; /* counted from base_svma; within an executable segment */
	uint32_t cie;	   /* in cies; UNWIND_GO: a function of Go's own table */
	uint32_t length;   /* of the program; the function's number */
	const uint8_t *program;
} UnwindFde;

#define UNWIND_GO UINT32_MAX

typedef struct UnwindFdes {
	VEC(UnwindCie) cies;
	VEC(UnwindFde) list; /* by pc, and then as in the section */
	uint64_t base_svma;
	const Pclntab *go;
	const UnwindRanges *executable;
} UnwindFdes;

/*
 * Counts those that are left out. go: Go's own table (pclntab.h), whose functions come before those
 * of the section, or NULL. To be freed, before section, ranges and table are.
 */
void unwind_fdes_read(const CfiSection *section, const Pclntab *go, const UnwindRanges *executable,
		      uint64_t base_svma, UnwindCounts *counts, UnwindFdes *ret_fdes);
void unwind_fdes_free(UnwindFdes *fdes);

/* As cfi_program_run(); addresses are SVMA. */
void unwind_fde_run(const UnwindFdes *fdes, const UnwindFde *fde, CfiEmit emit, void *user);

#endif
