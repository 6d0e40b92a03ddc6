/* SPDX-License-Identifier: GPL-2.0-or-later */
/* summary.h - what wallprof prints at the end of a run. */
#ifndef WALLPROF_SUMMARY_H
#define WALLPROF_SUMMARY_H

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

#endif
