/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_cfi.h - finds call frame information of code made at run time in memory of a process: the
 * .eh_frame sections that it passes to __register_frame(), and those of objects that it shows to
 * debuggers. Runs in the sandbox; all of the memory is untrusted.
 *
 * No list of what is registered can be read from outside, so .eh_frame is recognized: by an entry
 * of the form that compilers write for x86-64, from which entry leads to entry up to the zero that
 * ends a section. An FDE is used only if all of its addresses are executable memory that is not a
 * file's, and if its instructions can be read.
 */
#ifndef WALLPROF_JIT_CFI_H
#define WALLPROF_JIT_CFI_H

#include "cfi.h"

/* A part of the process's memory; data is not owned. */
typedef struct JitMemory {
	uint64_t address; /* AVMA */
	const uint8_t *data;
	size_t size;
} JitMemory;

typedef VEC(JitMemory) JitMemories;

/* Addresses, end not included. */
typedef struct JitRange {
	uint64_t start, end; /* AVMA */
} JitRange;

typedef VEC(JitRange) JitRanges;

typedef struct JitCie {
	uint64_t code_align, return_register;
	int64_t data_align;
	bool signal;
	const uint8_t *program, *end;
	uint64_t hash; /* of all that */
} JitCie;

typedef struct JitFde {
	uint64_t pc, size; /* AVMA */
	uint32_t cie;	   /* index in cies */
	bool shown;	   /* it is of an object that the process shows to debuggers */
	bool disputed;	   /* another one that counts as much says something else of its code, */
	bool overruled;	   /* or one that is shown does, and this one is not shown */
	const uint8_t *program, *end;
	uint64_t hash; /* of all that */
} JitFde;

typedef struct JitCfiCounts {
	uint64_t fdes;	   /* that were read */
	uint64_t outside;  /* not, or not all, in executable memory without a file */
	uint64_t broken;   /* their instructions cannot be read */
	uint64_t disputed; /* others say something else of the same code, and none of them is shown
			    */
	uint64_t no_room;
} JitCfiCounts;

typedef struct JitCfi {
	const JitRanges *code; /* executable memory without a file: sorted, none overlap */
	VEC(JitCie) cies;
	VEC(JitFde) fdes;
	JitCfiCounts counts;
} JitCfi;

/* Adds the FDEs of all sections that are found in the memory. */
void jit_cfi_search(JitCfi *cfi, const JitMemory *memory);

/* Adds the FDEs of a section that an object shown to debuggers has. */
void jit_cfi_add_section(JitCfi *cfi, const CfiSection *section);

/*
 * Sorts the FDEs by their addresses, and removes those that are there twice. If two overlap, one of
 * a shown object is kept; otherwise both are removed, because one of them is of code that is there
 * no more.
 */
void jit_cfi_finalize(JitCfi *cfi);

void jit_cfi_free(JitCfi *cfi);

/* Returns whether all of [start, start + size) is in one of the ranges. size > 0. */
bool jit_ranges_contain(const JitRanges *ranges, uint64_t start, uint64_t size);

/* Mixes bytes into a hash. */
uint64_t jit_hash(uint64_t hash, const void *data, size_t size);

#endif
