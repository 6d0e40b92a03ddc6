/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report_sections.h"
#include "text.h"
#include <inttypes.h>

typedef struct Ledger {
	uint64_t lifetime, states[STATE_COUNT], reasons[REASON_COUNT];
	uint64_t switch_outs;
} Ledger;

static void add_thread(Ledger *ledger, const Thread *thread)
{
	ledger->lifetime += thread->end_ns - MIN(thread->start_ns, thread->end_ns);
	for (size_t i = 0; i < STATE_COUNT; i++)
		ledger->states[i] += thread->ledger[i];
	for (size_t i = 0; i < REASON_COUNT; i++)
		ledger->reasons[i] += thread->reason_ledger[i];
	ledger->switch_outs += thread->switch_outs;
}

static Ledger thread_ledger(const Thread *thread)
{
	Ledger ledger = {};

	add_thread(&ledger, thread);
	return ledger;
}

/* Adds up the process's threads. */
static Ledger process_ledger(const Timeline *timeline, const Process *process)
{
	Ledger ledger = {};

	for (size_t i = 0; i < process->threads.count; i++)
		add_thread(&ledger, &timeline->threads.items[process->threads.items[i]]);
	return ledger;
}

/* ---- text ---------------------------------------------------------------------------------- */

static void print_head(FILE *file, const char *what, const char *name)
{
	fprintf(file, "\n%8s %8s %12s %12s %12s %12s %12s %9s  %s\n", "pid", what, "lifetime",
		"running", "runnable", "blocked", "unknown", "switches", name);
}

static void print_line(FILE *file, uint32_t pid, uint64_t number, const Ledger *ledger)
{
	fprintf(file, "%8u %8" PRIu64 " %12s %12s %12s %12s %12s %9" PRIu64 "  ", pid, number,
		DURATION(ledger->lifetime), DURATION(ledger->states[STATE_RUNNING]),
		DURATION(ledger->states[STATE_RUNNABLE]), DURATION(ledger->states[STATE_BLOCKED]),
		DURATION(ledger->states[STATE_UNKNOWN]), ledger->switch_outs);
}

static void print_processes(FILE *file, const Timeline *timeline)
{
	if (timeline->processes.count < 2)
		return;
	print_head(file, "threads", "process");
	for (size_t i = 0; i < timeline->processes.count; i++) {
		const Process *process = &timeline->processes.items[i];
		Ledger ledger = process_ledger(timeline, process);

		print_line(file, process->ns_tgid, process->threads.count, &ledger);
		fprintf(file, "%s\n", process->label);
	}
}

static void print_threads(FILE *file, const Timeline *timeline)
{
	print_head(file, "tid", "thread");
	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];
		const Process *process = &timeline->processes.items[thread->process];
		Ledger ledger = thread_ledger(thread);
		_cleanup_free_ char *name = text_printable(thread->name);
		_cleanup_free_ char *of = text_printable(process->name);

		print_line(file, process->ns_tgid, thread->ns_tid, &ledger);
		fprintf(file, strcmp(name, of) ? "%s (%s)\n" : "%s\n", name, of);
	}
}

void report_ledger_print(FILE *file, const Timeline *timeline)
{
	print_processes(file, timeline);
	print_threads(file, timeline);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void write_ledger(Json *json, const Ledger *ledger)
{
	json_key_u64(json, "lifetime_ns", ledger->lifetime);
	json_key_object(json, "states");
	json_key_u64(json, "running", ledger->states[STATE_RUNNING]);
	json_key_u64(json, "runnable", ledger->states[STATE_RUNNABLE]);
	json_key_u64(json, "blocked", ledger->states[STATE_BLOCKED]);
	json_key_u64(json, "unknown", ledger->states[STATE_UNKNOWN]);
	json_end_object(json);
	json_key_object(json, "reasons");
	for (size_t i = 0; i < REASON_COUNT; i++)
		if (ledger->reasons[i] > 0)
			json_key_u64(json, reason_info[i].leaf, ledger->reasons[i]);
	json_end_object(json);
}

void report_ledger_of_thread(Json *json, const Thread *thread)
{
	Ledger ledger = thread_ledger(thread);

	write_ledger(json, &ledger);
}

void report_ledger_of_process(Json *json, const Timeline *timeline, const Process *process)
{
	Ledger ledger = process_ledger(timeline, process);

	write_ledger(json, &ledger);
}
