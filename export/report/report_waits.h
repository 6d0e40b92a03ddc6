/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_waits.h - what the report says of intervals in which threads were not running: how much
 * of them was for what, and for which file.
 */
#ifndef WALLPROF_REPORT_WAITS_H
#define WALLPROF_REPORT_WAITS_H

#include "json_writer.h"
#include "timeline.h"
#include <stdio.h>

/*
 * The largest sums by reason, idle ones apart, and of each the files with the most of it. Behind a
 * file whose requests were waited for: how fast these were done, reads or writes, in the time that
 * there were any or that a thread waited for one; nothing if it is not known when all of them were
 * made.
 */
void report_waits_print(FILE *file, const Timeline *timeline);

/* The member "waited_objects" of the whole report: by reason and file, the largest first. */
void report_waited_objects(Json *json, const Timeline *timeline);

#endif
