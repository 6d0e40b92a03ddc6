/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_table.h - the content of a perf map or a jitdump: which code made at run time was at an
 * address, and when. A table is for one file.
 *
 * Works on memory and touches nothing else, so that it can run in a sandbox.
 */
#ifndef WALLPROF_JIT_TABLE_H
#define WALLPROF_JIT_TABLE_H

#include "jitdump.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names are cut to this many bytes. */
#define JIT_NAME_MAX 4096
/* Offsets stay below this, so that doubles in JSON can hold them. */
#define JIT_SVMA_MAX (1ULL << 52)

/* A piece of code, at its address from a moment on. */
typedef struct JitPiece {
	uint64_t ns;	     /* CLOCK_MONOTONIC; 0: always */
	uint64_t start, end; /* AVMA */
	/*
	 * The SVMA of start. Different pieces have different ones; in a jitdump it is the offset of
	 * the code's bytes, in a perf map the sum of the sizes of the pieces before.
	 */
	uint64_t svma;
	const char *name; /* as the program wrote it; empty if there is none */
	uint32_t code;	  /* internal */
	bool repeated;	  /* internal: it was replaced */
	bool found;	  /* by jit_table_find() */
} JitPiece;

typedef struct JitTableSummary {
	uint64_t pieces;	/* repetitions with the same time are counted once */
	uint64_t malformed;	/* lines or records that contradict themselves, skipped */
	uint64_t unknown;	/* records of unknown kinds */
	uint64_t moves_unknown; /* moves of code that was never loaded */
	uint64_t lines_unused; /* source lines of code that was not loaded next, or that are outside
				  of it */
	uint64_t names_cut;
	uint64_t no_room;  /* skipped: the offsets would exceed JIT_SVMA_MAX */
	size_t torn_bytes; /* of a last line or record that is incomplete */
	bool no_times;	   /* only the last code at each address is known */
} JitTableSummary;

typedef struct JitTable JitTable;

JitTable *jit_table_new(void);
void jit_table_free(JitTable *table);

/*
 * Of files that are added later, only the pieces that have one of these addresses are kept, and the
 * pieces from which such a one was moved: a file can have millions. The addresses are sorted, and
 * must stay.
 */
void jit_table_limit(JitTable *table, const uint64_t *addresses, size_t count);

/* A map can be added in parts, each of which ends with a line. */
void jit_table_add_perf_map(JitTable *table, const char *text, size_t size);

/*
 * A dump is read several times, because code may be moved to an address long after it was loaded,
 * and its lines come before it. Each pass is begun, then all parts are parsed with the parser
 * (jitdump_parse_part()), then it is ended; jit_table_end_pass() returns whether the table needs
 * another pass.
 */
void jit_table_begin_pass(JitTable *table, JitdumpParser *parser);
bool jit_table_end_pass(JitTable *table, const JitdumpParser *parser);

/* Adds a dump that is in memory. Returns 0, or jitdump_parse()'s error; then nothing was added. */
int jit_table_add_jitdump(JitTable *table, const void *data, size_t size);

const JitTableSummary *jit_table_summary(const JitTable *table);

/*
 * Calls visit for every piece that was ever at avma, the youngest first; pieces stay until the
 * table is freed. All files must be added before the first call. O(log² n) a piece.
 */
void jit_table_find(JitTable *table, uint64_t avma,
		    void (*visit)(void *user, const JitPiece *piece), void *user);

/*
 * Calls visit once for every piece that was found so far, in the order of the file: of two with one
 * time the later one counts where they overlap.
 */
void jit_table_all_found(JitTable *table, void (*visit)(void *user, const JitPiece *piece),
			 void *user);

/*
 * Finds the source line of avma, inside of a piece. Returns false if it is not known. *ret_source
 * stays valid until the table is freed.
 */
bool jit_table_line(const JitTable *table, const JitPiece *piece, uint64_t avma,
		    const char **ret_source, uint32_t *ret_line);

#endif
