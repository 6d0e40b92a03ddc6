/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_sections.h - the sections of a report, as text and as members of its JSON. Section X is in
 * report_X.c. docs/reference/report-json.md describes the members.
 */
#ifndef WALLPROF_REPORT_SECTIONS_H
#define WALLPROF_REPORT_SECTIONS_H

#include "frames.h"
#include "json_writer.h"
#include "report_places.h"
#include "timeline.h"
#include <stdio.h>

/* ---- report_ledger.c: time by state ---------------------------------------------------------- */

/* A table of processes, if there are several, and one of threads. */
void report_ledger_print(FILE *file, const Timeline *timeline);

/* The members "lifetime_ns", "states" and "reasons" (ns, those that are not 0). */
void report_ledger_of_thread(Json *json, const Thread *thread);
void report_ledger_of_process(Json *json, const Timeline *timeline, const Process *process);

/* ---- report_functions.c: functions that ran -------------------------------------------------- */

/* Prints the functions with the most time of their own; nothing if no thread ran. */
void report_functions_print(FILE *file, const Places *places);

/*
 * The members "running_functions": [{"function", "library" or null, "kernel", "self_ns",
 * "total_ns"}], in falling order of self_ns and then of total_ns, and "running_function_count": how
 * many there are. At most 1000 are written. self_ns adds up to the running time of all threads;
 * total_ns is with all that was called, once for each moment, however often a function is on the
 * stack then.
 */
void report_functions(Json *json, const Places *places);

/* ---- report_groups.c: waits by chain and by function ----------------------------------------- */

void report_groups_print(FILE *file, const Timeline *timeline, Frames *frames);

/*
 * Prints only the functions of that name, with idle waits. Returns whether any waits lie below one.
 */
bool report_function_print(FILE *file, const Timeline *timeline, Frames *frames, const char *name);

/*
 * Writes the members "waits": [{"reason", "evidence" or null, "object" or null, "chain", "threads",
 * "then_runnable_ns", and
 * those of distribution_json()}], "functions": [{"function", "library" or null, "threads",
 * …}] (only those called `function` if that is not NULL, with what is idle), "blocked_ns" (all of
 * "waits", that is, without what is idle), "other_ns" (of that, named by the state alone). All in
 * falling order of total_ns.
 */
void report_groups(Json *json, const Timeline *timeline, Frames *frames, const char *function);

/* ---- report_waits.c: waits by object --------------------------------------------------------- */

/*
 * Prints the largest sums by reason, idle ones apart, and for each the objects with the largest
 * sums. A file whose requests were waited for has a rate: bytes read or written per time in which
 * it had requests or a thread waited for one; none if the start of some request is unknown.
 */
void report_waits_print(FILE *file, const Timeline *timeline);

/* Writes the member "waited_objects" of the whole report: by reason and file, the largest first. */
void report_waited_objects(Json *json, const Timeline *timeline);

/* ---- report_wakers.c: wakers, lock holders, run-queue latency -------------------------------- */

void report_wakers_print(FILE *file, const Timeline *timeline, Frames *frames);

/*
 * Writes the members "wakers", "holders": [{"name", "tid", "chain", and those of
 * distribution_json()}], in falling order of the time that threads waited for them, and
 * "run_queue": {"[leaf]": {…}}. tid 0: no task, but an interrupt, or "unknown".
 */
void report_wakers(Json *json, const Timeline *timeline, Frames *frames);

/* ---- report_requests.c: block I/O ------------------------------------------------------------ */

/*
 * Prints requests by device, thread and file, the time that limits held them back, and how many
 * have no known submitter; nothing if there were none.
 */
void report_requests_print(FILE *file, const Timeline *timeline);

/*
 * These write the member "io" of a thread's object, and "devices", "io_files" and
 * "ownerless_requests" of the whole report.
 */
void report_requests_of_thread(Json *json, const Timeline *timeline, const Thread *thread);
void report_requests(Json *json, const Timeline *timeline);

/* ---- report_faults.c: page faults ------------------------------------------------------------ */

/* Prints nothing if there were no faults. */
void report_faults_print(FILE *file, const Timeline *timeline);

/* Writes the member "faults" of a thread, by class. */
void report_faults_of_thread(Json *json, const Thread *thread);

/* Writes the member "faulted_files": files sorted by the time that threads waited in faults on
 * them. */
void report_faulted_files(Json *json, const Timeline *timeline);

/* ---- report_cpus.c: CPUs of the whole system ------------------------------------------------- */

/* Prints a line for each CPU; nothing if CPUs were not recorded. */
void report_cpus_print(FILE *file, const Timeline *timeline);

/* Writes the member "cpus": for each CPU its number, and ns: idle, unknown, and those of each tid.
 */
void report_cpus(Json *json, const Timeline *timeline);

/* ---- report_cpu_users.c: CPU contention ------------------------------------------------------ */

void report_cpu_users_print(FILE *file, const Timeline *timeline);

/*
 * Writes the member "rivals" (CPU users): [{"name", "tid", "count", "total_ns", "mean_ns",
 * "max_ns", "untimed_count"}], in falling order of their time. tid 0: no task, but "CPU idle", "not
 * seen" or "migrated". untimed_count: waits in which the task had the CPU for an unknown time;
 * these are not in count.
 */
void report_cpu_users(Json *json, const Timeline *timeline);

/* ---- report_path.c: the critical path -------------------------------------------------------- */

/* Prints one line: the threads with the largest parts of the path, or why there is no path. */
void report_path_line(FILE *file, const Timeline *timeline);

/* Prints all of it: by thread, by place, and what of it is unknown. */
void report_path_print(FILE *file, const Timeline *timeline, Frames *frames);

/*
 * Writes the member "critical_path": null, and why in "no_critical_path"; or {"end_tid",
 * "length_ns", "lost_ns", "outside_ns", "unknown_waker_ns", "threads": [{"tid", "name", "ns",
 * "running_ns", "runnable_ns", "blocked_ns", "times"}], "reasons": {"[leaf]": ns}, "places":
 * [{"name", "category", "ns"}]}; threads and places in falling order of ns.
 */
void report_path(Json *json, const Timeline *timeline, Frames *frames);

#endif
