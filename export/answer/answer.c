/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answer.h"
#include "answer_private.h"
#include "deadlock.h"
#include "short_names.h"
#include "text.h"
#include "wait_fields.h"
#include "waited_for.h"
#include <string.h>

/* A smaller part of the time is not worth a line, nor is a smaller part of the largest one. */
#define SMALL_SHARE 0.005
#define SMALL_PART  0.02
/* A thread is idle if it is for so much of its lifetime. */
#define NEARLY_ALL 0.99
/* Less of the window, for all threads together, is hardly any work: a timer that is set again. */
#define HARDLY_ANY 0.02
/* What is idle is so for nearly all of the window: a shorter part may be as long. */
#define AS_LONG 1.05

/* ---- the parts ----------------------------------------------------------------------------- */

static uint32_t who_is(Maker *maker, const Thread *thread)
{
	uint64_t number = thread - maker->timeline->threads.items;
	uint32_t who = map_get(&maker->label_of, number);

	if (who == MAP_NONE) {
		_cleanup_free_ char *label = short_names_thread(maker->timeline, thread);

		who = strings_intern(&maker->labels, label);
		map_set(&maker->label_of, number, who);
	}
	return who;
}

static Portion *part_of(Maker *maker, const Thread *thread, enum reason reason)
{
	uint32_t who = who_is(maker, thread);
	uint64_t key = (uint64_t)who << 32 | reason;
	uint32_t number = map_get(&maker->index, key);

	if (number == MAP_NONE) {
		number = maker->parts.count;
		map_set(&maker->index, key, number);
		*vec_push(&maker->parts) = (Portion){.who = who, .reason = reason};
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

static void add_thread(Portion *part, const Timeline *timeline, const Thread *thread)
{
	uint32_t number = thread - timeline->threads.items;

	if (part->threads == 0)
		part->thread = number;
	part->threads += map_add(&part->thread_index, number);
	part->processes += map_add(&part->process_index, thread->process);
}

static void add_evidence(Portion *part, const StackRef *ref, bool is_tick, uint64_t ns)
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

static void add_object(Portion *part, const Timeline *timeline, uint32_t object, uint64_t ns)
{
	uint32_t number;

	if (object == OBJECT_NONE || !short_names_exists(&timeline->objects.list.items[object]))
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
static void add_running(Portion *part, const Timeline *timeline, const Thread *track, size_t i,
			size_t first_tick, size_t end_tick)
{
	uint64_t start_ns = track->intervals.items[i].start_ns, from_ns = start_ns;
	const Thread *owner = interval_owner(timeline, track, i);
	StackRef switch_out = {
		.ns = interval_end(track, i),
		.ns_tgid = timeline->processes.items[owner->process].ns_tgid,
		.user_stack = track->intervals.items[i].user_stack,
		.kernel_stack = STACK_NONE,
	};

	/* The rate of ticks may change meanwhile, so each has the time since the one before. */
	for (size_t t = first_tick; t < end_tick; t++) {
		const Tick *tick = &track->ticks.items[t];
		StackRef ref = tick_stack(timeline, track, tick);
		uint64_t until_ns = t + 1 < end_tick ? MAX(tick->ns, from_ns) : switch_out.ns;

		add_evidence(part, &ref, /* is_tick= */ true, MAX(until_ns - from_ns, 1));
		from_ns = until_ns;
	}
	if (first_tick == end_tick && switch_out.user_stack != STACK_NONE)
		add_evidence(part, &switch_out, /* is_tick= */ false, switch_out.ns - start_ns);
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

static void add_wait(Portion *part, const Timeline *timeline, const Thread *track, size_t i)
{
	uint64_t ns = interval_end(track, i) - track->intervals.items[i].start_ns;
	StackRef ref = wait_stack(timeline, track, i);

	add_evidence(part, &ref, /* is_tick= */ true, ns);
	if (part->reason != REASON_GIL) /* there is only one, and the reason names it */
		add_object(part, timeline, object_of(timeline, track, i), ns);
}

static bool is_wanted(const Maker *maker, const Interval *interval)
{
	if (maker->idle)
		return interval->state == STATE_BLOCKED &&
		       category_is_idle(reason_info[wait_reason(interval)].category);
	return waited_for_counts(maker->timeline, interval);
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
		Portion *part;

		while (tick < track->ticks.count && track->ticks.items[tick].ns < end_ns)
			tick++;
		if (!is_wanted(maker, interval))
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
	const Portion *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->who != y->who)
		return x->who > y->who ? 1 : -1;
	return (x->reason > y->reason) - (x->reason < y->reason);
}

void answer_free_portion(Portion *part)
{
	free(part->joined);
	map_free(&part->evidence_index);
	map_free(&part->thread_index);
	map_free(&part->process_index);
	map_free(&part->object_index);
	vec_free(&part->ticks);
	vec_free(&part->switch_outs);
	vec_free(&part->objects);
}

/* ---- texts --------------------------------------------------------------------------------- */

/* Returns " of /var/db.wal", " of 20 files" or "". The caller frees it. */
static char *objects_text(const Maker *maker, const Portion *part)
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
	name = short_names_object(object);
	if (largest->ns >= ANSWER_MOST * part->ns)
		return xasprintf(object->kind == OBJECT_FILE ? " of %s" : " for %s", name);
	if (part->objects.count == 1)
		return xstrdup("");
	return xasprintf(" of %zu %s", part->objects.count,
			 object->kind == OBJECT_FILE ? "files" : "objects");
}

static char *what_text(Maker *maker, const Portion *part)
{
	bool runnable = reason_info[part->reason].category == CATEGORY_RUNNABLE;
	/* A thread waits for a CPU wherever it is. */
	_cleanup_free_ char *function = runnable ? xstrdup("") : answer_function(maker, part);
	_cleanup_free_ char *objects = NULL, *times = NULL;

	if (part->joined)
		return xstrdup(part->joined);
	if (part->reason == REASON_NONE)
		return xasprintf("running%s", function);
	objects = objects_text(maker, part);
	times = part->count > 1 ? xasprintf(", %zu times of %s", (size_t)part->count,
					    DURATION(part->ns / part->count))
				: xstrdup("");
	return xasprintf("%s%s%s%s", reason_info[part->reason].leaf, objects, function, times);
}

/* One of several threads of a process has its ID, which distinguishes it. */
static char *who_text(const Maker *maker, const Portion *part)
{
	const Timeline *timeline = maker->timeline;
	const char *label = strings_get(&maker->labels, part->who);
	const Thread *thread = &timeline->threads.items[part->thread];

	if (part->joined)
		return xstrdup(label);
	if (part->processes > 1)
		return xasprintf("%s (%zu processes)", label, part->processes);
	if (part->threads > 1)
		return xasprintf("%s (%zu threads)", label, part->threads);
	if (timeline->processes.items[thread->process].threads.count > 1 &&
	    !short_names_own(timeline, thread))
		return xasprintf("%s (%u)", label, thread->ns_tid);
	return xstrdup(label);
}

/* ---- the answer ---------------------------------------------------------------------------- */

/* Returns whether the first part says the same: "[disk read wait] of …/data" */
static bool is_said(const Answer *answer, const WaitedFor *waited)
{
	const char *leaf = reason_info[waited->reason].leaf;
	const char *what = answer->parts.count > 0 ? answer->parts.items[0].what : "";

	return !strncmp(what, leaf, strlen(leaf)) && strstr(what, waited->name);
}

/* said: the label of the first part. If that is a child, the wait for it follows from that. */
static void find_waited_for(Answer *answer, const Timeline *timeline, const char *said)
{
	WaitedFor waited = waited_for_find(timeline, said);

	if (waited.name && waited.ns >= SMALL_PART * answer->all_ns && !is_said(answer, &waited)) {
		_cleanup_free_ char *words = waited_for_words(waited.reason);

		answer->waited_for = xasprintf("%s for %s", words, waited.name);
		answer->waited_ns = waited.ns;
	}
	free(waited.name);
}

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

static void add_threads(Maker *maker)
{
	for (size_t t = 0; t < maker->timeline->threads.count; t++)
		add_track(maker, &maker->timeline->threads.items[t]);
}

static void free_portions(Maker *maker)
{
	for (size_t i = 0; i < maker->parts.count; i++)
		answer_free_portion(&maker->parts.items[i]);
	vec_free(&maker->parts);
	map_free(&maker->index);
}

/*
 * Where hardly anything was done, the waits in which the threads were say what it is that does not
 * go on.
 */
static void add_idle(Maker *maker, Answer *answer)
{
	const Timeline *timeline = maker->timeline;
	const Portion *largest = NULL;
	uint64_t busy_ns = 0;

	for (size_t i = 0; i < maker->parts.count; i++) {
		const Portion *part = &maker->parts.items[i];

		busy_ns += part->ns;
		if (!largest || compare_parts(part, largest) < 0)
			largest = part;
	}
	if (timeline->whole_system || answer->idle_ns == 0 ||
	    busy_ns >= HARDLY_ANY * (timeline->end_ns - timeline->start_ns))
		return;
	if (largest) {
		_cleanup_free_ char *who = who_text(maker, largest);
		_cleanup_free_ char *what = what_text(maker, largest);

		answer->busy = xasprintf("%s: %s", who, what);
	}
	free_portions(maker);
	answer->is_idle = maker->idle = true;
	answer->busy_ns = busy_ns;
	add_threads(maker);
}

static bool is_of_main_thread(const Maker *maker, const Portion *part)
{
	return maker->timeline->threads.items[part->thread].is_main;
}

/* Of parts that are as long, those of main threads say more: a server's others are its helpers. */
static void put_main_threads_first(Maker *maker)
{
	Portion *parts = maker->parts.items;

	for (size_t i = 1; i < maker->parts.count; i++) {
		Portion part = parts[i];
		size_t at = i;

		if (!is_of_main_thread(maker, &part))
			continue;
		while (at > 0 && parts[at - 1].ns <= AS_LONG * part.ns &&
		       !is_of_main_thread(maker, &parts[at - 1]))
			at--;
		memmove(parts + at + 1, parts + at, (i - at) * sizeof(*parts));
		parts[at] = part;
	}
}

Answer answer_make(const Timeline *timeline, Frames *frames, size_t most)
{
	Maker maker = {.timeline = timeline, .frames = frames, .functions.frames = frames};
	Answer answer = {.is_path = timeline->path.track.intervals.count > 0};

	count_idle_threads(&answer, timeline);
	if (answer.is_path)
		add_track(&maker, &timeline->path.track);
	else
		add_threads(&maker);
	if (!answer.is_path)
		add_idle(&maker, &answer);
	if (!answer.is_path && timeline->whole_system)
		answer_join_cpu_waits(&maker);
	if (maker.parts.count > 1)
		qsort(maker.parts.items, maker.parts.count, sizeof(Portion), compare_parts);
	if (maker.idle)
		put_main_threads_first(&maker);
	for (size_t i = 0; i < maker.parts.count; i++) {
		const Portion *part = &maker.parts.items[i];

		answer.all_ns += part->ns;
		if (i < most) {
			*vec_push(&answer.parts) =
				(AnswerPart){part->ns, who_text(&maker, part),
					     what_text(&maker, part), part->reason};
			continue;
		}
		answer.others++;
		answer.others_ns += part->ns;
	}
	answer.deadlock = deadlock_text(timeline);
	find_waited_for(&answer, timeline,
			maker.parts.count > 0 ? strings_get(&maker.labels, maker.parts.items[0].who)
					      : "");
	free_portions(&maker);
	map_free(&maker.label_of);
	map_free(&maker.callers);
	strings_free(&maker.labels);
	functions_free(&maker.functions);
	return answer;
}

bool answer_is_small(const Answer *answer, size_t i)
{
	const AnswerPart *parts = answer->parts.items;

	return i > 0 && (parts[i].ns < SMALL_SHARE * answer->all_ns ||
			 parts[i].ns < SMALL_PART * parts[0].ns);
}

bool answer_is_of_cpus(const Answer *answer)
{
	return answer->parts.count > 0 &&
	       reason_info[answer->parts.items[0].reason].category == CATEGORY_RUNNABLE;
}

uint64_t answer_rest(const Answer *answer, size_t shown, size_t *ret_count)
{
	uint64_t ns = answer->others_ns;

	for (size_t i = shown; i < answer->parts.count; i++)
		ns += answer->parts.items[i].ns;
	*ret_count = answer->others + answer->parts.count - shown;
	return ns < SMALL_SHARE * answer->all_ns ? 0 : ns;
}

void answer_free(Answer *answer)
{
	for (size_t i = 0; i < answer->parts.count; i++) {
		free(answer->parts.items[i].who);
		free(answer->parts.items[i].what);
	}
	vec_free(&answer->parts);
	free(answer->waited_for);
	free(answer->busy);
	free(answer->deadlock);
}
