/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_faults.h - the report's part on page faults.
 */
#ifndef WALLPROF_REPORT_FAULTS_H
#define WALLPROF_REPORT_FAULTS_H

#include "json_writer.h"
#include "timeline.h"
#include <stdio.h>

/* Nothing if there were none, and none were asked for. */
void report_faults_print(FILE *file, const Timeline *timeline);

/* The member "faults" of a thread: by class. */
void report_faults_of_thread(Json *json, const Thread *thread);

/* The member "faulted_files": the files that threads waited longest for in faults. */
void report_faulted_files(Json *json, const Timeline *timeline);

#endif
