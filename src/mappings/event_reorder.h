/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * event_reorder.h - puts the events of all CPUs into the order of their times.
 *
 * The events of each CPU come in order. How those of two CPUs interleave is known only when no
 * older one can still come, so events are kept until the caller states a watermark. An event that
 * is older than an earlier watermark is late: it is counted, and gets a time just after that
 * watermark, because what was delivered before cannot be changed.
 */
#ifndef WALLPROF_EVENT_REORDER_H
#define WALLPROF_EVENT_REORDER_H

#include "util.h"

/* An event, copied into EventReorder::bytes. */
typedef struct OrderedEvent {
	uint64_t ns;
	uint64_t sequence; /* how many came before it */
	size_t at, size;   /* bytes */
} OrderedEvent;

typedef struct EventReorder {
	VEC(uint8_t) bytes; /* of the events in the list, each at a multiple of 8 */
	VEC(OrderedEvent) list;
	uint64_t watermark_ns; /* all events up to this time are delivered */
	uint64_t sequence;
	uint64_t late;
} EventReorder;

void event_reorder_free(EventReorder *order);

/* Copies an event of that time. */
void event_reorder_add(EventReorder *order, uint64_t ns, const void *event, size_t size);

/*
 * Delivers all events up to watermark_ns in the order of their times; those of one time in the
 * order in which they came. ns is the event's time, or the later one that it gets if it is late; it
 * never decreases over all calls. A watermark_ns below an earlier one counts as that one. Returns 0
 * or the first error of take(), after which the events that were due are lost.
 */
int event_reorder_deliver(EventReorder *order, uint64_t watermark_ns,
			  int (*take)(void *user, const void *event, uint64_t ns), void *user);

/*
 * After event_reorder_deliver(): the time of the youngest event that is kept and matters; 0 = none.
 */
uint64_t event_reorder_youngest_ns(const EventReorder *order,
				   bool (*matters)(const void *user, const void *event),
				   const void *user);

#endif
