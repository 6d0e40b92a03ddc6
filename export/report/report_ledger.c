/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "page_table.h"
#include "report_sections.h"
#include "text.h"

static const TableColumn process_columns[] = {
	{"pid", 8, 0},	     {"threads", 8, 3},	 {"lifetime", 12, 2}, {"running", 12, 0},
	{"runnable", 12, 1}, {"blocked", 12, 0}, {"unknown", 12, 4},  {"switches", 9, 5}};
static const TableColumn thread_columns[] = {
	{"pid", 8, 3},	     {"tid", 8, 0},	 {"lifetime", 12, 2}, {"running", 12, 0},
	{"runnable", 12, 1}, {"blocked", 12, 0}, {"unknown", 12, 4},  {"switches", 9, 5}};

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

static void print_line(const Table *table, uint32_t pid, uint64_t number, const Ledger *ledger,
		       const char *name)
{
	const char *cells[] = {COUNT(pid),
			       COUNT(number),
			       DURATION(ledger->lifetime),
			       DURATION(ledger->states[STATE_RUNNING]),
			       DURATION(ledger->states[STATE_RUNNABLE]),
			       DURATION(ledger->states[STATE_BLOCKED]),
			       DURATION(ledger->states[STATE_UNKNOWN]),
			       COUNT(ledger->switch_outs)};

	page_table_row(table, cells, name);
}

void report_processes_print(const Report *report)
{
	const Timeline *timeline = report->timeline;
	Table table;

	page_table_init(&table, report->page, process_columns, ARRAY_LEN(process_columns),
			report->max_rank);
	for (size_t i = 0; i < MIN(timeline->processes.count, report->rows); i++) {
		const Process *process = &timeline->processes.items[report->process_order[i]];
		Ledger ledger = process_ledger(timeline, process);

		page_table_head(&table, "process");
		print_line(&table, process->ns_tgid, process->threads.count, &ledger,
			   process->label);
	}
}

void report_threads_print(const Report *report)
{
	const Timeline *timeline = report->timeline;
	Table table;

	page_table_init(&table, report->page, thread_columns, ARRAY_LEN(thread_columns),
			report->max_rank);
	for (size_t i = 0; i < MIN(timeline->threads.count, report->rows); i++) {
		const Thread *thread = &timeline->threads.items[report->thread_order[i]];
		const Process *process = &timeline->processes.items[thread->process];
		Ledger ledger = thread_ledger(thread);
		_cleanup_free_ char *name = text_printable(thread->name);
		_cleanup_free_ char *of = text_printable(process->name);
		_cleanup_free_ char *text =
			strcmp(name, of) ? xasprintf("%s (%s)", name, of) : xstrdup(process->label);

		page_table_head(&table, "thread");
		print_line(&table, process->ns_tgid, thread->ns_tid, &ledger, text);
	}
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
