/* SPDX-License-Identifier: GPL-2.0-or-later */
/* summary.h - what wallprof prints at the end of a run. */
#ifndef WALLPROF_SUMMARY_H
#define WALLPROF_SUMMARY_H

#include "answer.h"
#include "frames.h"
#include "timeline.h"
#include <stdio.h>

#define SUMMARY_LINES 8 /* at most, without SummaryOptions::accounts */

typedef struct SummaryOptions {
	const char *profile; /* the file that was written */
	const char *capture; /* the capture that was kept; NULL = none */
	bool accounts;	     /* also print time by state and the kernel's account (accounts.h) */
} SummaryOptions;

/*
 * Prints how long it took, the largest parts of the critical path, what was waited for most, the
 * CPUs, what was lost if something was, and how to see more.
 */
void summary_print(FILE *file, const Timeline *timeline, Frames *frames,
		   const SummaryOptions *options);

#define SUMMARY_EXTRA_LINES 6

/* What is said after the parts of the answer, a line each, the most important first. */
typedef struct SummaryLines {
	char *list[SUMMARY_EXTRA_LINES];
	size_t count;
	bool has_cpus; /* one of them says how busy the CPUs were */
} SummaryLines;

/*
 * all: also what the summary has no room for where there is much to say. summary_lines_free() frees
 * the lines.
 */
SummaryLines summary_lines(const Timeline *timeline, Frames *frames, const Answer *answer,
			   bool all);
void summary_lines_free(SummaryLines *facts);

/*
 * Returns what was recorded, as a heading: "make -j4", "the whole system, during sleep 10". The
 * command is as it was given, so it may have any bytes. The caller frees it.
 */
char *summary_recorded(const Timeline *timeline);

/*
 * Returns what was recorded, and what the parts of the answer are parts of: "took 9.017 s (28
 * threads, 3 idle); critical path of make -j4:". The caller frees it.
 */
char *summary_title(const Timeline *timeline, const Answer *answer);

#endif
