/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kept_rows.h - the rows of all threads, made once and passed on several times.
 *
 * A row takes about 10 bytes: most numbers are small, as differences to the row before, and the
 * bytes of a number are as many as it needs.
 */
#ifndef WALLPROF_KEPT_ROWS_H
#define WALLPROF_KEPT_ROWS_H

#include "util.h"

typedef struct Row {
	uint64_t ns; /* CLOCK_MONOTONIC; never decreases within a thread */
	uint64_t weight_ns;
	uint64_t running_ns; /* the thread's running time up to ns */
	uint32_t stack;	     /* stackTable; 0 unless the walk has with_stacks */
} Row;

typedef void (*RowVisitor)(void *user, const Row *row);

/* All zeros: nothing is kept. */
typedef struct KeptRows {
	VEC(uint8_t) bytes;
	VEC(size_t) ends; /* of each thread: where its rows end in bytes */
	Row last;	  /* of the thread that is being added */
} KeptRows;

/* Adds a row of the thread after those that were ended. */
void kept_rows_add(KeptRows *kept, const Row *row);
void kept_rows_end_thread(KeptRows *kept);
/* Passes the rows of a thread that was ended, in their order. */
void kept_rows_visit(const KeptRows *kept, size_t thread, RowVisitor visit, void *user);
void kept_rows_free(KeptRows *kept);

#endif
