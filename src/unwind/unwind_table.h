/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_table.h - the unwind table of an object (bpf/abi/unwind_rows.h), made of its .eh_frame
 * and, where that has a gap, of Go's own table of functions and its .debug_frame. Runs in the
 * sandbox; all input is untrusted.
 *
 * What no rule stands for is a row, too (CFA_NONE with the reason). What is dropped is counted.
 */
#ifndef WALLPROF_UNWIND_TABLE_H
#define WALLPROF_UNWIND_TABLE_H

#include "elf_file.h"
#include "unwind_rules.h"

/*
 * Grows with every change of what the builder makes of the same file, of which tables are kept, and
 * of the form in bpf/abi/unwind_rows.h: tables in the cache that were made before are not used any
 * more.
 */
#define UNWIND_TABLE_VERSION 7

/* Why an FDE, or all of it that is left, is not in the table. */
enum unwind_drop {
	UNWIND_DROP_BROKEN,    /* it cannot be read */
	UNWIND_DROP_NO_CIE,    /* its CIE is not there, broken, or of an unknown kind */
	UNWIND_DROP_ENCODING,  /* its addresses are of a kind that x86-64 does not have */
	UNWIND_DROP_DISCARDED, /* its address is 0: the linker has dropped the function */
	UNWIND_DROP_EMPTY,     /* it covers nothing */
	UNWIND_DROP_OUTSIDE,   /* of every executable segment */
	UNWIND_DROP_FAR,       /* 4 GiB or more behind the object's begin */
	UNWIND_DROP_OVERLAP,   /* others of its section cover it */
	UNWIND_DROP_KNOWN,     /* of .debug_frame, and others cover it: nothing is lost */
	UNWIND_DROPS
};

typedef struct UnwindCounts {
	uint64_t fdes; /* in both sections, and functions of Go's table; dropped ones included */
	uint64_t drops[UNWIND_DROPS];
	uint64_t overlaps; /* those of which a part only is covered by others */
	uint64_t unread;   /* bytes of sections that cannot be read */
	/* Bytes of what is said to be code (unwind_sections.h), and of those in gaps, large ones
	 * too. */
	uint64_t code, code_gaps;
	/* Bytes of code with rules from its instructions alone, start-up code not included. */
	uint64_t code_followed;
} UnwindCounts;

typedef VEC(struct unwind_row) UnwindRows;

/*
 * The first row is at 0, and behind all that is covered there is one more (CFA_NONE), so that
 * each pc has one. Neighbours have different rules. Each rule is there once.
 *
 * A gap of less than UNWIND_PADDING bytes between two functions is not one: it aligns the
 * second, nothing is run there, and the rows before it hold on.
 */
typedef struct UnwindTable {
	UnwindRows rows;
	UnwindRules rules;
	UnwindCounts counts;
} UnwindTable;

#define UNWIND_PADDING 16
/*
 * Objects have up to a thousand; where more than this differ, it is NONE_TOO_MANY_RULES: no one
 * file shall take all that the whole system may have (RULES_MAX).
 */
#define UNWIND_RULES_MAX 8192u

/*
 * debug: its separate debug file, for .debug_frame; NULL or not open: none. base_svma: as
 * elf_file.h has it. Returns 0, -ENOEXEC (no ELF file), or -ENODATA: no call frame information
 * at all, nor code that could be followed. The files may be changed (decompressed sections).
 */
int unwind_table_build(const ElfMap *file, const ElfMap *debug, uint64_t base_svma,
		       UnwindTable *ret_table);
void unwind_table_free(UnwindTable *table);

#define UNWIND_CFAS  (CFA_SIGNAL + 1)
#define UNWIND_NONES (NONE_UNKNOWN_CODE + 1)

/* How much of an object is known how. */
typedef struct UnwindCoverage {
	uint64_t rows[UNWIND_CFAS]; /* by enum unwind_cfa */
	/* Bytes of executable segments (data that lies in them included) by enum unwind_cfa, and of
	 * CFA_NONE by enum unwind_none. */
	uint64_t bytes[UNWIND_CFAS], none_bytes[UNWIND_NONES];
} UnwindCoverage;

/* By a valid table of the file that is identified so. Not counted when a table is made: it would
 * take a twentieth more.
 */
UnwindCoverage unwind_table_coverage(const UnwindTable *table, const ElfIdentity *identity);

/* Of its rows and rules. */
static inline size_t unwind_table_bytes(const UnwindTable *table)
{
	return table->rows.count * sizeof(struct unwind_row) +
	       table->rules.count * sizeof(struct unwind_rule);
}

/*
 * Of a table that came from somewhere: are the rows as above, and does each have a rule
 * whose fields all are what unwind_rows.h allows? Counts are not looked at.
 */
bool unwind_table_valid(const UnwindTable *table);
/* The same of the rows from one on (those before it are), without the rules themselves. */
bool unwind_rows_valid(const UnwindTable *table, size_t from);

/* The row that holds at pc, in a valid table. */
const struct unwind_row *unwind_table_find(const UnwindTable *table, uint32_t pc);

#endif
