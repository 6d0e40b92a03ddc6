/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "futexes.h"
#include <inttypes.h>

/* In wallprof's PID namespace; 0: nothing is known of the process. */
static uint32_t process_number(const Timeline *timeline, const struct rec_futex *futex)
{
	uint32_t number = 0;

	/* One that began before the window has its start as its own. */
	for (size_t i = 0; i < timeline->processes.count; i++) {
		const Process *process = &timeline->processes.items[i];

		if (process->tgid == futex->tgid && (!number || process->start_ns <= futex->h.ns))
			number = process->ns_tgid;
	}
	return number;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* The file that is mapped there; NULL: it has no path. */
static const char *file_path(Timeline *timeline, const struct rec_futex *futex)
{
	uint32_t place = objects_reference(&timeline->objects, OBJECT_FILE, futex->device,
					   futex->inode, futex->generation);

	return place == OBJECT_NONE || !timeline->objects.list.items[place].flags
		       ? NULL
		       : timeline->objects.list.items[place].name;
}

/* To be freed; NULL: it is not known. */
static char *place_text(Timeline *timeline, Frames *frames, const struct rec_futex *futex)
{
	uint32_t ns_tgid = process_number(timeline, futex);
	const char *path = file_path(timeline, futex);
	Variable variable;

	if (frames_variable(frames, ns_tgid, futex->h.ns, futex->address, &variable))
		return variable.offset ? xasprintf("%s: %s+0x%" PRIx64, variable.library,
						   variable.name, variable.offset)
				       : xasprintf("%s: %s", variable.library, variable.name);
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

void futexes_name(Timeline *timeline, Frames *frames)
{
	size_t count = timeline->objects.list.count; /* files may be added */

	for (size_t i = 0; i < count; i++) {
		const Object *object = &timeline->objects.list.items[i];
		bool shared = object->flags & OBJECT_SHARED;
		_cleanup_free_ char *place = NULL;
		char *name;

		if (object->kind != OBJECT_FUTEX || !object->told)
			continue;
		place = place_text(timeline, frames, (const struct rec_futex *)object->told);
		if (!place && !shared)
			continue;
		name = xasprintf("0x%" PRIx64 " (%s%s%s)", object->number, shared ? "shared" : "",
				 shared && place ? ", " : "", place ? place : "");
		free(timeline->objects.list.items[i].name);
		timeline->objects.list.items[i].name = name;
	}
}
