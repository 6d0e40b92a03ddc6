/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report.h - a timeline as text, and as JSON for other programs.
 *
 * Names come from the recorded processes: their control characters are not passed to the terminal.
 */
#ifndef WALLPROF_REPORT_H
#define WALLPROF_REPORT_H

#include "frames.h"
#include "output.h"
#include "page.h"
#include "timeline.h"
#include <stdio.h>

/* What of a report is wanted. */
typedef struct ReportSelection {
	const char *section; /* only this one (report_section_name()); NULL: the page */
	bool full;	     /* all sections and all rows, instead of the page */
	size_t top;	     /* rows of each table; 0: what fits the page, or all */
	/* What one thread did, event by event (Timeline::threads); THREAD_NONE: the report. */
	uint32_t timeline;
	uint64_t limit; /* of the JSON, in bytes; 0: none */
} ReportSelection;

/* Returns the name of section i; NULL: there are no more. */
const char *report_section_name(size_t i);

/*
 * Prints a page of at most 40 lines: what the run waited for (its critical path), then tables of
 * the largest waits, lock holders, functions, …; or what the selection wants instead.
 */
void report_print(const Page *page, const Timeline *timeline, Frames *frames,
		  const ReportSelection *selection);

/* Prints the critical path alone; of the selection only `top` counts. */
void report_print_path(const Page *page, const Timeline *timeline, Frames *frames,
		       const ReportSelection *selection);

/*
 * Prints the waits below functions of that name; returns whether there are any. Of the selection
 * only `top` counts.
 */
bool report_print_function(const Page *page, const Timeline *timeline, Frames *frames,
			   const char *name, const ReportSelection *selection);

#define REPORT_FORMAT 2 /* raised when a member changes its meaning or is removed */

/*
 * {"format", "wallprof" (the version that recorded), "kernel", "command" (null: attached),
 *  "start_time" (of the window: "2026-11-24T15:41:52.123456789Z", or null), "complete" (false: the
 *  recording was cut off), "window_ns", "threads": [{"tid", "pid", "name", "process",
 * "lifetime_ns", "states": {"running", "runnable", "blocked", "unknown"}, "reasons": {"[leaf]":
 * ns}, "switch_outs", "kernel": {"sum_exec_runtime", "run_delay", "nvcsw", "nivcsw", …,
 *  "clock_ahead"} or null}],
 *  "totals": {"switch": {"sent", "received", "lost" (in the whole recording, of which a flight
 * recorder, or --from and --to, leave a part), "lost_in_window"}, …},
 *  "losses": [{"kind", "cause", "cpu", "count", "from_ns", "to_ns"}],
 *  "stacks": {"walked", "whole", "guessed", "stale", "from_copy", "deep", "joined",
 *    "deepest", "results": {"complete": count,
 * …}, "objects": [{"name", "path", "results": {"gap": count, …}}]}, "contradictions"}
 *
 * Stacks are counted by the ticks and switch-outs that have a user stack; objects are those that
 * their outermost frames lie in (name and path null: it is known of none), with what is
 * not 0. Further members: report_sections.h (function: the only one in "functions", or NULL).
 * Times are nanoseconds, moments since the window's beginning: of what was lost
 * before it they are negative. A run_delay that the kernel does not keep is null.
 */
void report_json(Output *output, const Timeline *timeline, Frames *frames, const char *function);

/*
 * Writes a part of it: of one section, with so many elements of each list, of at most so many
 * bytes, or the timeline of a thread. What matters most is kept and comes first; the member
 * "omitted" counts what is not there. Returns 0; or -ENOSPC if the limit is too small, and sets
 * *ret_smallest to the smallest one that is possible.
 */
int report_json_part(Output *output, const Timeline *timeline, Frames *frames, const char *function,
		     const ReportSelection *selection, uint64_t *ret_smallest);

#endif
