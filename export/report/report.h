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
#include "timeline.h"
#include <stdio.h>

/*
 * Prints where the time went and the critical path; then time by state, losses, truncated stacks;
 * then the tables: the largest waits, the functions that ran most, processes and threads.
 */
void report_print(FILE *file, const Timeline *timeline, Frames *frames);

#define REPORT_FORMAT 2 /* raised when a member changes its meaning or is removed */

/*
 * {"format", "wallprof" (the version that recorded), "kernel", "command" (null: attached),
 *  "start_time" (of the window: "2026-11-24T15:41:52.123456789Z", or null), "complete" (false: the
 *  recording was cut off), "window_ns", "threads": [{"tid", "pid", "name", "process",
 * "lifetime_ns", "states": {"running", "runnable", "blocked", "unknown"}, "reasons": {"[leaf]":
 * ns}, "switch_outs", "kernel": {"sum_exec_runtime", "run_delay", "nvcsw", "nivcsw"} or null}],
 *  "totals": {"switch": {"sent", "received", "lost" (in the whole recording, of which a flight
 * recorder, or --from and --to, leave a part), "lost_in_window"}, …},
 *  "losses": [{"kind", "cause", "cpu", "count", "from_ns", "to_ns"}],
 *  "stacks": {"walked", "whole", "guessed", "stale", "from_copy", "results": {"complete": count,
 * …}, "objects": [{"name", "path", "results": {"gap": count, …}}]}, "contradictions"}
 *
 * Stacks are counted by the ticks and switch-outs that have a user stack; objects are those that
 * their outermost frames lie in (name and path null: it is known of none), with what is
 * not 0. Further members: report_sections.h (function: the only one in "functions", or NULL).
 * Times are nanoseconds, moments since the window's beginning: of what was lost
 * before it they are negative. A run_delay that the kernel does not keep is null.
 */
void report_json(Output *output, const Timeline *timeline, Frames *frames, const char *function);

#endif
