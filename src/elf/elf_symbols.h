/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_symbols.h - finds the function of an address in an ELF file, by its symbol tables, its
 * procedure linkage table, Go's own table and its unwind table. Follows the ELF gABI, the x86-64
 * psABI (chapter 5: PLT) and the LSB (.eh_frame_hdr). Runs in the sandbox.
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
	uint32_t name;	/* offset in names; meaningless if nameless */
	bool nameless;	/* only the unwind table has it */
	bool has_fde;	/* the unwind table has a function that begins there */
} ElfSymbol;

typedef struct ElfExtent {
	uint64_t start, end;
} ElfExtent;

/* The source of a symbol, best first: it decides which of several at one start is kept. */
enum elf_symbol_source {
	SYMBOL_GLOBAL,
	SYMBOL_LOCAL,
	SYMBOL_GO,
	SYMBOL_PLT,
	SYMBOL_ENTRY,
	SYMBOL_FDE
};

/* A symbol before elf_symbols_finalize(). */
typedef struct ElfCandidate {
	ElfSymbol symbol;
	uint64_t limit; /* a symbol without a size ends at the latest there */
	enum elf_symbol_source source;
	uint8_t underscores;
} ElfCandidate;

/*
 * Functions sorted by start, one per start: global before local, longer before shorter,
 * fewer leading underscores before more.
 */
typedef struct ElfSymbols {
	VEC(ElfSymbol) list;	   /* after elf_symbols_finalize() */
	VEC(ElfSymbol) data;	   /* variables that hold one of these: */
	const uint64_t *addresses; /* SVMA, ascending; owned by the caller, who sets it first */
	size_t address_count;
	VEC(char) names;
	VEC(ElfCandidate) candidates; /* before elf_symbols_finalize() */
	bool has_local;		      /* there is a .symtab, so each function has a symbol */
} ElfSymbols;

/* Adds the symbols of functions and of variables in .symtab and .dynsym. */
void elf_symbols_add_tables(ElfSymbols *symbols, Elf *elf);
/* Adds the stubs of .plt, .plt.sec and .plt.got, as "name@plt". */
void elf_symbols_add_plt(ElfSymbols *symbols, Elf *elf);
/* Adds the functions of a Go program. */
void elf_symbols_add_go(ElfSymbols *symbols, const Pclntab *table);
/* Adds functions that only the unwind table has: starts and sizes, no names. */
void elf_symbols_add_fdes(ElfSymbols *symbols, Elf *elf);
/*
 * Adds _start and main of an executable, which has no symbols for them if it is stripped, and
 * _start of ld.so. Call it after elf_symbols_add_fdes(), which gives their ends.
 */
void elf_symbols_add_entry(ElfSymbols *symbols, Elf *elf);
/* Call it once; then the list is complete. */
void elf_symbols_finalize(ElfSymbols *symbols);
/* Returns the function that contains svma, or NULL. */
const ElfSymbol *elf_symbols_find(const ElfSymbols *symbols, uint64_t svma);
/*
 * Finds the code around svma if svma is in no function and the functions there are not known: from
 * the end of the previous function to the start of the next one in the same section (or segment, in
 * a file without sections). Returns false if there is no code.
 */
bool elf_symbols_find_gap(const ElfSymbols *symbols, Elf *elf, uint64_t svma, ElfExtent *ret_gap);
/* Returns the variable that contains svma, one of the addresses, or NULL. */
const ElfSymbol *elf_symbols_find_data(const ElfSymbols *symbols, uint64_t svma);
void elf_symbols_free(ElfSymbols *symbols);

/*
 * .gnu_debugdata: an ELF file with a symbol table, compressed by xz into a section of the file that
 * it belongs to (Fedora's "MiniDebugInfo").
 */
typedef struct ElfDebugdata {
	Elf *elf; /* NULL: there is none, or it is broken */
	uint8_t *image;
} ElfDebugdata;

void elf_debugdata_open(ElfDebugdata *mini, Elf *elf);
void elf_debugdata_close(ElfDebugdata *mini);

/* Returns whether these are zeros, breakpoints, and the bytes of nops of all lengths. */
bool elf_is_padding(const uint8_t *bytes, size_t size);

/* ---- for elf_plt.c and elf_fde.c ------------------------------------------ */

/* Gives the section's bytes, owned by libelf, if they are in the file and of a reasonable size. */
bool elf_section_data(Elf_Scn *section, Elf_Data **ret_data);
/* Returns the section with this name, or NULL. */
Elf_Scn *elf_section_by_name(Elf *elf, const char *name, GElf_Shdr *ret_header);

#endif
