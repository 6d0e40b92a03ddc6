/* SPDX-License-Identifier: GPL-2.0-or-later */
/* firefox_parts.h - shared by the files that write the profile. */
#ifndef WALLPROF_FIREFOX_PARTS_H
#define WALLPROF_FIREFOX_PARTS_H

#include "cpu_rows.h"
#include "interpreter_locks.h"
#include "json_writer.h"
#include "sample_rows.h"
#include "stack_table.h"
#include "tracks.h"

/* Waits, faults and unknown intervals below threshold_ns have no marker. */
typedef struct MarkerPlan {
	uint64_t threshold_ns, fault_threshold_ns, request_threshold_ns;
	uint64_t shown, hidden; /* waits and unknown intervals */
	uint64_t hidden_faults, hidden_requests;
	uint64_t run_threshold_ns, hidden_runs; /* of tasks on CPUs */
} MarkerPlan;

/*
 * The rows of a track, as columns. They are made once, and each column of the profile is written
 * from them.
 */
typedef struct TrackRows {
	VEC(uint32_t) stacks; /* stackTable */
	VEC(uint64_t) ns;     /* CLOCK_MONOTONIC; never decreases */
	VEC(uint64_t) weight_ns;
	/* The track's running time up to ns; empty unless the CPU use is shown. */
	VEC(uint64_t) running_ns;
} TrackRows;

typedef struct Profile {
	Json json;
	const Timeline *timeline;
	Frames *frames;
	bool cpu_graph; /* see FirefoxOptions */
	StackTable *tables;
	Tracks tracks;
	RowPlan rows;
	CpuPlan cpus;
	TrackRows track_rows; /* of the track that is being written; its memory is reused */
	MarkerPlan markers;
	LockTurn turn;	      /* see FieldSink */
	uint64_t *order_rows; /* of each track: further rows, see firefox_order.c */
} Profile;

/* firefox_meta.c writes the member "meta". */
void profile_write_meta(Profile *profile);

/* firefox_samples.c writes the member "samples" of a track. */

/*
 * Returns RowPlan::path_roots: on the path, stacks are put below the name of their process, and of
 * their thread if it is not the main one. The call tree of the path begins with what was on it.
 */
uint32_t *profile_path_roots(const Profile *profile);
void track_rows_free(TrackRows *rows);
/* Replaces Profile::track_rows by the rows of the track. */
void profile_make_rows(Profile *profile, const Track *track);
void profile_write_samples(Profile *profile, const Track *track);

/* The member of a marker's data that has its colour. */
#define FIREFOX_COLOR_KEY "color"

/* firefox_order.c sets Profile::order_rows. */
void profile_plan_order(Profile *profile, uint64_t row_budget);

/* firefox_markers.c writes the markers' schemas, and the member "markers" of a track. */
void marker_plan_fit(MarkerPlan *plan, const Timeline *timeline, uint64_t budget);
void profile_write_marker_schemas(Json *json);
void profile_write_markers(Profile *profile, const Track *track);

/* firefox_counters.c writes the member "counters". */
void profile_write_counters(Profile *profile);

/* firefox_shared.c writes the members "libs" and "shared". */
void firefox_write_shared(const StackTable *tables, Json *json);

#endif
