/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jitdump.h - parses the file in which programs describe the code that they make at run time, with
 * times and source lines: jit-PID.dump, version 1. Linux:
 * tools/perf/Documentation/jitdump-specification.txt.
 *
 * Works on memory and touches nothing else, so that it can run in a sandbox. Texts point into that
 * memory and are terminated.
 */
#ifndef WALLPROF_JITDUMP_H
#define WALLPROF_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Code was written to memory. */
typedef struct JitdumpLoad {
	uint64_t ns;	      /* CLOCK_MONOTONIC; 0 if the dump uses another clock */
	uint32_t pid;	      /* in the program's own PID namespace */
	uint64_t start, size; /* AVMA; size is above 0, start + size does not wrap around */
	uint64_t index;	      /* JitdumpMove::index refers to it; unique in a dump */
	uint64_t offset;      /* of the code's bytes in the dump; all `size` bytes are there */
	const char *name;
} JitdumpLoad;

/* Code was moved. */
typedef struct JitdumpMove {
	uint64_t ns;
	uint64_t old_start, new_start, size; /* as in JitdumpLoad */
	uint64_t index;
} JitdumpMove;

/* The code from this address on, up to that of the next line of the same code, is of this line. */
typedef struct JitdumpLine {
	uint64_t code_start; /* of the code of the next load */
	uint64_t address;
	uint32_t line;
	const char *source;
} JitdumpLine;

typedef struct JitdumpVisitor {
	void (*load)(void *user, const JitdumpLoad *load);
	void (*move)(void *user, const JitdumpMove *move);
	void (*line)(void *user, const JitdumpLine *line); /* before the load of their code */
	void *user;
} JitdumpVisitor;

typedef struct JitdumpSummary {
	uint32_t pid; /* of the header */
	uint64_t loads, moves, lines;
	uint64_t malformed; /* records that contradict themselves, skipped */
	uint64_t unknown;   /* records of kinds that version 1 does not have, skipped */
	size_t torn_bytes;  /* after the last complete record */
	bool no_times; /* the dump uses the processor's clock: all ns are 0, only the order counts
			*/
} JitdumpSummary;

/* A dump that is parsed in parts. The visitor and all zeros is one that has not begun. */
typedef struct JitdumpParser {
	const JitdumpVisitor *visitor;
	JitdumpSummary summary;
	uint64_t offset;     /* of the next part in the dump */
	uint64_t line_bias;  /* the error in the addresses of lines */
	bool begun;	     /* the header was parsed */
	const uint8_t *data; /* the current part */
} JitdumpParser;

/*
 * Visits the complete records of a part, which begins at parser->offset of the dump; the first part
 * has the header. Returns 0, with *ret_used, which the next part begins behind, or an error of
 * jitdump_parse(). If nothing was used, the record needs a larger part. skip: a record that is
 * larger than the part is skipped instead, and *ret_used may be larger than the part.
 */
int jitdump_parse_part(JitdumpParser *parser, const void *data, size_t size, bool skip,
		       size_t *ret_used);

/* Takes the rest, which is no complete record, into account in the summary. */
void jitdump_end(JitdumpParser *parser, const void *data, size_t size);

/*
 * Visits all records in order. Returns 0; -EBADMSG if this is no jitdump;
 * -EPROTONOSUPPORT if it is of another version or byte order. Then nothing was visited.
 */
int jitdump_parse(const void *data, size_t size, const JitdumpVisitor *visitor,
		  JitdumpSummary *ret_summary);

#endif
