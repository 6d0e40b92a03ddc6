/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * event_fields.h - the fields of a wait, a page fault, a request to a block device, an unknown
 * interval and a loss: their keys and their order. All formats have the same fields; each writes
 * them in its own way.
 */
#ifndef WALLPROF_EVENT_FIELDS_H
#define WALLPROF_EVENT_FIELDS_H

#include "interpreter_locks.h"
#include "stack_table.h"
#include "timeline.h"

enum field_kind {
	FIELD_TEXT,    /* many events may share it: a reason, the name of a file */
	FIELD_ADDRESS, /* in text, "0x7f…": rarely shared */
	FIELD_NUMBER,  /* in number, like the next two */
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

/* Where fields go. It owns nothing. turn is kept from one event to the next. */
typedef struct FieldSink {
	void (*write)(void *user, const Field *field);
	void *user;
	const Timeline *timeline;
	Frames *frames;
	LockTurn *turn; /* of the last wait for an interpreter's lock; parts 0: none yet */
} FieldSink;

/*
 * Writes the fields of interval i of the thread, in which it did not run; STATE_UNKNOWN has
 * event_fields_unknown().
 */
void event_fields_wait(const FieldSink *sink, const Thread *thread, size_t i);

/* Writes the fields of interval i, of STATE_UNKNOWN: why the state is unknown. */
void event_fields_unknown(const FieldSink *sink, const Thread *thread, size_t i);

/* The fault is one of the thread's. */
void event_fields_fault(const FieldSink *sink, const Thread *thread, const Fault *fault);

void event_fields_request(const FieldSink *sink, const Request *request);

void event_fields_loss(const FieldSink *sink, const LossSpan *loss);

#endif
