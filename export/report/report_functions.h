/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_functions.h - of the report: in which functions threads ran, in themselves and in what
 * they called.
 */
#ifndef WALLPROF_REPORT_FUNCTIONS_H
#define WALLPROF_REPORT_FUNCTIONS_H

#include "json_writer.h"
#include "report_places.h"
#include <stdio.h>

/* Those with the most time of their own; nothing if nobody ran. */
void report_functions_print(FILE *file, const Places *places);

/*
 * The members "running_functions": [{"function", "library" or null, "kernel", "self_ns",
 * "total_ns"}], in falling order of self_ns and then of total_ns, and "running_function_count": how
 * many there are. At most 1000 are written. self_ns adds up to the running time of all threads;
 * total_ns is with all that was called, once for each moment, however often a function is on the
 * stack then.
 */
void report_functions(Json *json, const Places *places);

#endif
