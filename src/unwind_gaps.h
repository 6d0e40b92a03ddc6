/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_gaps.h - rows for what no FDE covers: the program's first function, signal handlers'
 * return, start-up code, code of compilers that write no tables; and for the rest that
 * nothing is known.
 */
#ifndef WALLPROF_UNWIND_GAPS_H
#define WALLPROF_UNWIND_GAPS_H

#include "unwind.h"
#include "unwind_functions.h"

/* From pc on, counted from base_svma. */
typedef void (*UnwindPut)(void *user, uint32_t pc, const struct unwind_rule *rule);

typedef struct UnwindGaps {
	const UnwindSections *sections;
	bool all_foreign; /* the file has no call frame information at all */
	/* What unwind_functions_find() needs, and what it found; until it is asked, what the
	 * headers tell. */
	const ElfMap *file, *debug;
	uint64_t base_svma;
	UnwindFunctions functions;
	bool functions_found;
	/* Bytes that may still be followed: sections can share the bytes of a hostile file. */
	uint64_t bytes_left;
	uint64_t followed; /* bytes, in pieces that are more than start-up code */
	size_t code;	   /* sections->code.items[code] is the first that a later gap can touch */
	UnwindPut put;
	void *user;
} UnwindGaps;

/* Gaps come in ascending order. followed: an FDE begins at end. */
void unwind_gap_put(UnwindGaps *gaps, uint64_t gap, uint64_t end, bool followed);

/*
 * From where on the row of a signal frame holds whose code begins at place. The walk looks for the
 * byte before a return address, and a handler returns to the first byte of its restorer: so from
 * the byte before, if nothing else can be there. after_gap: no FDE covers that byte.
 */
uint64_t unwind_signal_begin(const UnwindSections *sections, uint64_t place, bool after_gap);

#endif
