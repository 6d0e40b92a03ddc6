/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_cpu_users.h - of the report: what had the CPUs while threads waited for them
 * (cpu_users.h). There are no percentiles: the parts of all waits together may be many more than
 * the waits, and are not kept.
 */
#ifndef WALLPROF_REPORT_CPU_USERS_H
#define WALLPROF_REPORT_CPU_USERS_H

#include "json_writer.h"
#include "timeline.h"
#include <stdio.h>

void report_cpu_users_print(FILE *file, const Timeline *timeline);

/*
 * The member "rivals": [{"name", "tid", "count", "total_ns", "mean_ns", "max_ns",
 * "untimed_count"}], in falling order of their time. tid 0: no task, but "CPU idle", "not seen" or
 * "migrated". untimed_count: waits in which the task is known to have had the CPU, but not for how
 * long; these are not in count.
 */
void report_cpu_users(Json *json, const Timeline *timeline);

#endif
