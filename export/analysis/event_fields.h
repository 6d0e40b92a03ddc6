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

enum field_kind {
	FIELD_TEXT,    /* one that many may share: a reason, the name of a file */
	FIELD_ADDRESS, /* in text, "0x7f…": hardly two have the same */
	FIELD_NUMBER,  /* in number, as are the next two */
	FIELD_TIME,    /* ns */
	FIELD_TASK,    /* Timeline::tasks */
};

/* key is static; text is valid during the call. */
typedef struct Field {
	const char *key;
	enum field_kind kind;
	const char *text;
	uint64_t number;
} Field;

/* Where facts go. Nothing here is owned. */
typedef struct FieldSink {
	void (*write)(void *user, const Field *fact);
	void *user;
	const Timeline *timeline;
	Frames *frames;
} FieldSink;

/* Of interval i of the thread, in which it did not run; not of one that event_fields_unknown() is
 * for. */
void event_fields_wait(const FieldSink *sink, const Thread *thread, size_t i);

/* Of interval i, of STATE_UNKNOWN: why nobody knows what the thread did. */
void event_fields_unknown(const FieldSink *sink, const Thread *thread, size_t i);

/* fault: one of the thread's. */
void event_fields_fault(const FieldSink *sink, const Thread *thread, const Fault *fault);

void event_fields_request(const FieldSink *sink, const Request *request);

void event_fields_loss(const FieldSink *sink, const LossSpan *loss);

#endif
