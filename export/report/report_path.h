/* SPDX-License-Identifier: GPL-2.0-or-later */
/* report_path.h - of the report: what set how long the run took (critical_path.h). */
#ifndef WALLPROF_REPORT_PATH_H
#define WALLPROF_REPORT_PATH_H

#include "frames.h"
#include "json_writer.h"
#include "timeline.h"
#include <stdio.h>

/* One line: which threads are on the path most; or why there is none. */
void report_path_line(FILE *file, const Timeline *timeline);

/* The whole: by thread, by place, and what of it is not known. */
void report_path_print(FILE *file, const Timeline *timeline, Frames *frames);

/*
 * The member "critical_path": null, and why in "no_critical_path"; or {"end_tid", "length_ns",
 * "lost_ns", "outside_ns", "unknown_waker_ns", "threads": [{"tid", "name", "ns", "running_ns",
 * "runnable_ns", "blocked_ns", "times"}], "reasons": {"[leaf]": ns}, "places": [{"name",
 * "category", "ns"}]}; threads and places in falling order of ns.
 */
void report_path(Json *json, const Timeline *timeline, Frames *frames);

#endif
