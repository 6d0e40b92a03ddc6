/* SPDX-License-Identifier: GPL-2.0-or-later */
/* answer_private.h - what the files of the answer share. */
#ifndef WALLPROF_ANSWER_PRIVATE_H
#define WALLPROF_ANSWER_PRIVATE_H

#include "functions.h"
#include "reason.h"
#include "timeline.h"

/* What has so much of a part's time is where the time went. */
#define ANSWER_MOST 0.5

/* Where a part's time went: a stack, and the time that it stands for. */
typedef struct Evidence {
	uint32_t user_stack, kernel_stack;
	uint32_t ns_tgid;
	uint64_t stack_ns; /* when it was taken */
	uint64_t ns;
} Evidence;

/* Time for one object. */
typedef struct ObjectTime {
	uint32_t object; /* Timeline::objects, each name once */
	uint64_t ns;
} ObjectTime;

typedef struct Portion {
	uint32_t who;	    /* Maker::labels */
	enum reason reason; /* REASON_NONE: running */
	uint64_t ns, count; /* count: of intervals */
	uint32_t thread;    /* the first of its threads (Timeline::threads) */
	size_t threads, processes;
	Map evidence_index; /* stacks -> evidence */
	VEC(Evidence) ticks;
	VEC(Evidence) switch_outs; /* used if no tick hit the part */
	VEC(ObjectTime) objects;
	Map thread_index, process_index, object_index;
	char *joined; /* waits for a CPU of several programs, and what is said of them; or NULL */
} Portion;

typedef struct Maker {
	const Timeline *timeline;
	Frames *frames;
	Functions functions;
	Strings labels;
	Map label_of; /* Timeline::threads -> labels */
	VEC(Portion) parts;
	Map index; /* (who, reason) -> parts */
	bool idle; /* idle waits are wanted, instead of all else */
} Maker;

/*
 * Returns " in memcpy ← copy_row", " in wait_for ← commit", or "": the innermost functions of the
 * program that have most of the part's time. Where it ran, the language's function (the C
 * library's, or one of a module that comes with Python) is news; where it waited, the reason says
 * the same, but a program has wrappers of its own, so it has two names. If the innermost one has no
 * name, the language's says more. The caller frees it.
 */
char *answer_function(Maker *maker, const Portion *part);

/*
 * Joins the waits for a CPU of all programs: that there are too few CPUs is one fact about a whole
 * system, and many small parts would hide it. "9 programs: waiting for a CPU (postgres 85 %, backup
 * 9 %)" has those that waited most.
 */
void answer_join_cpu_waits(Maker *maker);

void answer_free_portion(Portion *part);

#endif
