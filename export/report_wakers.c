/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report_wakers.h"
#include "distribution.h"
#include "report_text.h"
#include "wait.h"
#include <inttypes.h>

#define WAKERS_SHOWN   10
#define WAKERS_WRITTEN 1000 /* to JSON */

/* ---- who ended waits, and what came then --------------------------------------------------- */

typedef struct Waker {
	uint32_t task; /* Timeline::tasks; THREAD_NONE: interrupts; THREAD_NONE - 1: not known */
	Distribution waits;
} Waker;

typedef VEC(Waker) Wakers;

#define TASK_UNKNOWN (THREAD_NONE - 1)

static void add_ended(Wakers *wakers, Map *index, const Interval *wait, uint64_t ns)
{
	uint32_t task = wait->flags & INTERVAL_WAKER_IRQ ? THREAD_NONE
			: wait->waker == THREAD_NONE	 ? TASK_UNKNOWN
							 : wait->waker;
	uint32_t number = map_get(index, task);

	if (number == MAP_NONE) {
		number = wakers->count;
		map_set(index, task, number);
		*vec_push(wakers) = (Waker){.task = task};
	}
	distribution_add(&wakers->items[number].waits, ns);
}

static int compare_wakers(const void *a, const void *b)
{
	const Waker *x = a, *y = b;

	if (x->waits.total_ns != y->waits.total_ns)
		return x->waits.total_ns > y->waits.total_ns ? -1 : 1;
	return (x->task > y->task) - (x->task < y->task);
}

static Wakers wakers_of(const Timeline *timeline)
{
	Wakers wakers = {};
	Map index = {};

	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			const Interval *wait = &thread->intervals.items[i];

			if (wait->state == STATE_BLOCKED && !(wait->flags & INTERVAL_OPEN_END) &&
			    reason_info[wait_reason(wait)].category != CATEGORY_IDLE)
				add_ended(&wakers, &index, wait,
					  interval_end(thread, i) - wait->start_ns);
		}
	}
	map_free(&index);
	if (wakers.count > 1)
		qsort(wakers.items, wakers.count, sizeof(Waker), compare_wakers);
	return wakers;
}

static void wakers_free(Wakers *wakers)
{
	for (size_t i = 0; i < wakers->count; i++)
		distribution_free(&wakers->items[i].waits);
	vec_free(wakers);
}

/* NUL-terminated, into name. */
static void waker_name(const Timeline *timeline, const Waker *waker, char name[COMM_LEN + 1])
{
	if (waker->task >= timeline->tasks.count) {
		strcpy(name, waker->task == THREAD_NONE ? "interrupts" : "unknown");
		return;
	}
	memcpy(name, timeline->tasks.items[waker->task].comm, COMM_LEN);
	name[COMM_LEN] = '\0';
}

static uint32_t waker_tid(const Timeline *timeline, const Waker *waker)
{
	const Task *task;

	if (waker->task >= timeline->tasks.count)
		return 0;
	task = &timeline->tasks.items[waker->task];
	return task->ns_tid ? task->ns_tid : task->tid;
}

static void print_wakers(FILE *file, const Timeline *timeline)
{
	Wakers wakers = wakers_of(timeline);
	size_t shown = MIN(wakers.count, (size_t)WAKERS_SHOWN);

	if (shown > 0)
		fprintf(file, "\n%12s %9s %12s %12s %12s %12s  %s\n", "waited", "times", "mean",
			"p50", "p99", "longest", "for what was ended by");
	for (size_t i = 0; i < shown; i++) {
		Distribution *waits = &wakers.items[i].waits;
		char comm[COMM_LEN + 1];
		uint32_t tid = waker_tid(timeline, &wakers.items[i]);

		waker_name(timeline, &wakers.items[i], comm);
		_cleanup_free_ char *name = printable(comm);
		fprintf(file, "%12s %9zu %12s %12s %12s %12s  %s", DURATION(waits->total_ns),
			waits->ns.count, DURATION(distribution_mean(waits)),
			DURATION(distribution_at(waits, 0.5)),
			DURATION(distribution_at(waits, 0.99)), DURATION(distribution_at(waits, 1)),
			name);
		fprintf(file, tid ? " (%u)\n" : "\n", tid);
	}
	wakers_free(&wakers);
}

static const enum reason queue_reasons[] = {REASON_WOKEN, REASON_PREEMPTED, REASON_YIELDED};

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
				fprintf(file, "\n%12s %9s %12s %12s %12s %12s  %s\n", "delay",
					"times", "mean", "p50", "p99", "longest",
					"until a CPU was free");
			any = true;
			fprintf(file, "%12s %9zu %12s %12s %12s %12s  %s\n",
				DURATION(delays.total_ns), delays.ns.count,
				DURATION(distribution_mean(&delays)),
				DURATION(distribution_at(&delays, 0.5)),
				DURATION(distribution_at(&delays, 0.99)),
				DURATION(distribution_at(&delays, 1)),
				reason_info[queue_reasons[i]].leaf);
		}
		distribution_free(&delays);
	}
}

void report_wakers_print(FILE *file, const Timeline *timeline)
{
	print_wakers(file, timeline);
	print_queue(file, timeline);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void write_wakers(Json *json, const Timeline *timeline)
{
	Wakers wakers = wakers_of(timeline);

	json_key_array(json, "wakers");
	for (size_t i = 0; i < MIN(wakers.count, (size_t)WAKERS_WRITTEN); i++) {
		char comm[COMM_LEN + 1];

		waker_name(timeline, &wakers.items[i], comm);
		json_begin_object(json);
		json_key_string(json, "name", comm);
		json_key_u64(json, "tid", waker_tid(timeline, &wakers.items[i]));
		distribution_json(json, &wakers.items[i].waits);
		json_end_object(json);
	}
	json_end_array(json);
	wakers_free(&wakers);
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
	write_wakers(json, timeline);
	write_queue(json, timeline);
}
