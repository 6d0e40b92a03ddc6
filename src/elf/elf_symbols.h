/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_symbols.h - which function an address of an ELF file is in, by its symbol tables, its
 * procedure linkage table, Go's own table and its unwind table. Follows the ELF gABI, the x86-64
 *psABI (chapter 5: PLT) and the LSB (.eh_frame_hdr). Runs in the sandbox.
 *
 *	ElfSymbols symbols = {};
 *	elf_symbols_add_tables(&symbols, elf);	(also of separate debug files)
 *	elf_symbols_add_go(&symbols, &table);	(if it is a Go program)
 *	elf_symbols_add_plt(&symbols, elf);
 *	elf_symbols_add_fdes(&symbols, elf);
 *	elf_symbols_add_entry(&symbols, elf);
 *	elf_symbols_finalize(&symbols);
 *	symbol = elf_symbols_find(&symbols, svma);
 */
#ifndef WALLPROF_ELF_SYMBOLS_H
#define WALLPROF_ELF_SYMBOLS_H

#include "pclntab.h"
#include "util.h"
#include <gelf.h>

typedef struct ElfSymbol {
	uint64_t start; /* SVMA */
	uint64_t size;	/* never 0: unsized symbols end at the next or at their section's end */
	uint32_t name;	/* offset in names; meaningless of a nameless one */
	bool nameless;	/* known from the unwind table only */
} ElfSymbol;

typedef struct ElfExtent {
	uint64_t start, end;
} ElfExtent;

/* Where a symbol comes from, best first: which of several at one start is kept. */
enum elf_symbol_source {
	SYMBOL_GLOBAL,
	SYMBOL_LOCAL,
	SYMBOL_GO,
	SYMBOL_PLT,
	SYMBOL_ENTRY,
	SYMBOL_FDE
};

/* A symbol on its way. */
typedef struct ElfCandidate {
	ElfSymbol symbol;
	uint64_t limit; /* a symbol without a size ends there at the latest */
	enum elf_symbol_source source;
	uint8_t underscores;
} ElfCandidate;

/*
 * Functions sorted by start, one per start: global before local, longer before shorter,
 * fewer leading underscores before more.
 */
typedef struct ElfSymbols {
	VEC(ElfSymbol) list;	   /* settled */
	VEC(ElfSymbol) data;	   /* variables that hold one of these: */
	const uint64_t *addresses; /* SVMA, ascending; the caller's, to be set before all else */
	size_t address_count;
	VEC(char) names;
	VEC(ElfCandidate) candidates; /* not settled yet */
	bool has_local;		      /* there is a .symtab: each function has a symbol */
} ElfSymbols;

/* Symbols of functions and of variables in .symtab and .dynsym. */
void elf_symbols_add_tables(ElfSymbols *symbols, Elf *elf);
/* Stubs of .plt, .plt.sec and .plt.got, as "name@plt". */
void elf_symbols_add_plt(ElfSymbols *symbols, Elf *elf);
/* Functions of a Go program. */
void elf_symbols_add_go(ElfSymbols *symbols, const Pclntab *table);
/* Functions that only the unwind table tells of: starts and sizes, no names. */
void elf_symbols_add_fdes(ElfSymbols *symbols, Elf *elf);
/*
 * _start and main of an executable, which a stripped one has no symbols for, and _start of ld.so.
 * To be called after elf_symbols_add_fdes(), which knows where they end.
 */
void elf_symbols_add_entry(ElfSymbols *symbols, Elf *elf);
/* To be called once, after which the list is complete. */
void elf_symbols_finalize(ElfSymbols *symbols);
/* The function that holds svma, or NULL. */
const ElfSymbol *elf_symbols_find(const ElfSymbols *symbols, uint64_t svma);
/*
 * The code around svma, which lies in no function, of which nothing says what functions it has:
 * from the end of the one before to the start of the next one in the same section (or segment, in
 * a file without sections). False if there is no code.
 */
bool elf_symbols_find_gap(const ElfSymbols *symbols, Elf *elf, uint64_t svma, ElfExtent *ret_gap);
/* The variable that holds svma, one of the addresses, or NULL. */
const ElfSymbol *elf_symbols_find_data(const ElfSymbols *symbols, uint64_t svma);
void elf_symbols_free(ElfSymbols *symbols);

/* ---- for elf_plt.c and elf_fde.c ------------------------------------------ */

/* The section's bytes if they are in the file and of sane size; libelf's. */
bool elf_section_data(Elf_Scn *section, Elf_Data **ret_data);
/* The section with this name, or NULL. */
Elf_Scn *elf_section_by_name(Elf *elf, const char *name, GElf_Shdr *ret_header);
/* end = start + length, or the end of all if that overflows. */
uint64_t elf_end_of(uint64_t start, uint64_t length);

#endif
