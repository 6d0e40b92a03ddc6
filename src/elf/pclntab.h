/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pclntab.h - what a Go program's run-time system knows of its functions: their names, lines and
 * inlined calls, and how deep the stack is at each place. It is in every Go program, stripped or
 * not. Follows runtime/symtab.go and debug/gosym/pclntab.go of Go 1.18 to 1.27, whose words are
 * used: pclntab (the table), moduledata (which says where it is), funcdata, pcsp. Runs in the
 * sandbox; all input is untrusted.
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

/* Points into the ELF file. */
typedef struct Pclntab {
	uint64_t text;	/* SVMA that functions' places are counted from */
	uint32_t count; /* of functions */
	bool go118;	/* written by Go 1.18 or 1.19: records are shorter */
	PclntabBytes names, units, files, values, functions;
	PclntabBytes funcdata; /* inlined calls; empty if they were not found */
} Pclntab;

typedef struct PclntabFunction {
	uint64_t start, end;   /* SVMA */
	const uint8_t *record; /* of which all that it says to have is in the table */
	uint32_t name;	       /* in Pclntab::names */
	bool is_top;	       /* nothing of Go's is behind it (TOPFRAME) */
	bool moves_stack;      /* to somewhere that its table does not tell (SPWRITE) */
} PclntabFunction;

/*
 * Returns 0, -ENODATA if the file has no such table, or -ENOTSUP if it is of another version, or
 * broken. What is returned is good as long as the file is open.
 */
int pclntab_open(Elf *elf, Pclntab *ret_table);

/* The i-th in the order of addresses. Returns false if its record cannot be read. */
bool pclntab_function(const Pclntab *table, uint32_t i, PclntabFunction *ret_function);
/* The one that holds an address (SVMA), if there is one that can be read. */
bool pclntab_find(const Pclntab *table, uint64_t svma, PclntabFunction *ret_function);
/* "" if there is none. */
const char *pclntab_name(const Pclntab *table, uint32_t name);

/* Whether there are any depths: see pclntab_stack(). */
bool pclntab_has_stack(const PclntabFunction *function);

/* Values of a function, each of which holds from one place to another, in ascending order. */
typedef struct PclntabValues {
	const uint8_t *at, *stop;
	uint64_t from, to, end; /* SVMA */
	int32_t value;		/* holds from .. to */
	bool begun;
} PclntabValues;

/* How many bytes lie between the stack pointer and the return address (pcsp). */
PclntabValues pclntab_stack(const Pclntab *table, const PclntabFunction *function);
/* Returns false behind the last one, or the last one that can be read. */
bool pclntab_next(PclntabValues *values);

/* A function at a place: the real one, or one that was inlined there. */
typedef struct PclntabFrame {
	const char *name, *source; /* "" = unknown */
	uint32_t line;		   /* 0 = unknown */
} PclntabFrame;

#define PCLNTAB_FRAMES_MAX 64

/* Those at an address (SVMA) of the function, the innermost first. Returns how many; at least 1. */
size_t pclntab_frames(const Pclntab *table, const PclntabFunction *function, uint64_t svma,
		      PclntabFrame ret_frames[static PCLNTAB_FRAMES_MAX]);

/* ---- for pclntab.c and pclntab_find.c ------------------------------------- */

/* Where the table is. */
typedef struct PclntabLocation {
	PclntabBytes bytes;    /* from its header to the end of its section */
	uint64_t address;      /* SVMA */
	uint64_t text;	       /* see Pclntab */
	PclntabBytes funcdata; /* from where it begins to the end of its section; or empty */
} PclntabLocation;

#define PCLNTAB_HEADER 72 /* bytes */
/* Does a table of a known version begin there? */
bool pclntab_begins(PclntabBytes bytes);
/* Was it, whose header is there, written by Go 1.18 or 1.19? */
bool pclntab_is_118(PclntabBytes bytes);
/* As pclntab_open(). */
int pclntab_locate(Elf *elf, PclntabLocation *ret_place);

#endif
