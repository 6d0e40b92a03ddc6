/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * speedscope_folds.h - what is drawn of a thread: its spans, or, where they are short and too many,
 * one for each stack in a piece of time.
 *
 * Within a piece the order is lost, and every sum is kept.
 */
#ifndef WALLPROF_SPEEDSCOPE_FOLDS_H
#define WALLPROF_SPEEDSCOPE_FOLDS_H

#include "stack_spans.h"

/* A part of a thread's time that is drawn. */
typedef struct Drawn {
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	uint32_t stack;		   /* stackTable */
	bool running;
} Drawn;

typedef void (*DrawnVisitor)(void *user, const Drawn *drawn);

/* What is kept of a thread while it is walked, and what all threads have in common. */
typedef struct Folds {
	StackTable *tables;
	uint32_t hidden; /* states */
	/* Shorter spans are folded; 0: none are. */
	uint64_t fold_ns;
	DrawnVisitor visit;
	void *user;
	uint32_t recording;	   /* stackTable */
	uint64_t recording_ns;	   /* recording's share that is not drawn yet */
	uint64_t piece_ns, end_ns; /* where the present piece begins and ends */
	Map index;		   /* (stack, running) -> list */
	VEC(Drawn) list;	   /* of the piece: start_ns is 0, end_ns how long */
	VEC(uint32_t) depths;	   /* of stackTable, as far as it was needed: frames */
} Folds;

/* Finds the shortest fold_ns by which all threads together keep to the budget of events. */
void speedscope_folds_init(Folds *folds, StackTable *tables, uint32_t hidden, uint64_t budget);
void speedscope_folds_free(Folds *folds);

/* Passes what is drawn of a thread to the visitor, in order of time. */
void speedscope_folds_walk(Folds *folds, const Thread *thread, DrawnVisitor visit, void *user);

#endif
