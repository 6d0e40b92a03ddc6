/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answer.h"
#include "answer_private.h"
#include "path_waits.h"
#include "text.h"
#include "wait_fields.h"

/* The path of a file that is longer loses its folders. */
#define SHORT_NAME 24
/* A thread is idle if it is for so much of its lifetime. */
#define NEARLY_ALL 0.99

/* ---- the parts ----------------------------------------------------------------------------- */

/*
 * Returns what the user knows a thread by: the label of its process, "cc1 slow.c", or its own name,
 * "bio_close_file (redis-server)". The caller frees it.
 */
static char *label_of(const Timeline *timeline, const Thread *thread)
{
	const Process *process = &timeline->processes.items[thread->process];
	_cleanup_free_ char *name = NULL, *of = NULL;

	if (!thread->name || !process->name || !strcmp(thread->name, process->name) ||
	    thread->is_main)
		return xstrdup(process->label ? process->label : "unknown");
	name = text_printable(thread->name);
	of = text_printable(process->name);
	return xasprintf("%s (%s)", name, of);
}

static uint32_t who_is(Maker *maker, const Thread *thread)
{
	uint64_t number = thread - maker->timeline->threads.items;
	uint32_t who = map_get(&maker->label_of, number);

	if (who == MAP_NONE) {
		_cleanup_free_ char *label = label_of(maker->timeline, thread);

		who = strings_intern(&maker->labels, label);
		map_set(&maker->label_of, number, who);
	}
	return who;
}

static Part *part_of(Maker *maker, const Thread *thread, enum reason reason)
{
	uint32_t who = who_is(maker, thread);
	uint64_t key = (uint64_t)who << 32 | reason;
	uint32_t number = map_get(&maker->index, key);

	if (number == MAP_NONE) {
		number = maker->parts.count;
		map_set(&maker->index, key, number);
		*vec_push(&maker->parts) = (Part){.who = who, .reason = reason};
	}
	return &maker->parts.items[number];
}

/* Returns whether the key is new to the map. */
static bool map_add(Map *map, uint64_t key)
{
	if (map_get(map, key) != MAP_NONE)
		return false;
	map_set(map, key, 0);
	return true;
}

static void add_thread(Part *part, const Timeline *timeline, const Thread *thread)
{
	uint32_t number = thread - timeline->threads.items;

	if (part->threads == 0)
		part->thread = number;
	part->threads += map_add(&part->thread_index, number);
	part->processes += map_add(&part->process_index, thread->process);
}

static void add_evidence(Part *part, const StackRef *ref, bool is_tick, uint64_t ns)
{
	uint64_t key = hash_mix(hash_mix(ref->user_stack, ref->kernel_stack),
				(uint64_t)ref->ns_tgid << 1 | is_tick);
	uint32_t number = map_get(&part->evidence_index, key);
	Evidence new = {ref->user_stack, ref->kernel_stack, ref->ns_tgid, ref->ns, 0};

	if (number == MAP_NONE) {
		number = is_tick ? part->ticks.count : part->switch_outs.count;
		map_set(&part->evidence_index, key, number);
		if (is_tick)
			*vec_push(&part->ticks) = new;
		else
			*vec_push(&part->switch_outs) = new;
	}
	(is_tick ? part->ticks.items : part->switch_outs.items)[number].ns += ns;
}

/* A length of time is no name, and an address of memory is one only with its variable. */
static bool has_good_name(const Object *object)
{
	return object->kind != OBJECT_TIMER &&
	       (object->kind != OBJECT_FUTEX || strstr(object->name, ": "));
}

static void add_object(Part *part, const Timeline *timeline, uint32_t object, uint64_t ns)
{
	uint32_t number;

	if (object == OBJECT_NONE || !has_good_name(&timeline->objects.list.items[object]))
		return;
	number = map_get(&part->object_index, object);
	if (number == MAP_NONE) {
		number = part->objects.count;
		map_set(&part->object_index, object, number);
		*vec_push(&part->objects) = (ObjectTime){object, 0};
	}
	part->objects.items[number].ns += ns;
}

