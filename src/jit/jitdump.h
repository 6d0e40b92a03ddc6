/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jitdump.h - reads the file in which programs write down the code that they make at run
 * time, with times and source lines: jit-PID.dump, version 1. Linux:
 * tools/perf/Documentation/jitdump-specification.txt.
 *
 * Works on memory and touches nothing else, so that it can run in a sandbox. Texts are
 * in that memory and end in NUL.
 */
#ifndef WALLPROF_JITDUMP_H
#define WALLPROF_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Code was put somewhere. */
typedef struct JitdumpLoad {
	uint64_t ns;	      /* CLOCK_MONOTONIC; 0 if the dump's clock is another */
	uint32_t pid;	      /* in the program's own PID namespace */
	uint64_t start, size; /* AVMA; size is above 0, start + size does not wrap around */
	uint64_t index;	      /* what JitdumpMove::index means; unique in a dump */
	uint64_t offset;      /* of the code's bytes in the dump; all `size` are there */
	const char *name;
} JitdumpLoad;

/* It is somewhere else now. */
typedef struct JitdumpMove {
	uint64_t ns;
	uint64_t old_start, new_start, size; /* as in JitdumpLoad */
	uint64_t index;
} JitdumpMove;

/* From this address on (until that of the next line of the same code) it was made of this line. */
typedef struct JitdumpLine {
	uint64_t code_start; /* of the code that is loaded next */
	uint64_t address;
	uint32_t line;
	const char *source;
} JitdumpLine;

typedef struct JitdumpVisitor {
	void (*load)(void *user, const JitdumpLoad *load);
	void (*move)(void *user, const JitdumpMove *move);
	void (*line)(void *user, const JitdumpLine *line); /* before the load they are of */
	void *user;
} JitdumpVisitor;

typedef struct JitdumpSummary {
	uint32_t pid; /* of the header */
	uint64_t loads, moves, lines;
	uint64_t malformed; /* records that contradict themselves, left out */
	uint64_t unknown;   /* records of kinds that version 1 does not have, left out */
	size_t torn_bytes;  /* behind the last whole record: it was being written */
	bool no_times;	    /* by the processor's clock: all ns are 0, the order counts */
} JitdumpSummary;

/*
 * Visits all records in order. Returns 0; -EBADMSG if this is no jitdump;
 * -EPROTONOSUPPORT if it is of another version or byte order. Then nothing was visited.
 */
int jitdump_parse(const void *data, size_t size, const JitdumpVisitor *visitor,
		  JitdumpSummary *ret_summary);

#endif
