/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "distribution.h"
#include "page_table.h"
#include "report_sections.h"
#include "text.h"
#include "wait_fields.h"

#define PARTIES_WRITTEN 1000 /* to JSON */

static const TableColumn columns[] = {{"waited", 12, 0}, {"times", 9, 1}, {"mean", 12, 3},
				      {"p50", 12, 4},	 {"p99", 12, 5},  {"longest", 12, 2}};

/* ---- wakers and lock holders --------------------------------------------------------------- */

/* A task that woke threads, or held locks that they waited for, with these waits. */
typedef struct Party {
	/* Timeline::tasks, or one of those below. */
	uint32_t task;
	/* Sum::chains: from where it ended waits. */
	uint32_t chain;
	Distribution waits;
} Party;

typedef VEC(Party) Parties;

#define TASK_UNKNOWN	       (THREAD_NONE - 1)
#define TASK_INTERRUPT(source) (THREAD_NONE - 2 - (source)) /* enum interrupt_source */
#define TASK_LEAST	       TASK_INTERRUPT(INTERRUPT_SOURCES - 1)

typedef struct Sum {
	const Timeline *timeline;
	Frames *frames;
	Strings chains;
	Map chain_of; /* (kernel stack, user stack) -> chains */
	Map index;    /* (task, chain) -> list */
	Parties list; /* the largest first */
} Sum;

/* Returns the task that an interval counts for; THREAD_NONE: none. */
typedef uint32_t (*PartyPicker)(const Thread *thread, size_t i);

static uint32_t pick_waker(const Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	const WakerStack *stack;

	if (wait->state != STATE_BLOCKED || wait->flags & INTERVAL_OPEN_END)
		return THREAD_NONE;
	if (!(wait->flags & INTERVAL_WAKER_IRQ))
		return wait->waker == THREAD_NONE ? TASK_UNKNOWN : wait->waker;
	stack = thread_waker_stack(thread, i);
	return TASK_INTERRUPT(stack ? stack->source : INTERRUPT_UNKNOWN);
}

static uint32_t pick_holder(const Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];

	return wait->state == STATE_BLOCKED ? wait->lock_holder : THREAD_NONE;
}

typedef struct Role {
	const char *key, *title;
	PartyPicker pick;
	bool from; /* stacks are shown */
} Role;

enum role { ROLE_WAKER, ROLE_HOLDER };

static const Role roles[] = {
	[ROLE_WAKER] = {"wakers", "woken by", pick_waker, true},
	[ROLE_HOLDER] = {"holders", "lock holders", pick_holder, false},
};

static uint32_t chain_of(Sum *sum, const Thread *thread, size_t i)
{
	const WakerStack *stack = thread_waker_stack(thread, i);
	_cleanup_free_ char *text = NULL;
	uint32_t known;
	uint64_t key;

	if (!stack)
		return strings_intern(&sum->chains, "");
	key = (uint64_t)stack->kernel_stack << 32 | stack->user_stack;
	known = map_get(&sum->chain_of, key);
	if (known != MAP_NONE)
		return known;
	text = wait_waker_chain(sum->timeline, sum->frames, thread, i);
	known = strings_intern(&sum->chains, text ? text : "");
	map_set(&sum->chain_of, key, known);
	return known;
}

static void add_party(Sum *sum, uint32_t task, uint32_t chain, uint64_t ns)
{
	uint64_t key = (uint64_t)task << 32 | chain;
	uint32_t number = map_get(&sum->index, key);

	if (number == MAP_NONE) {
		number = sum->list.count;
		map_set(&sum->index, key, number);
		*vec_push(&sum->list) = (Party){.task = task, .chain = chain};
	}
	distribution_add(&sum->list.items[number].waits, ns);
}

static int compare_parties(const void *a, const void *b)
{
	const Party *x = a, *y = b;

	if (x->waits.total_ns != y->waits.total_ns)
		return x->waits.total_ns > y->waits.total_ns ? -1 : 1;
	if (x->task != y->task)
		return x->task < y->task ? -1 : 1;
	return (x->chain > y->chain) - (x->chain < y->chain);
}

/* An idle thread waits for no other. */
static Sum sum_up(const Timeline *timeline, Frames *frames, const Role *role)
{
	Sum sum = {.timeline = timeline, .frames = frames};

	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			const Interval *interval = &thread->intervals.items[i];
			uint32_t task = role->pick(thread, i);

			if (task != THREAD_NONE &&
			    !category_is_idle(reason_info[wait_reason(interval)].category))
				add_party(&sum, task, role->from ? chain_of(&sum, thread, i) : 0,
					  interval_end(thread, i) - interval->start_ns);
		}
	}
	if (sum.list.count > 1)
		qsort(sum.list.items, sum.list.count, sizeof(Party), compare_parties);
	return sum;
}

static void sum_free(Sum *sum)
{
	for (size_t i = 0; i < sum->list.count; i++)
		distribution_free(&sum->list.items[i].waits);
	vec_free(&sum->list);
	strings_free(&sum->chains);
	map_free(&sum->chain_of);
	map_free(&sum->index);
}

/* Returns "" if stacks are not shown, or were not recorded. */
static const char *party_chain(const Sum *sum, const Party *party)
{
	return sum->chains.list.count > 0 ? strings_get(&sum->chains, party->chain) : "";
}

