/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_oracle.h - what a frame's caller is, by libdw and by a row of our table: both are
 * evaluated with the same made-up registers and memory, so that only results are compared.
 */
#ifndef WALLPROF_TEST_UNWIND_ORACLE_H
#define WALLPROF_TEST_UNWIND_ORACLE_H

#include "test_tools.h"
#include "unwind_table.h"
#include <elfutils/libdw.h>

/* Registers 0 to 15, and the pc. */
typedef struct Machine {
	uint64_t regs[DWARF_REGS + 1];
} Machine;

Machine random_machine(uint64_t pc);
/* The word at this address follows from the address. */
uint64_t memory_at(uint64_t address);

enum value_kind { VALUE_KNOWN, VALUE_UNDEFINED, VALUE_UNKNOWN };

typedef struct Value {
	enum value_kind kind;
	uint64_t number;
} Value;

typedef struct Caller {
	bool covered;
	Value cfa, ra, bp, bx, sp;
	/* Does libdw's answer depend on something that our rules omit? */
	bool cfa_by_expression;
} Caller;

/* ---- libdw ------------------------------------------------------------------------- */

typedef struct Oracle {
	int fd, debug_fd;
	Elf *elf;
	Dwarf *dwarf;
	Dwarf_CFI *eh_frame, *debug_frame;
} Oracle;

Oracle open_oracle(const char *path, const char *debug_path);
void close_oracle(Oracle *oracle);

/* Asks .eh_frame first. debug_path of open_oracle() may be NULL. */
Caller ask_libdw(const Oracle *oracle, uint64_t svma, const Machine *machine);

/* ---- a rule, as unwind_rows.h says ------------------------------------------------------- */

/* The rule is neither CFA_NONE nor CFA_END. */
Caller ask_rule(const struct unwind_rule *rule, const Machine *machine);

/* ---- tables -------------------------------------------------------------------------- */

typedef struct Built {
	ElfMap file, debug;
	ElfIdentity identity;
	UnwindTable table;
	UnwindCoverage coverage;
	uint64_t entry;
	int result;
} Built;

/* debug_path may be NULL. */
Built build_table(const char *path, const char *debug_path);
void free_built(Built *built);
const struct unwind_rule *rule_at(const UnwindTable *table, uint64_t pc);

#endif
