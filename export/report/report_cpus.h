/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_cpus.h - who had which CPU, if the whole system was recorded.
 */
#ifndef WALLPROF_REPORT_CPUS_H
#define WALLPROF_REPORT_CPUS_H

#include "json_writer.h"
#include "timeline.h"
#include <stdio.h>

/* A line for each CPU; nothing if it was not recorded. */
void report_cpus_print(FILE *file, const Timeline *timeline);

/* The member "cpus": of each its number, and ns: idle, unknown, and those of each tid. */
void report_cpus(Json *json, const Timeline *timeline);

#endif
