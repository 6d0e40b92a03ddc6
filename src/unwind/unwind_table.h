/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_table.h - the unwind table of an object (bpf/abi/unwind_rows.h), made from its .eh_frame
 * and, where that has gaps, from Go's own table of functions and its .debug_frame. Runs in the
 * sandbox; all input is untrusted.
 *
 * Code for which there is no rule has a row, too (CFA_NONE with the reason). What is dropped is
 * counted.
 */
#ifndef WALLPROF_UNWIND_TABLE_H
#define WALLPROF_UNWIND_TABLE_H

#include "elf_file.h"
#include "unwind_rules.h"

/*
 * Increase it with every change of the table that is built from the same file, and of the format in
 * bpf/abi/unwind_rows.h: older tables in the cache are then not used any more.
 */
#define UNWIND_TABLE_VERSION 9

/* Why an FDE, or the rest of it, is not in the table. */
enum unwind_drop {
	UNWIND_DROP_BROKEN,    /* it cannot be read */
	UNWIND_DROP_NO_CIE,    /* its CIE is missing, malformed, or of an unknown kind */
	UNWIND_DROP_ENCODING,  /* its addresses have an encoding that x86-64 does not have */
	UNWIND_DROP_DISCARDED, /* its address is 0: the linker dropped the function */
	UNWIND_DROP_EMPTY,     /* it covers nothing */
	UNWIND_DROP_OUTSIDE,   /* it is outside of all executable segments */
	UNWIND_DROP_FAR,       /* 4 GiB or more after the object's beginning */
	UNWIND_DROP_OVERLAP,   /* other FDEs of its section cover it */
	UNWIND_DROP_KNOWN,     /* it is in .debug_frame, and other FDEs cover it: nothing is lost */
	UNWIND_DROPS
};

typedef struct UnwindCounts {
	uint64_t fdes; /* in both sections, and functions of Go's table; includes dropped ones */
	uint64_t drops[UNWIND_DROPS];
	uint64_t overlaps; /* those of which only a part is covered by others */
	uint64_t unread;   /* bytes of sections that cannot be read */
	/*
	 * Bytes that are marked as code (unwind_sections.h), and those of them in gaps, also large
	 * ones.
	 */
	uint64_t code, code_gaps;
	/* Bytes of code with rules from instructions alone, start-up code not included. */
	uint64_t code_followed;
} UnwindCounts;

typedef VEC(struct unwind_row) UnwindRows;

/*
 * The first row is at 0, and one more row (CFA_NONE) follows all that is covered, unless that is
 * all up to the last pc, so that each pc has a row. Neighbours have different rules. Each rule is
 * in the table once.
 *
 * A gap of less than UNWIND_PADDING bytes between two functions does not count: it aligns the
 * second one, no code in it runs, and the previous row continues.
 */
typedef struct UnwindTable {
	UnwindRows rows;
	UnwindRules rules;
	UnwindCounts counts;
} UnwindTable;

#define UNWIND_PADDING 16
/*
 * Objects have up to a thousand; the rules of an object beyond this limit become
 * NONE_TOO_MANY_RULES, because one file must not use up all that the system may have (RULES_MAX).
 */
#define UNWIND_RULES_MAX 8192u

/*
 * debug is the separate debug file, for .debug_frame; NULL or not open: none. base_svma is as in
 * elf_file.h. Returns 0, -ENOEXEC (not an ELF file), or -ENODATA: there is neither call frame
 * information nor code that could be followed. The files may be changed (decompressed sections).
 */
int unwind_table_build(ElfMap *file, ElfMap *debug, uint64_t base_svma, UnwindTable *ret_table);
void unwind_table_free(UnwindTable *table);

#define UNWIND_CFAS  (CFA_SIGNAL + 1)
#define UNWIND_NONES (NONE_UNKNOWN_CODE + 1)

/* How much of an object has which kind of rule. */
typedef struct UnwindCoverage {
	uint64_t rows[UNWIND_CFAS]; /* by enum unwind_cfa */
	/*
	 * These are bytes of executable segments, data in them included, by enum unwind_cfa, and
	 * of CFA_NONE
	 * by enum unwind_none.
	 */
	uint64_t bytes[UNWIND_CFAS], none_bytes[UNWIND_NONES];
} UnwindCoverage;

/*
 * Computes it for a valid table of the file with this identity. This is not done when a table is
 * made, because it would take a twentieth more time.
 */
UnwindCoverage unwind_table_coverage(const UnwindTable *table, const ElfIdentity *identity);

/* Returns the size of its rows and rules. */
static inline size_t unwind_table_bytes(const UnwindTable *table)
{
	return table->rows.count * sizeof(struct unwind_row) +
	       table->rules.count * sizeof(struct unwind_rule);
}

/*
 * Checks a table from another process or file: whether the rows are as described above, and each
 * has a rule whose fields all have values that unwind_rows.h allows. Counts are not checked.
 */
bool unwind_table_valid(const UnwindTable *table);
/* The same for the rows from one on (those before it are valid), without the rules themselves. */
bool unwind_rows_valid(const UnwindTable *table, size_t from);

/* Returns the row that holds at pc, in a valid table. */
const struct unwind_row *unwind_table_find(const UnwindTable *table, uint32_t pc);

#endif
