/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_groups.h - of the report: the largest waits with what they were for and where, the waits
 * below each function, those that nothing explains.
 */
#ifndef WALLPROF_REPORT_GROUPS_H
#define WALLPROF_REPORT_GROUPS_H

#include "frames.h"
#include "json_writer.h"
#include "timeline.h"
#include <stdio.h>

void report_groups_print(FILE *file, const Timeline *timeline, Frames *frames);

/* Only the functions of that name, with what is idle. Returns whether anybody waited below one. */
bool report_function_print(FILE *file, const Timeline *timeline, Frames *frames, const char *name);

/*
 * The members "waits": [{"reason", "evidence" or null, "object" or null, "chain", "threads",
 * "then_runnable_ns", and
 * those of distribution_json()}], "functions": [{"function", "library" or null, "threads",
 * …}] (only those called `function` if that is not NULL, with what is idle), "blocked_ns" (all of
 * "waits", that is, without what is idle), "other_ns" (of that, named by the state alone). All in
 * falling order of total_ns.
 */
void report_groups(Json *json, const Timeline *timeline, Frames *frames, const char *function);

#endif
