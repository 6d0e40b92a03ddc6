/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waited_for.h"
#include "path_waits.h"
#include "short_names.h"
#include "text.h"
#include "wait_fields.h"

bool waited_for_reason_counts(const Timeline *timeline, enum reason reason)
{
	enum category category = reason_info[reason].category;

	if (category_is_idle(category))
		return false;
	return timeline->path.track.intervals.count > 0 || !timeline->whole_system ||
	       category == CATEGORY_DISK || category == CATEGORY_FAULT || category == CATEGORY_LOCK;
}

bool waited_for_counts(const Timeline *timeline, const Interval *interval)
{
	enum reason reason = wait_reason(interval);

	if (interval->state == STATE_BLOCKED)
		return waited_for_reason_counts(timeline, reason);
	return !category_is_idle(reason_info[reason].category) &&
	       (interval->state != STATE_UNKNOWN || timeline->path.track.intervals.count > 0);
}

/* Waits of one kind for one thing. */
typedef struct Thing {
	enum reason reason;
	char *name;
	uint64_t ns;
} Thing;

typedef struct Things {
	Strings names;
	Map index; /* (reason, name) -> list */
	VEC(Thing) list;
} Things;

/* Returns the label of the thread that ended a wait of a thread, or held its lock; or NULL. */
static char *waker_label(const Timeline *timeline, const Interval *wait)
{
	bool is_lock = reason_info[wait_reason(wait)].category == CATEGORY_LOCK;
	uint32_t task =
		is_lock && wait->lock_holder != THREAD_NONE ? wait->lock_holder : wait->waker;
	char buffer[COMM_LEN + 1];
	const char *name;

	if (task >= timeline->tasks.count)
		return NULL;
	if (timeline->tasks.items[task].thread < timeline->threads.count)
		return short_names_thread(
			timeline, &timeline->threads.items[timeline->tasks.items[task].thread]);
	name = task_name(timeline, task, buffer);
	return name ? text_printable(name) : NULL;
}

/* Returns what a wait is for: an object, or a thread, or both; NULL: it has no name. */
static char *thing_name(const Timeline *timeline, const Thread *thread, size_t i)
{
	const Interval *wait = &thread->intervals.items[i];
	enum category category = reason_info[wait_reason(wait)].category;
	uint32_t object = wait_object(timeline, thread, i);
	bool by_thread = category == CATEGORY_LOCK || category == CATEGORY_THREAD ||
			 category == CATEGORY_PIPE || category == CATEGORY_OTHER_WAIT;
	_cleanup_free_ char *waker = by_thread ? waker_label(timeline, wait) : NULL, *name = NULL;

	/* The thread that has the only lock of its kind says more than the lock's address. */
	if (waker && wait_reason(wait) == REASON_GIL)
		return xstrdup(waker);
	if (object != OBJECT_NONE && !short_names_exists(&timeline->objects.list.items[object]))
		object = OBJECT_NONE;
	if (object == OBJECT_NONE && waker)
		return xasprintf(category == CATEGORY_LOCK ? "a lock, held by %s" : "%s", waker);
	if (object == OBJECT_NONE)
		return NULL;
	name = short_names_object(&timeline->objects.list.items[object]);
	if (!waker)
		return xstrdup(name);
	return xasprintf(category == CATEGORY_LOCK ? "%s, held by %s" : "%s, by %s", name, waker);
}

static void add_thing(Things *things, const Timeline *timeline, const PathWait *wait)
{
	const Thread *thread = &timeline->threads.items[wait->thread];
	enum reason reason = wait_reason(&thread->intervals.items[wait->interval]);
	char *name = thing_name(timeline, thread, wait->interval);
	uint64_t key;
	uint32_t number;

	if (!name)
		return;
	key = (uint64_t)strings_intern(&things->names, name) << 32 | reason;
	number = map_get(&things->index, key);
	if (number == MAP_NONE) {
		number = things->list.count;
		map_set(&things->index, key, number);
		*vec_push(&things->list) = (Thing){reason, xstrdup(name), 0};
	}
	things->list.items[number].ns += wait->ns;
	free(name);
}

/* Returns all waits that count, which is for recordings without a path. */
static PathWaits waits_of_threads(const Timeline *timeline)
{
	PathWaits waits = {};

	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];

		for (size_t i = 0; i < thread->intervals.count; i++) {
			const Interval *interval = &thread->intervals.items[i];

			if (interval->state != STATE_BLOCKED ||
			    !waited_for_counts(timeline, interval))
				continue;
			*vec_push(&waits) =
				(PathWait){t, i, interval_end(thread, i) - interval->start_ns, 0};
		}
	}
	return waits;
}

char *waited_for_words(enum reason reason)
{
	const char *leaf = reason_info[reason].leaf;
	size_t length = strlen(leaf);

	return *leaf == '[' && leaf[length - 1] == ']' ? xstrndup(leaf + 1, length - 2)
						       : xstrdup(leaf);
}

WaitedFor waited_for_find(const Timeline *timeline, const char *but)
{
	bool is_path = timeline->path.track.intervals.count > 0;
	PathWaits waits = is_path ? path_waits_find(timeline) : waits_of_threads(timeline);
	WaitedFor found = {};
	Things things = {};

	for (size_t i = 0; i < waits.count; i++)
		if (waits.items[i].ns > 0)
			add_thing(&things, timeline, &waits.items[i]);
	for (size_t i = 0; i < things.list.count; i++) {
		const Thing *thing = &things.list.items[i];

		if (thing->ns > found.ns && strcmp(thing->name, but) != 0)
			found = (WaitedFor){thing->reason, thing->name, thing->ns};
	}
	found.name = found.name ? xstrdup(found.name) : NULL;
	for (size_t i = 0; i < things.list.count; i++)
		free(things.list.items[i].name);
	vec_free(&things.list);
	map_free(&things.index);
	strings_free(&things.names);
	vec_free(&waits);
	return found;
}
