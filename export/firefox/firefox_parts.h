/* SPDX-License-Identifier: GPL-2.0-or-later */
/* firefox_parts.h - shared by the files that write the profile. */
#ifndef WALLPROF_FIREFOX_PARTS_H
#define WALLPROF_FIREFOX_PARTS_H

#include "cpu_rows.h"
#include "firefox.h"
#include "json_writer.h"
#include "sample_rows.h"
#include "stack_table.h"
#include "track_rows.h"
#include "tracks.h"

/* Waits, faults and unknown intervals below threshold_ns have no marker. */
typedef struct MarkerPlan {
	uint64_t threshold_ns, fault_threshold_ns, request_threshold_ns;
	uint64_t shown, hidden; /* waits and unknown intervals */
	uint64_t hidden_faults, hidden_requests;
} MarkerPlan;

typedef struct Profile {
	Json json;
	const Timeline *timeline;
	Frames *frames;
	const FirefoxOptions *options;
	StackTable *tables;
	Tracks tracks;
	RowPlan rows;
	CpuPlan cpus;
	TrackRows track_rows; /* of the track that is being written */
	MarkerPlan markers;
} Profile;

/* firefox_meta.c: the member "meta". */
void profile_write_meta(Profile *profile);

/* firefox_samples.c: the member "samples" of a track. */
void profile_write_samples(Profile *profile, const Track *track);

/* firefox_markers.c: the markers' schemas, and the member "markers" of a track. */
void marker_plan_fit(MarkerPlan *plan, const Timeline *timeline, uint64_t budget);
void profile_write_marker_schemas(Json *json);
void profile_write_markers(Profile *profile, const Track *track);

/* firefox_counters.c: the member "counters". */
void profile_write_counters(Profile *profile);

/* firefox_shared.c: the members "libs" and "shared". */
void firefox_write_shared(const StackTable *tables, Json *json);

#endif
