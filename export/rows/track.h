/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * track.h - a track of the profile, its ids and its name.
 *
 * A track is one thread; or a lane, which has the threads of short-lived processes of one name one
 * after another; or a block device that had requests; or a CPU; or the critical path.
 */
#ifndef WALLPROF_TRACK_H
#define WALLPROF_TRACK_H

#include "json_writer.h"
#include "timeline.h"

#define TRACK_NONE  UINT32_MAX
#define DEVICE_NONE UINT32_MAX
#define CPU_NONE    UINT32_MAX

/* A pid or tid as the profile has it: unique, and a plain number if possible. */
typedef struct TrackId {
	const char *word; /* instead of a number, for what is not a task */
	uint32_t number;
	uint32_t reuse; /* counts reuses of the id: 0, 1, … */
	bool host;	/* not visible in the recorder's namespace: it is the kernel's own id */
} TrackId;

/* By this, tracks are ordered: by the first member, then by the second. */
typedef struct TrackScore {
	uint64_t path_ns;    /* on the critical path */
	uint64_t active_ns;  /* running, runnable, or waiting for a disk, a page or a lock */
	uint64_t running_ns; /* what never ran is not visible at first */
} TrackScore;

typedef struct Track {
	char *name, *process_name;
	TrackId pid, tid;
	bool is_main, is_lane, is_system, is_path;
	/* Requests::devices, for a row of the process "Block devices", or DEVICE_NONE. */
	uint32_t device;
	uint32_t cpu; /* Timeline::cpus, for a row of the process "CPUs", or CPU_NONE */
	/* Indexes for timeline_track(), in order of time, not overlapping. */
	VEC(uint32_t) threads;
	uint64_t start_ns, end_ns; /* of the thread, or of the lane's first and last thread */
	uint64_t process_start_ns, process_end_ns;
	bool ended, process_ended; /* before the end of the window */
	TrackScore score;
} Track;

typedef struct Tracks {
	VEC(Track)
	list; /* first the critical path, if there is one; the last one is "System", before it are
		 the block devices, and before these the CPUs */
	TrackId *tids; /* of each of Timeline::threads */
	VEC(uint32_t) visible;
	uint32_t selected;
	uint64_t lanes, laned_processes;
} Tracks;

static inline uint32_t tracks_system(const Tracks *tracks)
{
	return tracks->list.count - 1;
}

/* It is written as a number if it is one, else as a string. */
void track_json_tid(Json *json, TrackId id);
/* It is always written as a string. */
void track_json_pid(Json *json, TrackId id);

/*
 * Adds the TID to the names of threads that are not unique: "worker (4711)". The viewer shows the
 * PID of a main thread below its name, so that these keep their names.
 */
void track_tell_apart(Tracks *tracks);

#endif
