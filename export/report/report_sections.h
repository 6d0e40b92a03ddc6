/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report_sections.h - the sections of a report, as text and as members of its JSON. Section X is in
 * report_X.c, report_page.c has the table of all. docs/reference/report-json.md describes the
 * members.
 *
 * The text of a section is one or more tables, each with an empty line before its head. A section
 * that has nothing to say prints nothing. If a table does not show all rows, its last line is the
 * sum of the others.
 */
#ifndef WALLPROF_REPORT_SECTIONS_H
#define WALLPROF_REPORT_SECTIONS_H

#include "frames.h"
#include "json_writer.h"
#include "page.h"
#include "report_places.h"
#include "timeline.h"

#define REPORT_INDENT 2 /* of the further lines of a paragraph */

/* What the sections are made from. */
typedef struct Report {
	const Page *page;
	const Timeline *timeline;
	Frames *frames;
	const Places *places; /* of all threads, sorted */
	size_t rows;	      /* the most of each table; SIZE_MAX: all */
	int max_rank;	      /* columns of a higher rank are left out (page_table.h) */
	bool brief; /* the first table of a section alone, without the sum of the others */
	/* Timeline::threads and ::processes, in order of what they matter (report_order.c). */
	const uint32_t *thread_order, *process_order;
} Report;

/* ---- report_colours.c: the viewer's colours, as far as terminals have them --------------------
 */

/* Returns the style of a category's texts; "" without colours. */
const char *report_colour(const Page *page, enum category category);

/* Returns "[mutex wait]", in its colour. The caller frees it. */
char *report_reason_text(const Page *page, enum reason reason);

/*
 * Returns the style of a text that begins with "running" or with a reason, "[mutex wait] of …".
 */
const char *report_text_colour(const Page *page, const char *text);

/* ---- report_ledger.c: time by state ---------------------------------------------------------- */

void report_processes_print(const Report *report);
void report_threads_print(const Report *report);

/* The members "lifetime_ns", "states" and "reasons" (ns, those that are not 0). */
void report_ledger_of_thread(Json *json, const Thread *thread);
void report_ledger_of_process(Json *json, const Timeline *timeline, const Process *process);

/* ---- report_overview.c: the recording as a whole --------------------------------------------- */

/* Prints one line: how busy the CPUs were, and how many threads waited for one. */
void report_load_print(const Report *report);

/* Prints where the time of all threads went. */
void report_places_print(const Report *report);

/* Prints what shows whether the numbers add up (accounts.h), with what was lost. */
void report_accounts_print(const Report *report);

/* ---- report_losses.c: what is missing ---------------------------------------------------------*/

/*
 * Writes the member "budget": null, or {"share_ppm", "switch_outs", "unsampled", "unsampled_ns",
 * "without_stacks", "without_stacks_ns", "unsampled_wakers", "short_ns", "weighted_ns", "places":
 * [{"program", "where", "switch_outs", "unsampled", "unsampled_ns"}]}.
 */
void report_left_out(Json *json, const Timeline *timeline);

/* Prints what --budget left out, how complete stacks are, and when records were lost. */
void report_losses_print(const Report *report);

/* Writes the member "places": [{"name", "category", "ns"}] of all threads, the largest first. */
void report_places(Json *json, const Places *places);

/* ---- report_functions.c: functions that ran -------------------------------------------------- */

/* Prints the functions with the most time of their own. */
void report_functions_print(const Report *report);

/*
 * The members "running_functions": [{"function", "library" or null, "kernel", "self_ns",
 * "total_ns"}], in falling order of self_ns and then of total_ns, and "running_function_count": how
 * many there are. At most 1000 are written. self_ns adds up to the running time of all threads;
 * total_ns is with all that was called, once for each moment, however often a function is on the
 * stack then.
 */
void report_functions(Json *json, const Places *places);

/* ---- report_groups.c: waits by chain and by function ----------------------------------------- */

void report_groups_print(const Report *report);

/* Prints the functions with the most waits below them, without idle ones. */
void report_wait_functions_print(const Report *report);

/*
 * Prints only the functions of that name, with idle waits. Returns whether any waits lie below one.
 */
bool report_function_print(const Report *report, const char *name);

/*
 * Writes the members "waits": [{"reason", "evidence" or null, "object" or null, "chain", "threads",
 * "then_runnable_ns", and
 * those of distribution_json()}], "functions": [{"function", "library" or null, "threads",
 * …}] (only those called `function` if that is not NULL, with what is idle), "blocked_ns" (all of
 * "waits", that is, without what is idle), "other_ns" (of that, named by the state alone). All in
 * falling order of total_ns; by_path: "waits" in that of their time on the critical path.
 */
void report_groups(Json *json, const Timeline *timeline, Frames *frames, const char *function,
		   bool by_path);

/* ---- report_waits.c: waits by object --------------------------------------------------------- */

