/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "interpreter_locks.h"
#include "page_table.h"
#include "report_sections.h"
#include "script_language.h"
#include "text.h"
#include "wait_fields.h"

#define FUNCTIONS_MOST 3 /* of a holder, as text */

static const TableColumn holder_columns[] = {{"held", 12, 0}, {"waited for", 12, 0}};
static const TableColumn wait_columns[] = {
	{"waited", 12, 0}, {"times", 9, 1}, {"mean", 12, 3}, {"longest", 12, 2}};
static const TableColumn kept_columns[] = {
	{"waited", 12, 0}, {"times", 9, 1}, {"longest", 12, 2}, {"meanwhile", 12, 0}};

/* ---- texts --------------------------------------------------------------------------------- */

/* Returns "Python GIL of python3 app.py (123)", with more words before. The caller frees it. */
static char *lock_text(const Timeline *timeline, const InterpreterLock *lock, const char *before)
{
	const Process *process = &timeline->processes.items[lock->process];
	const ScriptLanguage *language = script_language(lock->language);
	_cleanup_free_ char *name =
		language ? xasprintf("%s %s", language->name, language->lock_name)
			 : xstrdup("interpreter's lock");

	return xasprintf("%s%s of %s (%u)", before, name, process->label, process->ns_tgid);
}

static const char *function_name(const InterpreterLocks *locks, uint32_t function)
{
	return function == UINT32_MAX ? "an unknown function"
				      : strings_get(&locks->functions, function);
}

/* Returns "worker (124)" or "unknown". The caller frees it. */
static char *task_text(const Timeline *timeline, uint32_t task)
{
	char comm[COMM_LEN + 1];
	const char *name = task_name(timeline, task, comm);
	_cleanup_free_ char *printable = text_printable(name ? name : "unknown");
	const Task *known = name ? &timeline->tasks.items[task] : NULL;

	return known ? xasprintf("%s (%u)", printable, known->ns_tid ? known->ns_tid : known->tid)
		     : xstrdup(printable);
}

/* ---- tables -------------------------------------------------------------------------------- */

/* What is shown of one lock in one table: its title comes with the first row. */
typedef struct LockTable {
	Table table;
	char *title;
	size_t rows; /* that may follow */
} LockTable;

/* The caller frees the title at the end. */
static void lock_table_begin(LockTable *table, const Report *report, const InterpreterLock *lock,
			     const char *title, const TableColumn *columns, size_t count)
{
	table->title = lock_text(report->timeline, lock, title);
	table->rows = report->rows;
	page_table_init(&table->table, report->page, columns, count, report->max_rank);
}

/* Prints a row, and frees its text. Returns false if no more rows are wanted. */
static bool lock_table_row(LockTable *table, const char *const *cells, char *text)
{
	bool wanted = table->rows > 0;

	if (wanted) {
		table->rows--;
		page_table_head(&table->table, table->title);
		page_table_row(&table->table, cells, text);
	}
	free(text);
	return wanted;
}

/* ---- holders ------------------------------------------------------------------------------- */

/* All holdings of one thread. */
typedef struct Holder {
	uint32_t task;
	uint64_t held_ns, waited_ns;
} Holder;

typedef VEC(Holder) Holders;

static int compare_holders(const void *a, const void *b)
{
	const Holder *x = a, *y = b;

	if (x->waited_ns != y->waited_ns)
		return x->waited_ns > y->waited_ns ? -1 : 1;
	return (x->task > y->task) - (x->task < y->task);
}

/* The caller frees them. */
static Holders holders_of(const InterpreterLocks *locks, uint32_t lock)
{
	Holders holders = {};
	Map index = {};

	for (size_t i = 0; i < locks->holdings.count; i++) {
		const LockHolding *holding = &locks->holdings.items[i];
		uint32_t number;

		if (holding->lock != lock)
			continue;
		number = map_get(&index, holding->task);
		if (number == MAP_NONE) {
			number = holders.count;
			map_set(&index, holding->task, number);
			*vec_push(&holders) = (Holder){.task = holding->task};
		}
		holders.items[number].held_ns += holding->held_ns;
		holders.items[number].waited_ns += holding->waited_ns;
	}
	map_free(&index);
	if (holders.count > 1)
		qsort(holders.items, holders.count, sizeof(Holder), compare_holders);
	return holders;
}

