/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_fdes.h - the usable FDEs of a section, in the order of their addresses.
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
	bool broken; /* its instructions are malformed */
} UnwindCie;

/* The size is 24 bytes, because there are hundreds of thousands. */
typedef struct UnwindFde {
	uint32_t pc, size; /* relative to base_svma; within an executable segment */
	uint32_t cie;	   /* index in cies; UNWIND_GO: a function of Go's own table */
	uint32_t length;   /* of the program; for Go the index of the function */
	const uint8_t *program;
} UnwindFde;

#define UNWIND_GO UINT32_MAX

typedef struct UnwindFdes {
	VEC(UnwindCie) cies;
	VEC(UnwindFde) list; /* sorted by pc, and then as in the section */
	uint64_t base_svma;
	const Pclntab *go;
	const UnwindRanges *executable;
} UnwindFdes;

/*
 * Counts those that are dropped. go: Go's own table (pclntab.h), whose functions come before those
 * of the section, or NULL. The caller frees *ret_fdes before section, ranges and table.
 */
void unwind_fdes_read(const CfiSection *section, const Pclntab *go, const UnwindRanges *executable,
		      uint64_t base_svma, UnwindCounts *counts, UnwindFdes *ret_fdes);
void unwind_fdes_free(UnwindFdes *fdes);

/* As cfi_program_run(); addresses are SVMA. */
void unwind_fde_run(const UnwindFdes *fdes, const UnwindFde *fde, CfiEmit emit, void *user);

#endif
