/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_spans.h - what a thread did, cut into spans that each have one stack.
 *
 * Formats that add up time by stack, or draw it in order of time without rows of their own, are
 * made of these. Each moment of a thread is in one span: a wait is one, and running time is cut at
 * the ticks, each of which stands for the running time since the one before it (tick_weights.h). So
 * the spans of a thread add up to its time by state.
 */
#ifndef WALLPROF_STACK_SPANS_H
#define WALLPROF_STACK_SPANS_H

#include "stack_table.h"
#include "timeline.h"

typedef struct StackSpan {
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; a span is never empty */
	uint64_t recording_ns;	   /* of a running span: recording's share (recording_cost.h) */
	size_t interval;	   /* Thread::intervals: the one that the span is in */
	uint32_t stack;		   /* stackTable; a wait's has the reason as its leaf */
} StackSpan;

typedef void (*StackSpanVisitor)(void *user, const Thread *thread, const StackSpan *span);

/*
 * Passes the spans of a thread to the visitor, in order of time, without those in hidden states (1
 * << enum thread_state). Between others they follow each other without a gap.
 */
void stack_spans_walk(StackTable *tables, const Thread *thread, uint32_t hidden,
		      StackSpanVisitor visit, void *user);

/* Returns the stack of recording's share (stackTable). */
uint32_t stack_spans_recording(StackTable *tables);

/* Returns the state of the thread in the span. */
enum thread_state stack_span_state(const Thread *thread, const StackSpan *span);

#endif
