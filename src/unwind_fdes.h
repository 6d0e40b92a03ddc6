/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_fdes.h - the FDEs of a section that count, in the order of their addresses.
 */
#ifndef WALLPROF_UNWIND_FDES_H
#define WALLPROF_UNWIND_FDES_H

#include "cfi_program.h"
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
	uint32_t cie;	   /* in cies */
	uint32_t length;   /* of the program */
	const uint8_t *program;
} UnwindFde;

typedef struct UnwindFdes {
	VEC(UnwindCie) cies;
	VEC(UnwindFde) list; /* by pc, and then as in the section */
	uint64_t base_svma;
} UnwindFdes;

/* Counts those that are left out. To be freed, before the section is. */
void unwind_fdes_read(const CfiSection *section, const UnwindRanges *executable, uint64_t base_svma,
		      UnwindCounts *counts, UnwindFdes *ret_fdes);
void unwind_fdes_free(UnwindFdes *fdes);

/* As cfi_program_run(); addresses are SVMA. */
void unwind_fde_run(const UnwindFdes *fdes, const UnwindFde *fde, CfiEmit emit, void *user);

#endif
