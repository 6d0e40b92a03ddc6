/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chrome_path.c - the critical path: a row of its own, with a slice for each stretch of one thread.
 */
#include "chrome_private.h"
#include "critical_path.h"

#define CRITICAL_PATH "Critical path"

static void write_slice(Chrome *chrome, size_t first, size_t end)
{
	const Thread *track = &chrome->timeline->path.track;
	uint32_t owner = track->owners.items[first];
	uint64_t from_ns = track->intervals.items[first].start_ns;
	Json *json = &chrome->json;

	chrome_begin(chrome, "X", critical_path_stretch_name(chrome->timeline, first),
		     CHROME_PATH_PID, CHROME_PATH_PID);
	json_key_string(json, "cat", CRITICAL_PATH);
	chrome_key_time(chrome, from_ns);
	json_key_us(json, "dur", interval_end(track, end - 1) - from_ns);
	chrome_begin_data(chrome);
	json_key_u64(json, "tid", chrome->tids[owner]);
	chrome_end_data(chrome);
	json_end_object(json);
}

void chrome_write_path(Chrome *chrome)
{
	const Thread *track = &chrome->timeline->path.track;

	for (size_t i = 0, end; i < track->intervals.count; i = end) {
		end = critical_path_stretch(track, i);
		if (interval_end(track, end - 1) - track->intervals.items[i].start_ns >=
		    chrome->fold_ns)
			write_slice(chrome, i, end);
	}
}
