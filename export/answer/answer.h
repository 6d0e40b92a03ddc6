/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * answer.h - where the time went, in a few lines: the first thing that a summary and a report say.
 *
 * The time is that of the critical path or, without a path, of all threads without their idle waits
 * (idle.h); of the whole system without all waits but those for disks, pages and locks. If the
 * threads did nothing but wait idly, as those of a program that hangs, these waits are the answer.
 * The time is divided into parts: what the threads of one label (Process::label) did or waited for.
 * Parts are made from the intervals, so they add up to the time exactly.
 */
#ifndef WALLPROF_ANSWER_H
#define WALLPROF_ANSWER_H

#include "frames.h"
#include "timeline.h"

typedef struct AnswerPart {
	uint64_t ns;
	/* "cc1 slow.c", "bio_close_file (redis-server)", "sleep 1 (20 processes)" */
	char *who;
	/* "running in execute_pass_list", "[fsync wait] of …/db.wal in fsync ← commit, 300 times"
	 */
	char *what;
	enum reason reason; /* of the wait; REASON_NONE: it ran */
} AnswerPart;

typedef struct Answer {
	bool is_path;	  /* the time is that of the critical path */
	bool is_idle;	  /* the parts are idle waits, because there is nothing else */
	uint64_t all_ns;  /* of the parts */
	uint64_t busy_ns; /* is_idle: what there is else, */
	char *busy;	  /* and the largest part of it; NULL: nothing */
	uint64_t idle_ns;
	size_t idle_threads;   /* not on the path, and idle for nearly all of their time */
	VEC(AnswerPart) parts; /* the largest first, at most as many as were asked for */
	size_t others;	       /* how many more there are, and their time */
	uint64_t others_ns;
	char *deadlock; /* deadlock_text() */
	/* "child process wait for cc1 slow.c"; NULL: nothing that has a name, is not in the first
	 * part and took at least 0.5 % of the time */
	char *waited_for;
	uint64_t waited_ns; /* on the path for that; without a path, of all threads */
} Answer;

/*
 * Makes the answer with at most `most` parts. All texts are fit for a terminal. The caller frees it
 * with answer_free().
 */
Answer answer_make(const Timeline *timeline, Frames *frames, size_t most);
void answer_free(Answer *answer);

/*
 * Returns whether part i is so small, beside all or beside the largest, that it is not worth a
 * line.
 */
bool answer_is_small(const Answer *answer, size_t i);

/*
 * Returns the time that the first `shown` parts do not have, and sets how many parts have it, so
 * that a list adds up. 0: that is hardly any.
 */
uint64_t answer_rest(const Answer *answer, size_t shown, size_t *ret_count);

/* Returns whether most of the time was waited for a CPU. Then the line about CPUs says why. */
bool answer_is_of_cpus(const Answer *answer);

#endif
