/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * event_reorder.h - the events of all CPUs in the order of their times.
 *
 * Each CPU's come in order, but how those of two CPUs interleave is known only when none that is
 * older can still come. So they are kept until the caller knows that all up to some time
 * are there. One that is older than what the caller has already called known
 * is late: it is counted, and given a time just behind that, for nobody can have known it before.
 */
#ifndef WALLPROF_EVENT_REORDER_H
#define WALLPROF_EVENT_REORDER_H

#include "util.h"

/* An event, copied into EventReorder::bytes. */
typedef struct OrderedEvent {
	uint64_t ns;
	uint64_t number; /* how many came before it */
	size_t at, size; /* bytes */
} OrderedEvent;

typedef struct EventReorder {
	VEC(uint8_t) bytes; /* of the events in the list, each at a multiple of 8 */
	VEC(OrderedEvent) list;
	uint64_t watermark_ns; /* all up to this time has been given on */
	uint64_t number;
	uint64_t late;
} EventReorder;

void event_reorder_free(EventReorder *order);

/* Copies an event of that time. */
void event_reorder_add(EventReorder *order, uint64_t ns, const void *event, size_t size);

/*
 * All events up to watermark_ns are there: gives them on in the order of their times, those of one
 * time as they came. ns is the event's time, or the one that it has if it is late; it never falls,
 * over all calls. A watermark_ns below an earlier one counts as that. Returns 0 or the first error
 * of take(), which loses the events that were due.
 */
int event_reorder_deliver(EventReorder *order, uint64_t watermark_ns,
			  int (*take)(void *user, const void *event, uint64_t ns), void *user);

/* After event_reorder_deliver(): the time of the youngest that is kept and matters; 0 = none does.
 */
uint64_t event_reorder_youngest_ns(const EventReorder *order,
				   bool (*matters)(const void *user, const void *event),
				   const void *user);

#endif
