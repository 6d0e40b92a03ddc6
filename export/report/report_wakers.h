/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_wakers.h - of the report: wakers, lock holders, and how long it took until a CPU was free.
 */
#ifndef WALLPROF_REPORT_WAKERS_H
#define WALLPROF_REPORT_WAKERS_H

#include "frames.h"
#include "json_writer.h"
#include "timeline.h"
#include <stdio.h>

void report_wakers_print(FILE *file, const Timeline *timeline, Frames *frames);

/*
 * The members "wakers", "holders": [{"name", "tid", "chain", and those of distribution_json()}], in
 * falling order of the time that was waited for them, and "run_queue": {"[leaf]": {…}}. tid 0: no
 * task, but an interrupt, or "unknown".
 */
void report_wakers(Json *json, const Timeline *timeline, Frames *frames);

#endif
