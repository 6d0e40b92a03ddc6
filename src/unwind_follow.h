/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_follow.h - rules for code without call frame information, from its instructions.
 *
 * Start-up code of C compilers has no call frame information, nor have C libraries that are built
 * without it (musl), nor functions in assembly language (GMP, video codecs). Each function is
 * followed from its first instruction along its jumps. A rule says where the return address is, and
 * where the caller's rbp and rbx are.
 *
 * A function that returns with another stack pointer than it was entered with, or without what it
 * saved of rbp and rbx, was not understood: it gets no rule. Code that no seen jump leads to gets
 * a rule that is marked as guessed.
 */
#ifndef WALLPROF_UNWIND_FOLLOW_H
#define WALLPROF_UNWIND_FOLLOW_H

#include "unwind.h"
#include "util.h"

/* The rule holds from this offset in the code up to the next row's. */
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
	bool function_begins;	/* at the first byte, whatever its alignment */
	const uint32_t *starts; /* offsets of functions, ascending, each once, and below size */
	size_t start_count;
	/* Of the starts, the program's first function, which is the outermost one; UINT32_MAX:
	 * none. */
	uint32_t entry;
	struct unwind_rule unknown; /* the rule of what is not understood */
} UnwindCode;

/* Returns the rows in ascending order; none if no function was found. To be freed. */
void unwind_code_follow(const UnwindCode *code, UnwindCodeRows *ret_rows);

#endif