/* Adds the ticks of a running interval, or else the stack that it ended with. */
static void add_running(Part *part, const Timeline *timeline, const Thread *track, size_t i,
			size_t first_tick, size_t end_tick)
{
	uint64_t ns = interval_end(track, i) - track->intervals.items[i].start_ns;
	const Thread *owner = interval_owner(timeline, track, i);
	StackRef switch_out = {
		.ns = interval_end(track, i),
		.ns_tgid = timeline->processes.items[owner->process].ns_tgid,
		.user_stack = track->intervals.items[i].user_stack,
		.kernel_stack = STACK_NONE,
	};

	for (size_t t = first_tick; t < end_tick; t++) {
		StackRef ref = tick_stack(timeline, track, &track->ticks.items[t]);

		add_evidence(part, &ref, /* is_tick= */ true, MAX(ns / (end_tick - first_tick), 1));
	}
	if (first_tick == end_tick && switch_out.user_stack != STACK_NONE)
		add_evidence(part, &switch_out, /* is_tick= */ false, ns);
}

/*
 * Returns what a wait is for, of a thread or of the critical path: its interval is a piece of one
 * of the thread's own, which has the object.
 */
static uint32_t object_of(const Timeline *timeline, const Thread *track, size_t i)
{
	const Thread *owner = interval_owner(timeline, track, i);
	const Interval *piece = &track->intervals.items[i];
	size_t next = partition_point(middle, owner->intervals.count,
				      owner->intervals.items[middle].start_ns <= piece->start_ns);

	if (next == 0 || owner->intervals.items[next - 1].state != piece->state ||
	    owner->intervals.items[next - 1].reason != piece->reason)
		return OBJECT_NONE; /* a request that the thread did not sleep for */
	return wait_object(timeline, owner, next - 1);
}

static void add_wait(Part *part, const Timeline *timeline, const Thread *track, size_t i)
{
	uint64_t ns = interval_end(track, i) - track->intervals.items[i].start_ns;
	StackRef ref = wait_stack(timeline, track, i);

	add_evidence(part, &ref, /* is_tick= */ true, ns);
	add_object(part, timeline, object_of(timeline, track, i), ns);
}

/*
 * Returns whether an interval of a thread counts. Idle waits never do. In a recording of the whole
 * system most threads are asleep until another one has work for them, which is recorded itself:
 * only waits for disks, pages and locks count.
 */
static bool is_counted(const Timeline *timeline, const Interval *interval)
{
	enum category category = reason_info[wait_reason(interval)].category;

	if (interval->state != STATE_BLOCKED || timeline->path.track.intervals.count > 0 ||
	    !timeline->whole_system)
		return !category_is_idle(category);
	return category == CATEGORY_DISK || category == CATEGORY_FAULT || category == CATEGORY_LOCK;
}

/* Adds the intervals of a thread, or of the critical path, that count. */
static void add_track(Maker *maker, const Thread *track)
{
	const Timeline *timeline = maker->timeline;
	size_t tick = 0;

	for (size_t i = 0; i < track->intervals.count; i++) {
		const Interval *interval = &track->intervals.items[i];
		uint64_t end_ns = interval_end(track, i), ns = end_ns - interval->start_ns;
		bool running = interval->state == STATE_RUNNING;
		enum reason reason = running ? REASON_NONE : wait_reason(interval);
		const Thread *thread = interval_owner(timeline, track, i);
		size_t first = tick;
		Part *part;

		while (tick < track->ticks.count && track->ticks.items[tick].ns < end_ns)
			tick++;
		if (!is_counted(timeline, interval))
			continue;
		part = part_of(maker, thread, reason);
		part->ns += ns;
		part->count++;
		add_thread(part, timeline, thread);
		if (running)
			add_running(part, timeline, track, i, first, tick);
		else
			add_wait(part, timeline, track, i);
	}
}

static int compare_parts(const void *a, const void *b)
{
	const Part *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->who > y->who) - (x->who < y->who);
}

static void free_part(Part *part)
{
	map_free(&part->evidence_index);
	map_free(&part->thread_index);
	map_free(&part->process_index);
	map_free(&part->object_index);
	vec_free(&part->ticks);
	vec_free(&part->switch_outs);
	vec_free(&part->objects);
}

/* ---- texts --------------------------------------------------------------------------------- */

/*
 * Returns the part of an object's name that tells it from others: "…/db.wal", "table_lock",
 * "tcp → 10.0.0.2:80". The caller frees it.
 */
