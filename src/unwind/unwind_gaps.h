/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_gaps.h - makes rows for code that no FDE covers: the entry point, signal restorers,
 * start-up code, and code of compilers that write no tables. The rest gets a row that marks it as a
 * gap.
 */
#ifndef WALLPROF_UNWIND_GAPS_H
#define WALLPROF_UNWIND_GAPS_H

#include "unwind_functions.h"
#include "unwind_rows.h"

/* The rule holds from pc on, relative to base_svma. */
typedef void (*UnwindPut)(void *user, uint32_t pc, const struct unwind_rule *rule);

typedef struct UnwindGaps {
	const UnwindSections *sections;
	bool no_cfi; /* the file has no call frame information at all */
	/* Arguments and result of unwind_functions_find(). Until it is needed, functions has only
	 * those that the headers name. */
	const ElfMap *file, *debug;
	uint64_t base_svma;
	UnwindFunctions functions;
	bool functions_found;
	/* A budget: the sections of a hostile file can share the same bytes many times. */
	uint64_t bytes_left;
	uint64_t followed; /* bytes with a rule from instructions, start-up code not included */
	size_t code;	   /* sections->code.items[code] is the first that a later gap can touch */
	UnwindPut put;
	void *user;
} UnwindGaps;

/* Gaps must come in ascending order. followed: an FDE begins at end. */
void unwind_gap_put(UnwindGaps *gaps, uint64_t gap, uint64_t end, bool followed);

/*
 * Returns from where on the row of a signal frame holds, if its code begins at place. The walk
 * looks up the byte before a return address, and a handler returns to the first byte of its
 * restorer: so the row begins one byte earlier, if nothing else can be there. after_gap: no FDE
 * covers that byte.
 */
uint64_t unwind_signal_begin(const UnwindSections *sections, uint64_t address, bool after_gap);

#endif