/* Returns "in compute (app.py) 80 %, parse (app.py) 15 %, …". The caller frees it. */
static char *functions_text(const InterpreterLocks *locks, uint32_t lock, const Holder *holder)
{
	char *text = xstrdup("in ");
	size_t shown = 0;

	for (size_t i = 0; i < locks->holdings.count; i++) {
		const LockHolding *holding = &locks->holdings.items[i];
		char *longer;

		if (holding->lock != lock || holding->task != holder->task)
			continue;
		if (shown++ == FUNCTIONS_MOST) {
			longer = xasprintf("%s, …", text);
			free(text);
			return longer;
		}
		longer = xasprintf("%s%s%s %s", text, shown > 1 ? ", " : "",
				   function_name(locks, holding->function),
				   PERCENT(holding->waited_ns, holder->waited_ns));
		free(text);
		text = longer;
	}
	return text;
}

static void print_holders(const Report *report, const InterpreterLocks *locks, uint32_t lock)
{
	Holders holders = holders_of(locks, lock);
	LockTable table;

	lock_table_begin(&table, report, &locks->locks.items[lock], "held the ", holder_columns,
			 ARRAY_LEN(holder_columns));
	for (size_t i = 0; i < holders.count; i++) {
		const Holder *holder = &holders.items[i];
		const char *cells[] = {DURATION(holder->held_ns), DURATION(holder->waited_ns)};
		_cleanup_free_ char *functions = functions_text(locks, lock, holder);
		_cleanup_free_ char *printable = text_printable(functions);

		if (!lock_table_row(&table, cells, task_text(report->timeline, holder->task)))
			break;
		page_table_detail(&table.table, printable);
	}
	free(table.title);
	vec_free(&holders);
}

/* ---- waits --------------------------------------------------------------------------------- */

static void print_waiters(const Report *report, const InterpreterLocks *locks, uint32_t lock)
{
	LockTable table;

	lock_table_begin(&table, report, &locks->locks.items[lock], "waited for the ", wait_columns,
			 ARRAY_LEN(wait_columns));
	for (size_t i = 0; i < locks->waiters.count; i++) {
		const LockWaiter *waiter = &locks->waiters.items[i];
		const char *cells[] = {DURATION(waiter->ns), COUNT(waiter->count),
				       DURATION(waiter->ns / waiter->count),
				       DURATION(waiter->longest_ns)};

		if (waiter->lock == lock &&
		    !lock_table_row(
			    &table, cells,
			    task_text(report->timeline,
				      report->timeline->threads.items[waiter->thread].task)))
			break;
	}
	free(table.title);
}

/* Returns "worker (124): [sleep] in compute (app.py)". The caller frees it. */
static char *kept_text(const Timeline *timeline, const InterpreterLocks *locks,
		       const LockKept *kept)
{
	_cleanup_free_ char *name = task_text(timeline, kept->task);
	_cleanup_free_ char *text = xasprintf("%s: %s in %s", name, reason_info[kept->reason].leaf,
					      function_name(locks, kept->function));

	return text_printable(text);
}

/* What the holder waits for, all others wait for. */
static void print_kept(const Report *report, const InterpreterLocks *locks, uint32_t lock)
{
	LockTable table;

	lock_table_begin(&table, report, &locks->locks.items[lock], "waited, and kept the ",
			 kept_columns, ARRAY_LEN(kept_columns));
	for (size_t i = 0; i < locks->kept.count; i++) {
		const LockKept *kept = &locks->kept.items[i];
		const char *cells[] = {DURATION(kept->ns), COUNT(kept->count),
				       DURATION(kept->longest_ns), DURATION(kept->waited_ns)};

		if (kept->lock == lock &&
		    !lock_table_row(&table, cells, kept_text(report->timeline, locks, kept)))
			break;
	}
	free(table.title);
}

/* The lock that was waited for longest comes first. */
static uint32_t largest_lock(const InterpreterLocks *locks, const bool *done)
{
	uint32_t largest = UINT32_MAX;

	for (uint32_t i = 0; i < locks->locks.count; i++)
		if (!done[i] && (largest == UINT32_MAX ||
				 locks->locks.items[i].ns > locks->locks.items[largest].ns))
			largest = i;
	return largest;
}