/*
 * Prints the largest sums by reason, without idle ones, and for each the objects with the largest
 * sums. A file whose requests were waited for has a rate: bytes read or written per time in which
 * it had requests or a thread waited for one; none if the start of some request is unknown.
 */
void report_waits_print(const Report *report);

/* Prints idle waits, and those between jobs. */
void report_idle_print(const Report *report);

/* Writes the member "waited_objects" of the whole report: by reason and file, the largest first. */
void report_waited_objects(Json *json, const Timeline *timeline);

/* ---- report_wakers.c: wakers, lock holders, run-queue latency -------------------------------- */

void report_wakers_print(const Report *report);
void report_holders_print(const Report *report);
void report_run_queue_print(const Report *report);

/*
 * Writes the members "wakers", "holders": [{"name", "tid", "chain", and those of
 * distribution_json()}], in falling order of the time that threads waited for them, and
 * "run_queue": {"[leaf]": {…}}. tid 0: no task, but an interrupt, or "unknown".
 */
void report_wakers(Json *json, const Timeline *timeline, Frames *frames);

/* ---- report_requests.c: block I/O ------------------------------------------------------------ */

/*
 * Prints requests by device, thread and file, the time that limits held them back, and how many
 * have no known submitter.
 */
void report_requests_print(const Report *report);

/*
 * These write the member "io" of a thread's object, and "devices", "io_files" and
 * "ownerless_requests" of the whole report.
 */
void report_requests_of_thread(Json *json, const Timeline *timeline, const Thread *thread);
void report_requests(Json *json, const Timeline *timeline);

/* ---- report_faults.c: page faults ------------------------------------------------------------ */

void report_faults_print(const Report *report);

/* Writes the member "faults" of a thread, by class. */
void report_faults_of_thread(Json *json, const Thread *thread);

/* Writes the member "faulted_files": files sorted by the time that threads waited in faults on
 * them. */
void report_faulted_files(Json *json, const Timeline *timeline);

/* ---- report_cpus.c: CPUs of the whole system ------------------------------------------------- */

/* Prints a line for each CPU; nothing unless the whole system was recorded. */
void report_cpus_print(const Report *report);

/* Writes the member "cpus": for each CPU its number, and ns: idle, unknown, and those of each tid.
 */
void report_cpus(Json *json, const Timeline *timeline);

/* ---- report_cpu_users.c: CPU contention ------------------------------------------------------ */

void report_cpu_users_print(const Report *report);

/*
 * Writes the member "rivals" (CPU users): [{"name", "tid", "count", "total_ns", "mean_ns",
 * "max_ns", "untimed_count"}], in falling order of their time. tid 0: no task, but "CPU idle", "not
 * seen" or "migrated". untimed_count: waits in which the task had the CPU for an unknown time;
 * these are not in count.
 */
void report_cpu_users(Json *json, const Timeline *timeline);

/* ---- report_interpreters.c: locks that let one thread at a time interpret -------------------- */

/* Prints who held such locks while others waited, who waited, and what holders waited for. */
void report_interpreters_print(const Report *report);

/* Writes the member "interpreter_locks" (interpreter_locks.h). */
void report_interpreters(Json *json, const Timeline *timeline, Frames *frames);

/* ---- report_timeline.c: one thread, event by event ------------------------------------------- */

/*
 * Prints a line for each interval of a thread (Timeline::threads): when it began, how long it took,
 * state, reason, object, what ended it, and the stack. Of report->rows it prints the longest.
 */
void report_timeline_print(const Report *report, uint32_t thread);

/* Writes the member "timeline" with the same content. */
void report_timeline(Json *json, const Timeline *timeline, Frames *frames, uint32_t thread);

/* ---- report_page.c --------------------------------------------------------------------------- */

/* Returns whether a section has the content of a member of the JSON, at its outermost level. */
bool report_section_has_member(const char *section, const char *member);

/* ---- report_path.c: the critical path -------------------------------------------------------- */

/*
 * Returns a sentence: the length of the path and the threads with its largest parts, or why there
 * is no path. The caller frees it.
 */
char *report_path_text(const Timeline *timeline);

/* Returns that sentence without the threads. The caller frees it. */
char *report_path_title(const Timeline *timeline);

/* Prints all of it: by thread, by place, and what of it is unknown. */
void report_path_print(const Report *report);

/*
 * Writes the member "critical_path": null, and why in "no_critical_path"; or {"end_tid",
 * "length_ns", "lost_ns", "outside_ns", "unknown_waker_ns", "threads": [{"tid", "name", "ns",
 * "running_ns", "runnable_ns", "blocked_ns", "times"}], "reasons": {"[leaf]": ns}, "places":
 * [{"name", "category", "ns"}]}; threads and places in falling order of ns.
 */
void report_path(Json *json, const Timeline *timeline, Frames *frames);

#endif
