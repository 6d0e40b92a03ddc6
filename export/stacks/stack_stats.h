/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_stats.h - how the user stacks of a recording end, and in which objects. It counts
 * references, which are the window's ticks and switch-outs that have a user stack, not definitions.
 * Running time is counted separately, as rows weigh it: many switch-outs can be of a program that
 * rarely runs.
 */
#ifndef WALLPROF_STACK_STATS_H
#define WALLPROF_STACK_STATS_H

#include "frames.h"
#include "timeline.h"

typedef struct StackObject {
	uint32_t lib; /* of the outermost frames; LIBRARY_NONE: none is known */
	uint64_t counts[STACK_ENDS];
} StackObject;

/* The number of stacks that end for one reason in one object. */
typedef struct StackShortage {
	const char *object; /* the library's name; "[unknown]" if there is none */
	enum stack_end end;
	uint64_t count;
} StackShortage;

/* The number of stacks that are truncated in one kind of code, and of those guessed from there. */
typedef struct StackCode {
	uint64_t cut, guessed;
} StackCode;

typedef struct StackStats {
	bool by_frame_pointers; /* as the recorder was configured: completeness is unknown */
	uint64_t walked;
	uint64_t complete;
	uint64_t counts[STACK_ENDS];
	uint64_t running_walked_ns;   /* running time of which the tick or switch-out has a stack */
	uint64_t running_complete_ns; /* the part of it with a complete one */
	uint64_t guessed;   /* some frames were found by frame pointers or an uncertain rule */
	uint64_t from_copy; /* walked by the recorder */
	uint64_t deep;	    /* some frames were left out */
	uint64_t joined;    /* of these, those with STACK_JOINED */
	uint64_t deeper;    /* of these, those whose number of frames is not known */
	uint32_t deepest;   /* frames of the deepest stack, as far as known */
	StackCode code[CODE_KINDS];
	VEC(StackObject) objects;  /* by name, then by first occurrence */
	VEC(StackShortage) shorts; /* truncated stacks, the largest count first */
} StackStats;

/* Names in it belong to frames->libraries. */
void stack_stats_init(StackStats *sums, const Timeline *timeline, Frames *frames);
void stack_stats_free(StackStats *sums);

/*
 * Returns "1234 walked, 99.87 % complete; stacks complete for 46.0 % of running time". The caller
 * frees it.
 */
char *stack_stats_line(const StackStats *sums);

#endif
