/* SPDX-License-Identifier: GPL-2.0-or-later */
/* timeline_builder.h - makes a timeline from the records of a capture. */
#ifndef WALLPROF_TIMELINE_BUILDER_H
#define WALLPROF_TIMELINE_BUILDER_H

#include "timeline.h"

typedef struct TimelineBuilder TimelineBuilder;

TimelineBuilder *timeline_builder_new(void);

/*
 * The part of a capture to include. The rest is treated as if it had not been recorded: an excluded
 * thread is a non-target, which is still named where a record refers to it.
 */
typedef struct TimelineFilter {
	/* Within the recorded window, since its start; to_ns 0: its end. */
	uint64_t from_ns, to_ns;
	/*
	 * The filters are ids and names (fnmatch(3)), separated by commas; NULL: all. A process
	 * also matches by the last part of its program's path.
	 */
	const char *processes, *threads;
} TimelineFilter;

/*
 * To be called before the first record. The caller keeps the strings until
 * timeline_builder_finish().
 */
void timeline_builder_filter(TimelineBuilder *builder, const TimelineFilter *filter);

/*
 * Adds a record; they come in order of time (capture_read_sorted). Kinds that the timeline does not
 * need are ignored.
 */
void timeline_builder_add(TimelineBuilder *builder, const struct record *record);

/*
 * Ends every chain at the end of the window (REC_WINDOW with WINDOW_END, or the last record of a
 * capture that is cut off), adds up the time by state, and frees the builder.
 */
Timeline *timeline_builder_finish(TimelineBuilder *builder);

#endif
