/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timeline_builder.h"
#include <fnmatch.h>
#include <string.h>

/* By number, or by name. */
static bool is_meant(const char *word, uint32_t number, const char *name)
{
	uint64_t wanted;

	if (parse_u64(word, &wanted) == 0 && wanted == number)
		return true;
	return name && fnmatch(word, name, 0) == 0;
}

/* Whether one of the words that commas separate means it; of two names either will do. */
static bool is_among(const char *words, uint32_t number, const char *name, const char *other_name)
{
	_cleanup_free_ char *copy = xstrdup(words);
	char *rest = copy;

	for (char *word; (word = strsep(&rest, ","));)
		if (is_meant(word, number, name) || is_meant(word, number, other_name))
			return true;
	return false;
}

static const char *file_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

bool filter_includes(const TimelineBuilder *builder, const BuildThread *life)
{
	const TimelineFilter *filter = &builder->filter;
	const Process *process = life->process == INDEX_NONE
					 ? NULL
					 : &builder->processes.items[life->process].process;

	if (filter->threads &&
	    !is_among(filter->threads, life->thread.ns_tid, life->thread.name, NULL))
		return false;
	if (!filter->processes)
		return true;
	return process && is_among(filter->processes, process->ns_tgid, process->name,
				   file_name(process->path));
}

void timeline_builder_filter(TimelineBuilder *builder, const TimelineFilter *filter)
{
	builder->filter = *filter;
}

void filter_window(TimelineBuilder *builder)
{
	const TimelineFilter *filter = &builder->filter;
	Timeline *timeline = builder->timeline;

	if (filter->to_ns)
		timeline->end_ns = timeline->start_ns + filter->to_ns;
	timeline->cut = filter->from_ns || filter->to_ns;
	timeline->start_ns += filter->from_ns;
	timeline->realtime_start_ns += filter->from_ns;
}