void report_interpreters_print(const Report *report)
{
	InterpreterLocks locks = interpreter_locks_sum(report->timeline, report->frames);
	_cleanup_free_ bool *done = xcalloc(locks.locks.count + 1, sizeof(bool));

	for (uint32_t lock; (lock = largest_lock(&locks, done)) != UINT32_MAX;) {
		done[lock] = true;
		print_holders(report, &locks, lock);
		if (report->brief)
			break;
		print_waiters(report, &locks, lock);
		print_kept(report, &locks, lock);
	}
	interpreter_locks_free(&locks);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void write_task(Json *json, const Timeline *timeline, uint32_t task)
{
	char comm[COMM_LEN + 1];
	const char *name = task_name(timeline, task, comm);
	const Task *known = name ? &timeline->tasks.items[task] : NULL;

	json_key_string(json, "name", name ? name : "unknown");
	json_key_u64(json, "tid", !known ? 0 : known->ns_tid ? known->ns_tid : known->tid);
}

static void write_function(Json *json, const InterpreterLocks *locks, uint32_t function)
{
	if (function == UINT32_MAX)
		json_key_null(json, "function");
	else
		json_key_string(json, "function", strings_get(&locks->functions, function));
}

static void write_holdings(Json *json, const Timeline *timeline, const InterpreterLocks *locks,
			   uint32_t lock)
{
	json_key_array(json, "holders");
	for (size_t i = 0; i < locks->holdings.count; i++) {
		const LockHolding *holding = &locks->holdings.items[i];

		if (holding->lock != lock)
			continue;
		json_begin_object(json);
		write_task(json, timeline, holding->task);
		write_function(json, locks, holding->function);
		json_key_u64(json, "held_ns", holding->held_ns);
		json_key_u64(json, "waited_ns", holding->waited_ns);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_waiters(Json *json, const Timeline *timeline, const InterpreterLocks *locks,
			  uint32_t lock)
{
	json_key_array(json, "waiters");
	for (size_t i = 0; i < locks->waiters.count; i++) {
		const LockWaiter *waiter = &locks->waiters.items[i];

		if (waiter->lock != lock)
			continue;
		json_begin_object(json);
		write_task(json, timeline, timeline->threads.items[waiter->thread].task);
		json_key_u64(json, "count", waiter->count);
		json_key_u64(json, "total_ns", waiter->ns);
		json_key_u64(json, "max_ns", waiter->longest_ns);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_kept(Json *json, const Timeline *timeline, const InterpreterLocks *locks,
		       uint32_t lock)
{
	json_key_array(json, "holders_waits");
	for (size_t i = 0; i < locks->kept.count; i++) {
		const LockKept *kept = &locks->kept.items[i];

		if (kept->lock != lock)
			continue;
		json_begin_object(json);
		write_task(json, timeline, kept->task);
		json_key_string(json, "reason", reason_info[kept->reason].leaf);
		write_function(json, locks, kept->function);
		json_key_u64(json, "count", kept->count);
		json_key_u64(json, "total_ns", kept->ns);
		json_key_u64(json, "max_ns", kept->longest_ns);
		json_key_u64(json, "waited_ns", kept->waited_ns);
		json_end_object(json);
	}
	json_end_array(json);
}

void report_interpreters(Json *json, const Timeline *timeline, Frames *frames)
{
	InterpreterLocks locks = interpreter_locks_sum(timeline, frames);

	json_key_array(json, "interpreter_locks");
	for (uint32_t i = 0; i < locks.locks.count; i++) {
		const InterpreterLock *lock = &locks.locks.items[i];
		const ScriptLanguage *language = script_language(lock->language);
		const Process *process = &timeline->processes.items[lock->process];

		json_begin_object(json);
		if (language)
			json_key_string(json, "language", language->name);
		else
			json_key_null(json, "language");
		json_key_string(json, "process", process->label);
		json_key_u64(json, "pid", process->ns_tgid);
		json_key_u64(json, "count", lock->count);
		json_key_u64(json, "total_ns", lock->ns);
		write_holdings(json, timeline, &locks, i);
		write_waiters(json, timeline, &locks, i);
		write_kept(json, timeline, &locks, i);
		json_end_object(json);
	}
	json_end_array(json);
	interpreter_locks_free(&locks);
}
