/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "futex_names.h"
#include <inttypes.h>

/* Indexes of processes by tgid, which several processes may have had. */
typedef struct ProcessIndex {
	Map first;	/* tgid -> Timeline::processes */
	uint32_t *next; /* the next one with the same tgid */
} ProcessIndex;

#define SAME_MAX 64 /* the limit of processes of one tgid that are searched */

static ProcessIndex process_index_make(const Timeline *timeline)
{
	ProcessIndex processes = {
		.next = xcalloc(timeline->processes.count + 1, sizeof(*processes.next))};

	for (size_t i = 0; i < timeline->processes.count; i++) {
		uint32_t tgid = timeline->processes.items[i].tgid;

		processes.next[i] = map_get(&processes.first, tgid);
		map_set(&processes.first, tgid, i);
	}
	return processes;
}

/*
 * Returns the process that had the tgid (in wallprof's PID namespace) at ns; 0: it is not recorded.
 */
static uint32_t number_at(const Timeline *timeline, const ProcessIndex *processes, uint32_t tgid,
			  uint64_t ns)
{
	uint32_t found = 0, i = map_get(&processes->first, tgid);

	/* A process that began before the window has the window's start as its own. */
	for (size_t looked = 0; i != MAP_NONE && looked < SAME_MAX; looked++) {
		const Process *process = &timeline->processes.items[i];

		found = process->ns_tgid;
		if (process->start_ns <= ns)
			break;
		i = processes->next[i];
	}
	return found;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Returns the file that is mapped there; NULL: none, or it has no path. */
static const char *file_path(Timeline *timeline, const struct rec_futex *futex)
{
	uint32_t place = objects_reference(&timeline->objects, OBJECT_FILE, futex->device,
					   futex->inode, futex->generation);

	return place == OBJECT_NONE || !timeline->objects.list.items[place].flags
		       ? NULL
		       : timeline->objects.list.items[place].name;
}

/* Returns the variable at the word; NULL: none with a name. The caller frees it. */
static char *variable_text(Frames *frames, uint32_t ns_tgid, uint64_t ns, uint64_t address)
{
	Variable variable;

	if (!frames_variable(frames, ns_tgid, ns, address, &variable))
		return NULL;
	return variable.offset ? xasprintf("%s: %s+0x%" PRIx64, variable.library, variable.name,
					   variable.offset)
			       : xasprintf("%s: %s", variable.library, variable.name);
}

/* Returns the memory that the word lies in; NULL: unknown. The caller frees it. */
static char *memory_text(Timeline *timeline, const struct rec_futex *futex)
{
	const char *path = file_path(timeline, futex);

	switch (futex->memory) {
	case MEMORY_HEAP:
		return xstrdup("heap");
	case MEMORY_STACK:
		return xstrdup("stack");
	case MEMORY_FILE:
		return path ? xasprintf("data of %s", base_name(path)) : xstrdup("data of a file");
	case MEMORY_SHARED:
		return path ? xasprintf("mapped from %s", path) : xstrdup("shared memory");
	case MEMORY_ANONYMOUS:
		return xstrdup("anonymous memory");
	default:
		return NULL;
	}
}

/* A process that no record describes has waited for it since before the window. */
static char *report_place_text(Timeline *timeline, Frames *frames, const ProcessIndex *processes,
			       const Object *object)
{
	const struct rec_futex *futex = (const struct rec_futex *)object->description;
	uint64_t ns = futex ? futex->h.ns : timeline->start_ns;
	uint32_t ns_tgid = number_at(timeline, processes, object->device, ns);
	char *variable = NULL;

	if (!futex || (futex->memory != MEMORY_STACK && futex->memory != MEMORY_SHARED))
		variable = variable_text(frames, ns_tgid, ns, object->number);
	return variable || !futex ? variable : memory_text(timeline, futex);
}

void futex_names_find(Timeline *timeline, Frames *frames)
{
	ProcessIndex processes = process_index_make(timeline);
	size_t count =
		timeline->objects.list.count; /* files may be added, which may move the list */

	for (size_t i = 0; i < count; i++) {
		Object object = timeline->objects.list.items[i];
		_cleanup_free_ char *place = NULL;

		if (object.kind != OBJECT_FUTEX)
			continue;
		place = report_place_text(timeline, frames, &processes, &object);
		if (!place)
			continue;
		free(object.name);
		timeline->objects.list.items[i].name =
			xasprintf("0x%" PRIx64 " (%s)", object.number, place);
	}
	map_free(&processes.first);
	free(processes.next);
}
