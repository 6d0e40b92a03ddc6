/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * event_fields.h - what is told of a wait, a page fault, a request to a block device, an unknown
 * stretch and a loss: which facts, in which order, and what they are called. All formats tell the
 * same; each writes them in its own way.
 */
#ifndef WALLPROF_EVENT_FIELDS_H
#define WALLPROF_EVENT_FIELDS_H

#include "stack_table.h"
#include "timeline.h"

enum fact_kind {
	FACT_TEXT,    /* one that many may share: a reason, the name of a file */
	FACT_ADDRESS, /* in text, "0x7f…": hardly two have the same */
	FACT_NUMBER,  /* in number, as are the next two */
	FACT_TIME,    /* ns */
	FACT_TASK,    /* Timeline::tasks */
};

/* key is static; text is valid during the call. */
typedef struct Fact {
	const char *key;
	enum fact_kind kind;
	const char *text;
	uint64_t number;
} Fact;

/* Where facts go. Nothing here is owned. */
typedef struct FactSink {
	void (*write)(void *user, const Fact *fact);
	void *user;
	const Timeline *timeline;
	Frames *frames;
} FactSink;

/* Of interval i of the thread, in which it did not run; not of one that event_fields_unknown() is
 * for. */
void event_fields_wait(const FactSink *sink, const Thread *thread, size_t i);

/* Of interval i, of STATE_UNKNOWN: why nobody knows what the thread did. */
void event_fields_unknown(const FactSink *sink, const Thread *thread, size_t i);

/* fault: one of the thread's. */
void event_fields_fault(const FactSink *sink, const Thread *thread, const Fault *fault);

void event_fields_request(const FactSink *sink, const Request *request);

void event_fields_loss(const FactSink *sink, const LossSpan *loss);

#endif
