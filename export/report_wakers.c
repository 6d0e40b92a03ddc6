/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report_wakers.h"
#include "distribution.h"
#include "report_text.h"
#include "wait.h"
#include <inttypes.h>

#define PARTIES_SHOWN	10
#define PARTIES_WRITTEN 1000 /* to JSON */

/* ---- who ended waits, had the lock, or ran instead ----------------------------------------- */

/* A task, and what threads were off the CPU for its sake. */
typedef struct Party {
	uint32_t task; /* Timeline::tasks, or one of: */
	Distribution waits;
} Party;

typedef VEC(Party) Parties;

#define TASK_INTERRUPT (THREAD_NONE - 1)
#define TASK_UNKNOWN   (THREAD_NONE - 2)

/* Whom an interval counts for; THREAD_NONE: nobody. */
typedef uint32_t (*PartyPicker)(const Interval *interval);

static uint32_t pick_waker(const Interval *wait)
{
	if (wait->state != STATE_BLOCKED || wait->flags & INTERVAL_OPEN_END)
		return THREAD_NONE;
	if (wait->flags & INTERVAL_WAKER_IRQ)
		return TASK_INTERRUPT;
	return wait->waker == THREAD_NONE ? TASK_UNKNOWN : wait->waker;
}

static uint32_t pick_holder(const Interval *wait)
{
	return wait->state == STATE_BLOCKED ? wait->rival : THREAD_NONE;
}

static uint32_t pick_rival(const Interval *interval)
{
	return interval->state == STATE_RUNNABLE ? interval->rival : THREAD_NONE;
}

static const struct {
	const char *key, *title;
	PartyPicker pick;
} roles[] = {
	{"wakers", "for what was ended by", pick_waker},
	{"holders", "for a lock that was held by", pick_holder},
	{"rivals", "for a CPU that was used by", pick_rival},
};

static void add_party(Parties *parties, Map *index, uint32_t task, uint64_t ns)
{
	uint32_t number = map_get(index, task);

	if (number == MAP_NONE) {
		number = parties->count;
		map_set(index, task, number);
		*vec_push(parties) = (Party){.task = task};
	}
	distribution_add(&parties->items[number].waits, ns);
}

static int compare_parties(const void *a, const void *b)
{
	const Party *x = a, *y = b;

	if (x->waits.total_ns != y->waits.total_ns)
		return x->waits.total_ns > y->waits.total_ns ? -1 : 1;
	return (x->task > y->task) - (x->task < y->task);
}

/* The largest first. Who is idle waits for nobody. */
static Parties parties_of(const Timeline *timeline, PartyPicker pick)
{
	Parties parties = {};
	Map index = {};

	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			const Interval *interval = &thread->intervals.items[i];
			uint32_t task = pick(interval);

			if (task != THREAD_NONE &&
			    reason_info[wait_reason(interval)].category != CATEGORY_IDLE)
				add_party(&parties, &index, task,
					  interval_end(thread, i) - interval->start_ns);
		}
	}
	map_free(&index);
	if (parties.count > 1)
		qsort(parties.items, parties.count, sizeof(Party), compare_parties);
	return parties;
}

static void parties_free(Parties *parties)
{
	for (size_t i = 0; i < parties->count; i++)
		distribution_free(&parties->items[i].waits);
	vec_free(parties);
}

/* NUL-terminated, into name. */
static void party_name(const Timeline *timeline, const Party *party, char name[COMM_LEN + 1])
{
	if (party->task >= timeline->tasks.count) {
		strcpy(name, party->task == TASK_INTERRUPT ? "interrupts" : "unknown");
		return;
	}
	memcpy(name, timeline->tasks.items[party->task].comm, COMM_LEN);
	name[COMM_LEN] = '\0';
	if (!*name)
		strcpy(name, "unknown");
}

/* 0: it is no task. */
static uint32_t party_tid(const Timeline *timeline, const Party *party)
{
	const Task *task;

	if (party->task >= timeline->tasks.count)
		return 0;
	task = &timeline->tasks.items[party->task];
	return task->ns_tid ? task->ns_tid : task->tid;
}

static void print_line(FILE *file, Distribution *waits, const char *what)
{
	fprintf(file, "%12s %9zu %12s %12s %12s %12s  %s", DURATION(waits->total_ns),
		waits->ns.count, DURATION(distribution_mean(waits)),
		DURATION(distribution_at(waits, 0.5)), DURATION(distribution_at(waits, 0.99)),
		DURATION(distribution_at(waits, 1)), what);
}

static void print_head(FILE *file, const char *title)
{
	fprintf(file, "\n%12s %9s %12s %12s %12s %12s  %s\n", "waited", "times", "mean", "p50",
		"p99", "longest", title);
}

static void print_parties(FILE *file, const Timeline *timeline, PartyPicker pick, const char *title)
{
	Parties parties = parties_of(timeline, pick);
	size_t shown = MIN(parties.count, (size_t)PARTIES_SHOWN);

	if (shown > 0)
		print_head(file, title);
	for (size_t i = 0; i < shown; i++) {
		char comm[COMM_LEN + 1];
		uint32_t tid = party_tid(timeline, &parties.items[i]);

		party_name(timeline, &parties.items[i], comm);
		_cleanup_free_ char *name = printable(comm);
		print_line(file, &parties.items[i].waits, name);
		fprintf(file, tid ? " (%u)\n" : "\n", tid);
	}
	parties_free(&parties);
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

static void print_queue(FILE *file, const Timeline *timeline)
{
	bool any = false;

	for (size_t i = 0; i < ARRAY_LEN(queue_reasons); i++) {
		Distribution delays = queued(timeline, queue_reasons[i]);

		if (delays.ns.count > 0) {
			if (!any)
				print_head(file, "until a CPU was free");
			any = true;
			print_line(file, &delays, reason_info[queue_reasons[i]].leaf);
			fputc('\n', file);
		}
		distribution_free(&delays);
	}
}

void report_wakers_print(FILE *file, const Timeline *timeline)
{
	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		print_parties(file, timeline, roles[i].pick, roles[i].title);
	print_queue(file, timeline);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void write_parties(Json *json, const Timeline *timeline, const char *key, PartyPicker pick)
{
	Parties parties = parties_of(timeline, pick);

	json_key_array(json, key);
	for (size_t i = 0; i < MIN(parties.count, (size_t)PARTIES_WRITTEN); i++) {
		char comm[COMM_LEN + 1];

		party_name(timeline, &parties.items[i], comm);
		json_begin_object(json);
		json_key_string(json, "name", comm);
		json_key_u64(json, "tid", party_tid(timeline, &parties.items[i]));
		distribution_json(json, &parties.items[i].waits);
		json_end_object(json);
	}
	json_end_array(json);
	parties_free(&parties);
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

void report_wakers(Json *json, const Timeline *timeline)
{
	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		write_parties(json, timeline, roles[i].key, roles[i].pick);
	write_queue(json, timeline);
}