static char *short_name(const Object *object)
{
	_cleanup_free_ char *name = text_printable(object->name);
	const char *slash = strrchr(name, '/'), *arrow = strstr(name, " → ");
	const char *variable = strstr(name, ": ");
	size_t length = strlen(name);

	switch (object->kind) {
	case OBJECT_FILE:
		return slash && slash > name && length > SHORT_NAME ? xasprintf("…%s", slash)
								    : xstrdup(name);
	case OBJECT_SOCKET: /* the own port is a number that means nothing */
		return arrow ? xasprintf("%.*s%s", (int)strcspn(name, " "), name, arrow)
			     : xstrdup(name);
	case OBJECT_FUTEX: /* "0x4080 (prog: table_lock)" */
		return variable && name[length - 1] == ')'
			       ? strndup(variable + 2, length - (variable + 2 - name) - 1)
			       : xstrdup(name);
	default:
		return xstrdup(name);
	}
}

/* Returns " of /var/db.wal", " of 20 files" or "". The caller frees it. */
static char *objects_text(const Maker *maker, const Part *part)
{
	const ObjectTime *largest = NULL;
	_cleanup_free_ char *name = NULL;
	const Object *object;

	for (size_t i = 0; i < part->objects.count; i++)
		if (!largest || part->objects.items[i].ns > largest->ns)
			largest = &part->objects.items[i];
	if (!largest)
		return xstrdup("");
	object = &maker->timeline->objects.list.items[largest->object];
	name = short_name(object);
	if (largest->ns >= ANSWER_MOST * part->ns)
		return xasprintf(" of %s", name);
	if (part->objects.count == 1)
		return xstrdup("");
	return xasprintf(" of %zu %s", part->objects.count,
			 object->kind == OBJECT_FILE ? "files" : "objects");
}

static char *what_text(Maker *maker, const Part *part)
{
	bool runnable = reason_info[part->reason].category == CATEGORY_RUNNABLE;
	/* A thread waits for a CPU wherever it is. */
	_cleanup_free_ char *function = runnable ? xstrdup("") : answer_function(maker, part);
	_cleanup_free_ char *objects = NULL, *times = NULL;

	if (part->reason == REASON_NONE)
		return xasprintf("running%s", function);
	objects = objects_text(maker, part);
	times = part->count > 1 ? xasprintf(", %zu times of %s", (size_t)part->count,
					    DURATION(part->ns / part->count))
				: xstrdup("");
	return xasprintf("%s%s%s%s", reason_info[part->reason].leaf, objects, function, times);
}

/* One of several threads of a process is told from the others by its ID. */
static char *who_text(const Maker *maker, const Part *part)
{
	const Timeline *timeline = maker->timeline;
	const char *label = strings_get(&maker->labels, part->who);
	const Thread *thread = &timeline->threads.items[part->thread];

	if (part->processes > 1)
		return xasprintf("%s (%zu processes)", label, part->processes);
	if (part->threads > 1)
		return xasprintf("%s (%zu threads)", label, part->threads);
	if (timeline->processes.items[thread->process].threads.count > 1 &&
	    !strcmp(label, timeline->processes.items[thread->process].label))
		return xasprintf("%s (%u)", label, thread->ns_tid);
	return xstrdup(label);
}

/* ---- what was waited for most -------------------------------------------------------------- */

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
		return label_of(timeline,
				&timeline->threads.items[timeline->tasks.items[task].thread]);
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
			 category == CATEGORY_PIPE;
	_cleanup_free_ char *waker = by_thread ? waker_label(timeline, wait) : NULL, *name = NULL;

	if (object != OBJECT_NONE && !has_good_name(&timeline->objects.list.items[object]))
		object = OBJECT_NONE;
	if (object == OBJECT_NONE)
		return waker ? xasprintf("for %s", waker) : NULL;
	name = short_name(&timeline->objects.list.items[object]);
	if (!waker)
		return xasprintf("for %s", name);
	return xasprintf(category == CATEGORY_LOCK ? "for %s, held by %s" : "for %s, by %s", name,
			 waker);
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

			if (interval->state != STATE_BLOCKED || !is_counted(timeline, interval))
				continue;
			*vec_push(&waits) =
				(PathWait){t, i, interval_end(thread, i) - interval->start_ns};
		}
	}
	return waits;
}

