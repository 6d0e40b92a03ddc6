/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf_map.h - parses the text in which programs name the code that they make at run time:
 * /tmp/perf-PID.map, a line "START SIZE NAME" for each piece, START and SIZE in hexadecimal (with
 * or without 0x). Linux: tools/perf/Documentation/jit-interface.txt.
 *
 * Works on memory and touches nothing else, so that it can run in a sandbox.
 */
#ifndef WALLPROF_PERF_MAP_H
#define WALLPROF_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>

typedef struct PerfMapPiece {
	uint64_t start;	  /* AVMA */
	uint64_t size;	  /* above 0; start + size does not wrap around */
	const char *name; /* points into the text: it is not terminated, but may contain NUL */
	size_t name_size; /* above 0 */
} PerfMapPiece;

typedef struct PerfMapSummary {
	uint64_t pieces;
	uint64_t malformed; /* lines of another form; empty ones are not counted */
	size_t torn_bytes;  /* of an incomplete last line, skipped */
} PerfMapSummary;

/* Calls visit for each piece in the order of the text; later ones override earlier ones. */
void perf_map_parse(const char *text, size_t size,
		    void (*visit)(void *user, const PerfMapPiece *piece), void *user,
		    PerfMapSummary *ret_summary);

#endif
