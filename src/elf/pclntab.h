/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pclntab.h - reads the table of functions in a Go program: their names, lines and inlined calls,
 * and the depth of the stack at each address. It is in every Go program, stripped or not. Follows
 * runtime/symtab.go and debug/gosym/pclntab.go of Go 1.18 to 1.27, and uses their words: pclntab
 * (the table), moduledata (which says where it is), funcdata, pcsp. Runs in the sandbox; all input
 * is untrusted.
 */
#ifndef WALLPROF_PCLNTAB_H
#define WALLPROF_PCLNTAB_H

#include "util.h"
#include <gelf.h>

/* A part of the file. */
typedef struct PclntabBytes {
	const uint8_t *at;
	uint64_t size;
} PclntabBytes;

/* It points into the ELF file. */
typedef struct Pclntab {
	uint64_t text;	/* SVMA that is the base of functions' addresses */
	uint32_t count; /* of functions */
	bool go118;	/* written by Go 1.18 or 1.19: records are shorter */
	PclntabBytes names, units, files, values, functions;
	PclntabBytes funcdata; /* inlined calls; empty if they were not found */
} Pclntab;

typedef struct PclntabFunction {
	uint64_t start, end;   /* SVMA */
	const uint8_t *record; /* all parts that it states are inside the table */
	uint32_t name;	       /* in Pclntab::names */
	bool is_top;	       /* no frame of Go follows it (TOPFRAME) */
	bool moves_stack; /* it moves the stack to a place that its table does not have (SPWRITE) */
} PclntabFunction;

/*
 * Returns 0, -ENODATA if the file has no such table, or -ENOTSUP if it has another version or is
 * malformed. The result is valid as long as the file is open.
 */
int pclntab_open(Elf *elf, Pclntab *ret_table);

/* Gives the i-th function in the order of addresses. Returns false if its record cannot be read. */
bool pclntab_function(const Pclntab *table, uint32_t i, PclntabFunction *ret_function);
/*
 * Finds the function that contains an address (SVMA). Returns false if there is none that can be
 * read.
 */
bool pclntab_find(const Pclntab *table, uint64_t svma, PclntabFunction *ret_function);
/* Returns "" if there is none. */
const char *pclntab_name(const Pclntab *table, uint32_t name);

/* Returns whether there are any depths: see pclntab_stack(). */
bool pclntab_has_stack(const PclntabFunction *function);

/* Values of a function; each is valid for a range of addresses, in ascending order. */
typedef struct PclntabValues {
	const uint8_t *at, *stop;
	uint64_t from, to, end; /* SVMA */
	int32_t value;		/* valid in [from, to) */
	bool begun;
} PclntabValues;

/* Reads the number of bytes between the stack pointer and the return address (pcsp). */
PclntabValues pclntab_stack(const Pclntab *table, const PclntabFunction *function);
/* Returns false after the last value, or the last one that can be read. */
bool pclntab_next(PclntabValues *values);

/* A function at an address: the real one, or one that was inlined there. */
typedef struct PclntabFrame {
	const char *name, *source; /* "" = unknown */
	uint32_t line;		   /* 0 = unknown */
} PclntabFrame;

#define PCLNTAB_FRAMES_MAX 64

/*
 * Gives the functions at an address (SVMA) of the function, the innermost first. Returns their
 * number; at least 1.
 */
size_t pclntab_frames(const Pclntab *table, const PclntabFunction *function, uint64_t svma,
		      PclntabFrame ret_frames[static PCLNTAB_FRAMES_MAX]);

/* ---- for pclntab.c and pclntab_find.c ------------------------------------- */

/* Where the table is. */
typedef struct PclntabLocation {
	PclntabBytes bytes;    /* from its header to the end of its section */
	uint64_t address;      /* SVMA */
	uint64_t text;	       /* see Pclntab */
	PclntabBytes funcdata; /* from its beginning to the end of its section; or empty */
} PclntabLocation;

#define PCLNTAB_HEADER 72 /* bytes */
/* Returns whether a table of a known version begins there. */
bool pclntab_begins(PclntabBytes bytes);
/* Returns whether the table with this header was written by Go 1.18 or 1.19. */
bool pclntab_is_118(PclntabBytes bytes);
/* Returns as pclntab_open(). */
int pclntab_locate(Elf *elf, PclntabLocation *ret_place);

#endif