/* "[mutex wait]" -> "mutex wait" */
static char *reason_words(enum reason reason)
{
	const char *leaf = reason_info[reason].leaf;
	size_t length = strlen(leaf);

	return *leaf == '[' && leaf[length - 1] == ']' ? strndup(leaf + 1, length - 2)
						       : xstrdup(leaf);
}

/* Returns whether the first part says the same: "[disk read wait] of …/data" */
static bool is_said(const Answer *answer, const Thing *thing)
{
	_cleanup_free_ char *text = xasprintf("%s of %s", reason_info[thing->reason].leaf,
					      thing->name + strlen("for "));

	return answer->parts.count > 0 && !strncmp(answer->parts.items[0].what, text, strlen(text));
}

static void find_waited_for(Answer *answer, const Timeline *timeline)
{
	PathWaits waits = answer->is_path ? path_waits_find(timeline) : waits_of_threads(timeline);
	const Thing *largest = NULL;
	Things things = {};

	for (size_t i = 0; i < waits.count; i++)
		add_thing(&things, timeline, &waits.items[i]);
	for (size_t i = 0; i < things.list.count; i++)
		if (!largest || things.list.items[i].ns > largest->ns)
			largest = &things.list.items[i];
	if (largest && !is_said(answer, largest)) {
		_cleanup_free_ char *words = reason_words(largest->reason);

		answer->waited_for = xasprintf("%s %s", words, largest->name);
		answer->waited_ns = largest->ns;
	}
	for (size_t i = 0; i < things.list.count; i++)
		free(things.list.items[i].name);
	vec_free(&things.list);
	map_free(&things.index);
	strings_free(&things.names);
	vec_free(&waits);
}

/* ---- the answer ---------------------------------------------------------------------------- */

/* A thread that the critical path goes through is not idle. */
static void count_idle_threads(Answer *answer, const Timeline *timeline)
{
	const Thread *track = &timeline->path.track;
	Map on_path = {};

	for (size_t i = 0; i < track->owners.count; i++)
		map_set(&on_path, track->owners.items[i], 0);
	for (size_t t = 0; t < timeline->threads.count; t++) {
		const Thread *thread = &timeline->threads.items[t];
		uint64_t lifetime_ns = thread->end_ns - MIN(thread->start_ns, thread->end_ns);
		uint64_t idle_ns = 0;

		for (size_t r = 0; r < REASON_COUNT; r++)
			if (category_is_idle(reason_info[r].category))
				idle_ns += thread->reason_ledger[r];
		answer->idle_ns += idle_ns;
		answer->idle_threads += lifetime_ns > 0 && idle_ns >= NEARLY_ALL * lifetime_ns &&
					map_get(&on_path, t) == MAP_NONE;
	}
	map_free(&on_path);
}

Answer answer_make(const Timeline *timeline, Frames *frames, size_t most)
{
	Maker maker = {.timeline = timeline, .frames = frames, .functions.frames = frames};
	Answer answer = {.is_path = timeline->path.track.intervals.count > 0};

	count_idle_threads(&answer, timeline);
	if (answer.is_path)
		add_track(&maker, &timeline->path.track);
	for (size_t t = 0; !answer.is_path && t < timeline->threads.count; t++)
		add_track(&maker, &timeline->threads.items[t]);
	if (maker.parts.count > 1)
		qsort(maker.parts.items, maker.parts.count, sizeof(Part), compare_parts);
	for (size_t i = 0; i < maker.parts.count; i++) {
		const Part *part = &maker.parts.items[i];

		answer.all_ns += part->ns;
		if (i < most) {
			*vec_push(&answer.parts) = (AnswerPart){part->ns, who_text(&maker, part),
								what_text(&maker, part)};
			continue;
		}
		answer.others++;
		answer.others_ns += part->ns;
	}
	find_waited_for(&answer, timeline);
	for (size_t i = 0; i < maker.parts.count; i++)
		free_part(&maker.parts.items[i]);
	vec_free(&maker.parts);
	map_free(&maker.index);
	map_free(&maker.label_of);
	strings_free(&maker.labels);
	functions_free(&maker.functions);
	return answer;
}

void answer_free(Answer *answer)
{
	for (size_t i = 0; i < answer->parts.count; i++) {
		free(answer->parts.items[i].who);
		free(answer->parts.items[i].what);
	}
	vec_free(&answer->parts);
	free(answer->waited_for);
}
