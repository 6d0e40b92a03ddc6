/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_stats.h - how the user stacks of a recording end, and in which objects: counted by
 * references, which are the window's ticks and switch-outs that have a user stack, not by
 * definitions. Running time is counted beside that, as rows weigh it: many switch-outs can be of
 * a program that runs elsewhere.
 */
#ifndef WALLPROF_STACK_STATS_H
#define WALLPROF_STACK_STATS_H

#include "frames.h"
#include "timeline.h"

typedef struct StackObject {
	uint32_t lib; /* of the outermost frames; LIBRARY_NONE: known of none */
	uint64_t counts[STACK_ENDS];
} StackObject;

/* So many stacks end so in an object. */
typedef struct StackShortage {
	const char *object; /* the library's name; "[unknown]" if there is none */
	enum stack_end end;
	uint64_t count;
} StackShortage;

typedef struct StackStats {
	bool by_frame_pointers; /* as the recorder was told: nobody knows which are whole */
	uint64_t walked;
	uint64_t whole;
	uint64_t counts[STACK_ENDS];
	uint64_t running_walked_ns; /* running time of which the tick or switch-out has a stack */
	uint64_t running_whole_ns;  /* of that, with a whole one */
	uint64_t guessed;   /* some frames were found by frame pointers or an uncertain rule */
	uint64_t from_copy; /* walked by the recorder */
	VEC(StackObject) objects;  /* by name, then in order of appearance */
	VEC(StackShortage) shorts; /* what is not whole, the most first */
} StackStats;

/* Names in it are those of frames->libraries. */
void stack_stats_init(StackStats *sums, const Timeline *timeline, Frames *frames);
void stack_stats_free(StackStats *sums);

/* "1234 walked, 99.87 % whole; 46.0 % of running time has whole stacks": to be freed. */
char *stack_stats_line(const StackStats *sums);

#endif
