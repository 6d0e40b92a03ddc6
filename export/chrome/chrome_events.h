/* SPDX-License-Identifier: GPL-2.0-or-later */
/* chrome_events.h - the state of the writer of Chrome traces, and what all its events have. */
#ifndef WALLPROF_CHROME_EVENTS_H
#define WALLPROF_CHROME_EVENTS_H

#include "event_fields.h"
#include "json_writer.h"
#include "stack_table.h"
#include "timeline.h"

/* Ids that no process has (PID_MAX_LIMIT is 2^22), for pids and tids that are not unique. */
#define CHROME_FIRST_FREE_ID (1u << 30)
#define CHROME_SYSTEM_PID    (CHROME_FIRST_FREE_ID - 1)
#define CHROME_DEVICES_PID   (CHROME_FIRST_FREE_ID - 2)
#define CHROME_DEVICES_TID   (1u << 31) /* plus the device's index */
#define CHROME_EVENTS_LOST   "Events lost"
#define CHROME_RUNNING	     "Running"
#define CHROME_BLOCK_IO	     "Block I/O"

typedef struct Chrome {
	Json json;
	const Timeline *timeline;
	Frames *frames;
	StackTable *tables;
	uint32_t *pids, *tids; /* of Timeline::processes and ::threads */
	/* What is shorter is folded, or has no span. */
	uint64_t fold_ns, fault_ns, request_ns, cpu_run_ns;
	uint32_t hidden; /* states */
	LockTurn turn;	 /* see FieldSink */
	/* One sample stands for this many ticks of a thread. */
	uint64_t ticks_a_sample;
	uint64_t flows, folded, faults, cpu_runs_hidden;
} Chrome;

/* Begins an event with the members that all have; the caller ends the object. */
void chrome_begin(Chrome *chrome, const char *phase, const char *name, uint32_t pid, uint32_t tid);
void chrome_begin_of(Chrome *chrome, const char *phase, const char *name, const Thread *thread);
/* Writes the member "ts"; ns is on the timeline's clock. */
void chrome_key_time(Chrome *chrome, uint64_t ns);
/* Begins the object "data" in "args", in which the viewers show the fields of an event. */
void chrome_begin_data(Chrome *chrome);
void chrome_end_data(Chrome *chrome);
/*
 * Returns the tid of Timeline::tasks[number] in the trace: the thread's own, if it is in the trace;
 * else that of its namespace or, if it is not visible there, the kernel's.
 */
uint32_t chrome_task_tid(const Chrome *chrome, uint32_t number);
/*
 * Returns a sink that writes fields as members; names of times end in "Ms". It is valid as long as
 * chrome is.
 */
FieldSink chrome_field_sink(Chrome *chrome);

#endif