/* It may point into name. */
static const char *party_name(const Timeline *timeline, const Party *party, char name[COMM_LEN + 1])
{
	if (party->task == TASK_UNKNOWN)
		return "unknown";
	if (party->task >= TASK_LEAST)
		return interrupt_label(TASK_INTERRUPT(0) - party->task);
	if (party->task >= timeline->tasks.count)
		return "unknown";
	memcpy(name, timeline->tasks.items[party->task].comm, COMM_LEN);
	name[COMM_LEN] = '\0';
	return *name ? name : "unknown";
}

/* 0: it is not a task. */
static uint32_t party_tid(const Timeline *timeline, const Party *party)
{
	const Task *task;

	if (party->task >= timeline->tasks.count)
		return 0;
	task = &timeline->tasks.items[party->task];
	return task->ns_tid ? task->ns_tid : task->tid;
}

static void print_line(const Table *table, Distribution *waits, const char *what)
{
	const char *cells[] = {DURATION(waits->total_ns),
			       COUNT(waits->ns.count),
			       DURATION(distribution_mean(waits)),
			       DURATION(distribution_at(waits, 0.5)),
			       DURATION(distribution_at(waits, 0.99)),
			       DURATION(distribution_at(waits, 1))};

	page_table_row(table, cells, what);
}

/* The sum of the lines that are not shown. */
static void print_others(const Table *table, const Sum *sum, size_t shown)
{
	Distribution others = {};

	if (sum->list.count > shown) {
		_cleanup_free_ char *text =
			text_others(sum->list.count - shown, /* files= */ false);

		for (size_t i = shown; i < sum->list.count; i++)
			distribution_add_all(&others, &sum->list.items[i].waits);
		print_line(table, &others, text);
	}
	distribution_free(&others);
}

static void print_party(const Table *table, const Report *report, const Sum *sum, Party *party)
{
	char comm[COMM_LEN + 1];
	uint32_t tid = party_tid(report->timeline, party);
	_cleanup_free_ char *name = text_printable(party_name(report->timeline, party, comm));
	_cleanup_free_ char *chain = text_printable(party_chain(sum, party));
	_cleanup_free_ char *what = tid ? xasprintf("%s (%u)", name, tid) : xstrdup(name);
	_cleanup_free_ char *where = xasprintf("in %s", chain);

	print_line(table, &party->waits, what);
	if (*chain)
		page_table_detail(table, where);
}

static void print_parties(const Report *report, const Role *role)
{
	Sum sum = sum_up(report->timeline, report->frames, role);
	size_t shown = MIN(sum.list.count, report->rows);
	Table table;

	page_table_init(&table, report->page, columns, ARRAY_LEN(columns), report->max_rank);
	for (size_t i = 0; i < shown; i++) {
		page_table_head(&table, role->title);
		print_party(&table, report, &sum, &sum.list.items[i]);
	}
	if (!report->brief)
		print_others(&table, &sum, shown);
	sum_free(&sum);
}

void report_wakers_print(const Report *report)
{
	print_parties(report, &roles[ROLE_WAKER]);
}

void report_holders_print(const Report *report)
{
	print_parties(report, &roles[ROLE_HOLDER]);
}

/* ---- the run queue ------------------------------------------------------------------------- */

static const enum reason queue_reasons[] = {REASON_WOKEN, REASON_PREEMPTED, REASON_YIELDED,
					    REASON_THROTTLED};

static Distribution queued(const Timeline *timeline, enum reason reason)
{
	Distribution delays = {};

	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++)
			if (thread->intervals.items[i].state == STATE_RUNNABLE &&
			    wait_reason(&thread->intervals.items[i]) == reason)
				distribution_add(&delays,
						 interval_end(thread, i) -
							 thread->intervals.items[i].start_ns);
	}
	return delays;
}

void report_run_queue_print(const Report *report)
{
	Table table;

	page_table_init(&table, report->page, columns, ARRAY_LEN(columns), report->max_rank);
	for (size_t i = 0; i < ARRAY_LEN(queue_reasons); i++) {
		Distribution delays = queued(report->timeline, queue_reasons[i]);

		if (delays.ns.count > 0) {
			page_table_head(&table, "run-queue latency");
			print_line(&table, &delays, reason_info[queue_reasons[i]].leaf);
		}
		distribution_free(&delays);
	}
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void write_parties(Json *json, const Timeline *timeline, Frames *frames, const Role *role)
{
	Sum sum = sum_up(timeline, frames, role);

	json_key_array(json, role->key);
	for (size_t i = 0; i < MIN(sum.list.count, (size_t)PARTIES_WRITTEN); i++) {
		Party *party = &sum.list.items[i];
		char comm[COMM_LEN + 1];

		json_begin_object(json);
		json_key_string(json, "name", party_name(timeline, party, comm));
		json_key_u64(json, "tid", party_tid(timeline, party));
		json_key_string(json, "chain", party_chain(&sum, party));
		distribution_json(json, &party->waits);
		json_end_object(json);
	}
	json_end_array(json);
	sum_free(&sum);
}

static void write_queue(Json *json, const Timeline *timeline)
{
	json_key_object(json, "run_queue");
	for (size_t i = 0; i < ARRAY_LEN(queue_reasons); i++) {
		Distribution delays = queued(timeline, queue_reasons[i]);

		json_key_object(json, reason_info[queue_reasons[i]].leaf);
		distribution_json(json, &delays);
		json_end_object(json);
		distribution_free(&delays);
	}
	json_end_object(json);
}

void report_wakers(Json *json, const Timeline *timeline, Frames *frames)
{
	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		write_parties(json, timeline, frames, &roles[i]);
	write_queue(json, timeline);
}
