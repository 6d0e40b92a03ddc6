/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_follow.h - rules for code without call frame information, from its instructions.
 *
 * Start-up code of C compilers, C libraries that are built without it (musl) and functions in
 * assembly (GMP, video codecs) have no call frame information. Each function is followed from its
 * first instruction along its jumps. A rule says where the return address and the caller's rbp and
 * rbx are.
 *
 * A function that seems to return with another stack pointer than on entry, or without restoring
 * rbp and rbx, was not understood: it gets no rule. Code that no direct jump reaches gets a rule
 * that is marked as guessed.
 */
#ifndef WALLPROF_UNWIND_FOLLOW_H
#define WALLPROF_UNWIND_FOLLOW_H

#include "unwind_rows.h"
#include "util.h"

/* The rule holds from this offset in the code up to that of the next row. */
typedef struct UnwindCodeRow {
	uint32_t at;
	struct unwind_rule rule;
} UnwindCodeRow;
typedef VEC(UnwindCodeRow) UnwindCodeRows;

typedef VEC(uint32_t) UnwindOffsets;

typedef struct UnwindCode {
	const uint8_t *bytes;
	uint32_t size;
	uint64_t address;	/* of the first byte */
	bool function_begins;	/* at the first byte, even if that is not aligned */
	const uint32_t *starts; /* offsets of functions: ascending, unique, below size */
	size_t start_count;
	/* The offset of the entry point, whose function has no caller; UINT32_MAX: not here. It is
	 * one of the starts. */
	uint32_t entry;
	struct unwind_rule unknown; /* the rule for code that is not understood */
} UnwindCode;

/* Returns the rows in ascending order; none if no function was found. The caller frees them. */
void unwind_follow_code(const UnwindCode *code, UnwindCodeRows *ret_rows);

#endif
