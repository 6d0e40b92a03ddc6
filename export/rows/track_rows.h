/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * track_rows.h - the sample rows of a track, as columns.
 *
 * A track is a CPU, or threads that existed one after the other. The rows are made once, and each
 * column of a profile is written from them. Only one track's rows are in memory at a time.
 */
#ifndef WALLPROF_TRACK_ROWS_H
#define WALLPROF_TRACK_ROWS_H

#include "cpu_rows.h"
#include "tracks.h"

typedef struct TrackRows {
	VEC(uint32_t) stacks; /* stackTable */
	VEC(uint64_t) ns;     /* CLOCK_MONOTONIC; never decreases */
	VEC(uint64_t) weight_ns;
	/* The track's running time up to ns; empty unless the CPU use is shown. */
	VEC(uint64_t) running_ns;
} TrackRows;

/* Replaces the content of rows, whose memory is reused. */
void track_rows_make(TrackRows *rows, StackTable *tables, const RowPlan *plan, const CpuPlan *cpus,
		     const Track *track, bool with_cpu_use);
void track_rows_free(TrackRows *rows);

#endif
