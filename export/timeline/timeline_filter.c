/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timeline_builder_private.h"
#include <fnmatch.h>
#include <string.h>

/* Returns whether a word selects something by its id or name. */
static bool is_selected(const char *word, uint32_t number, const char *name)
{
	uint64_t wanted;

	if (parse_u64(word, &wanted) == 0 && wanted == number)
		return true;
	return name && fnmatch(word, name, 0) == 0;
}

/* Returns whether one of the words, separated by commas, selects it by either of its names. */
static bool is_among(const char *words, uint32_t number, const char *name, const char *other_name)
{
	_cleanup_free_ char *copy = xstrdup(words);
	char *rest = copy;

	for (char *word; (word = strsep(&rest, ","));)
		if (is_selected(word, number, name) || is_selected(word, number, other_name))
			return true;
	return false;
}

static const char *file_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

bool filter_includes(const TimelineBuilder *builder, const BuildThread *target)
{
	const TimelineFilter *filter = &builder->filter;
	const Process *process = target->process == INDEX_NONE
					 ? NULL
					 : &builder->processes.items[target->process].process;

	if (filter->threads &&
	    !is_among(filter->threads, target->thread.ns_tid, target->thread.name, NULL))
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
