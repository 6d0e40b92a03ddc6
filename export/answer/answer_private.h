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
	/* function -> the only one that called it in any wait; for answer_place() */
	Map callers;
	bool knows_callers;
	bool idle; /* idle waits are wanted, instead of all else */
} Maker;

/*
 * Returns " in memcpy ← copy_row", " in wait_for ← commit", or "": the innermost functions of the
 * program that have most of the part's time. Where it ran, the language's function (the C
 * library's, or one of a module that comes with Python) is news; where it waited, the reason says
 * the same, but a program has wrappers of its own, so it has two names (answer_place()). If the
 * innermost one has no name, the language's says more, or one around it. What is true of less than
 * nearly all of the part's time has its share: ", 75 % in wait_latch ← lock_row". The caller frees
 * it.
 */
char *answer_function(Maker *maker, const Portion *part);

/* Returns a part's ticks or, if it has none, the stacks at the ends of its intervals. */
const Evidence *answer_evidence(const Portion *part, size_t *ret_count);
/*
 * Returns the number of a stack's frames (Frames::list), the outermost first, without wrappers of
 * system calls; of a thread without user frames these are the kernel's. They are valid until the
 * next call.
 */
size_t answer_frames(Maker *maker, const Evidence *evidence, const uint32_t **ret_frames);
/* Returns the function of a frame, or UINT32_MAX: it has none, or is the interpreter's. */
uint32_t answer_frame_function(Maker *maker, uint32_t frame);
/* Whether a function has a name and is the program's, but not what starts a program or a thread. */
bool answer_says_where(const Maker *maker, uint32_t function);

/* Two functions of the program in which it waited. */
typedef struct AnswerPlace {
	uint32_t function; /* Maker::functions */
	uint32_t caller;   /* the same, or UINT32_MAX */
	uint64_t ns;	   /* of the stacks with both */
} AnswerPlace;

/*
 * Returns the place of a part's waits. `own` is the innermost function in which the program waited,
 * often a wrapper that says no more than the reason ("wait_event ← wait_latch"): functions that
 * have several callers in the part, or in other waits of the recording, are left out up to where
 * the calls differ, or come from a function that has one caller.
 */
AnswerPlace answer_place(Maker *maker, const Portion *part, uint32_t own);

/*
 * Joins the waits for a CPU of all programs: that there are too few CPUs is one fact about a whole
 * system, and many small parts would hide it. "9 programs: waiting for a CPU (postgres 85 %, backup
 * 9 %)" has those that waited most.
 */
void answer_join_cpu_waits(Maker *maker);

void answer_free_portion(Portion *part);

#endif
