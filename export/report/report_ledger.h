/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_ledger.h - where the time of each process and of each thread went, state by state: it adds
 * up to their lifetimes.
 */
#ifndef WALLPROF_REPORT_LEDGER_H
#define WALLPROF_REPORT_LEDGER_H

#include "json_writer.h"
#include "timeline.h"
#include <stdio.h>

/* A table of processes, if there are several, and one of threads. */
void report_ledger_print(FILE *file, const Timeline *timeline);

/* The members "lifetime_ns", "states" and "reasons" (ns, those that are not 0). */
void report_ledger_of_thread(Json *json, const Thread *thread);
void report_ledger_of_process(Json *json, const Timeline *timeline, const Process *process);

#endif
