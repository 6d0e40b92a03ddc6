/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stack_stats.h"
#include "tick_weights.h"
#include <inttypes.h>
#include <string.h>

/* The state while references are counted. */
typedef struct Counting {
	StackStats *sums;
	const Timeline *timeline;
	Frames *frames;
	Map object_index; /* library -> sums->objects */
} Counting;

static StackObject *object_of(Counting *counting, uint32_t library)
{
	uint64_t key = (uint64_t)library + 1; /* LIBRARY_NONE gets a key of its own */
	uint32_t number = map_get(&counting->object_index, key);

	if (number == MAP_NONE) {
		number = counting->sums->objects.count;
		map_set(&counting->object_index, key, number);
		*vec_push(&counting->sums->objects) = (StackObject){.lib = library};
	}
	return &counting->sums->objects.items[number];
}

/* Without a stack to walk, it is neither complete nor truncated. */
static bool was_walked(const StackEnd *end)
{
	return end->reason != STACK_EXEC && end->reason != STACK_NO_MM;
}

static void count_stack(Counting *counting, uint32_t ns_tgid, uint64_t ns, uint32_t stack)
{
	StackStats *sums = counting->sums;
	StackEnd end;

	if (stack == STACK_NONE)
		return;
	end = frames_stack_end(counting->frames, counting->timeline, ns_tgid, ns, stack);
	if (!was_walked(&end)) {
		sums->counts[end.reason]++;
		return;
	}
	sums->walked++;
	sums->complete += end.reason == STACK_COMPLETE;
	sums->counts[end.reason]++;
	sums->guessed += end.guessed;
	sums->from_copy += end.from_copy;
	sums->deep += end.depth > MAX_FRAMES;
	sums->joined += end.joined;
	sums->deeper += end.depth > MAX_FRAMES && (end.joined || end.reason == STACK_TRUNCATED);
	sums->deepest = MAX(sums->deepest, end.depth);
	object_of(counting, end.lib)->counts[end.reason]++;
	sums->code[end.code].cut += stack_end_words(end.reason) != NULL;
	sums->code[end.guess].guessed += end.guessed;
}

/*
 * A switch-out's stack belongs to the interval that it ends, to the one that it begins, and, if
 * that is a wait, to the one that follows the wait.
 */
static bool has_stack_of_previous(const Thread *thread, size_t i)
{
	const Interval *interval = &thread->intervals.items[i], *previous;

	/* A thread that is woken at the window's start has the stack of a wait before it. */
	if (i == 0)
		return interval->reason == REASON_WOKEN;
	previous = interval - 1;
	if (previous->user_stack != interval->user_stack)
		return false;
	return previous->state == STATE_RUNNING || interval->reason == REASON_WOKEN;
}

static void count_switch_outs(Counting *counting, const Thread *thread, uint32_t ns_tgid)
{
	for (size_t i = 0; i < thread->intervals.count; i++) {
		const Interval *interval = &thread->intervals.items[i];
		bool running = interval->state == STATE_RUNNING;

		/* The switch-out that ended the one or began the other was not in the window. */
		if (interval->flags & (running ? INTERVAL_OPEN_END : INTERVAL_OPEN_START) ||
		    interval->unsampled)
			continue;
		if (running || !has_stack_of_previous(thread, i))
			count_stack(counting, ns_tgid,
				    running ? interval_end(thread, i) : interval->start_ns,
				    interval->user_stack);
	}
}

/* ---- running time ---------------------------------------------------------------- */

static void weigh_stack(Counting *counting, uint32_t ns_tgid, uint64_t ns, uint32_t stack,
			uint64_t weight_ns)
{
	StackStats *sums = counting->sums;
	StackEnd end;

	if (stack == STACK_NONE)
		return;
	end = frames_stack_end(counting->frames, counting->timeline, ns_tgid, ns, stack);
	if (!was_walked(&end))
		return;
	sums->running_walked_ns += weight_ns;
	if (end.reason == STACK_COMPLETE)
		sums->running_complete_ns += weight_ns;
}

static void weigh(void *user, const Thread *thread, size_t i, const Tick *tick, uint64_t weight_ns)
{
	Counting *counting = user;

	if (!tick && thread->intervals.items[i].unsampled)
		return;
	weigh_stack(counting, counting->timeline->processes.items[thread->process].ns_tgid,
		    tick ? tick->ns : interval_end(thread, i),
		    tick ? tick->user_stack : thread->intervals.items[i].user_stack, weight_ns);
}

/* ---- sorting --------------------------------------------------------------------- */

static const char *object_name(const Frames *frames, uint32_t library)
{
	return library == LIBRARY_NONE ? "[unknown]" : frames->libraries.items[library].name;
}

static int compare_objects(const void *a, const void *b, void *frames)
{
	const StackObject *x = a, *y = b;
	int order = strcmp(object_name(frames, x->lib), object_name(frames, y->lib));

	return order ? order : (x->lib > y->lib) - (x->lib < y->lib);
}

static int compare_shorts(const void *a, const void *b)
{
	const StackShortage *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return strcmp(x->object, y->object) ?: (int)x->end - (int)y->end;
}

/* Objects of one name have one line, because the user could not tell them apart. */
static void add_short(StackStats *sums, const char *object, enum stack_end end, uint64_t count)
{
	for (size_t i = sums->shorts.count; i-- > 0;) {
		StackShortage *known = &sums->shorts.items[i];

		if (strcmp(known->object, object))
			break;
		if (known->end == end) {
			known->count += count;
			return;
		}
	}
	*vec_push(&sums->shorts) = (StackShortage){object, end, count};
}

static void sort_out(StackStats *sums, Frames *frames)
{
	if (sums->objects.count)
		qsort_r(sums->objects.items, sums->objects.count, sizeof(StackObject),
			compare_objects, frames);
	for (size_t i = 0; i < sums->objects.count; i++) {
		const StackObject *object = &sums->objects.items[i];

		for (size_t end = 0; end < STACK_ENDS; end++)
			if (object->counts[end] && stack_end_words(end))
				add_short(sums, object_name(frames, object->lib), end,
					  object->counts[end]);
	}
	if (sums->shorts.count)
		qsort(sums->shorts.items, sums->shorts.count, sizeof(StackShortage),
		      compare_shorts);
}

void stack_stats_init(StackStats *sums, const Timeline *timeline, Frames *frames)
{
	Counting counting = {.sums = sums, .timeline = timeline, .frames = frames};
	const char *method = timeline_meta(timeline, "stacks");

	*sums = (StackStats){.by_frame_pointers = method && !strcmp(method, "fp")};
	for (size_t i = 0; i < timeline->threads.count; i++) {
		const Thread *thread = &timeline->threads.items[i];
		uint32_t ns_tgid = timeline->processes.items[thread->process].ns_tgid;

		for (size_t k = 0; k < thread->ticks.count; k++)
			count_stack(&counting, ns_tgid, thread->ticks.items[k].ns,
				    thread->ticks.items[k].user_stack);
		count_switch_outs(&counting, thread, ns_tgid);
	}
	tick_weights_visit(timeline, weigh, &counting);
	map_free(&counting.object_index);
	sort_out(sums, frames);
}

void stack_stats_free(StackStats *sums)
{
	vec_free(&sums->objects);
	vec_free(&sums->shorts);
}

/*
 * Returns the share of running time with complete stacks, rounded down so that less is never
 * printed as 100 %. Empty if all are complete.
 */
static char *running_text(const StackStats *sums)
{
	uint64_t parts;

	if (sums->running_walked_ns == 0 || (sums->running_complete_ns == sums->running_walked_ns &&
					     sums->complete == sums->walked))
		return xstrdup("");
	parts = (uint64_t)((unsigned __int128)sums->running_complete_ns * 1000 /
			   sums->running_walked_ns);
	return xasprintf("; stacks complete for %" PRIu64 ".%" PRIu64 " %% of running time",
			 parts / 10, parts % 10);
}

/* Returns what is said of stacks of which frames were left out. */
static char *deep_text(const StackStats *sums)
{
	_cleanup_free_ char *joined = NULL;

	if (sums->deep == 0)
		return xstrdup("");
	joined = sums->deeper ? xasprintf("; of %" PRIu64 " the depth is not known", sums->deeper)
			      : xstrdup("");
	return xasprintf(", %" PRIu64 " with frames left out (up to %" PRIu32 " frames%s)",
			 sums->deep, sums->deepest, joined);
}

char *stack_stats_line(const StackStats *sums)
{
	_cleanup_free_ char *guessed = NULL, *pointers = NULL, *running = NULL, *deep = NULL;
	uint64_t parts = sums->walked ? sums->complete * 1000 / sums->walked : 0;

	if (sums->walked == 0)
		return xstrdup("none walked");
	if (sums->by_frame_pointers)
		return xasprintf("%" PRIu64 " walked by frame pointers (may be truncated or wrong)",
				 sums->walked);
	guessed = sums->guessed ? xasprintf(", %" PRIu64 " partly guessed", sums->guessed)
				: xstrdup("");
	pointers = sums->counts[STACK_FRAME_POINTERS]
			   ? xasprintf(", %" PRIu64
				       " by frame pointers alone (may be truncated or wrong)",
				       sums->counts[STACK_FRAME_POINTERS])
			   : xstrdup("");
	running = running_text(sums);
	deep = deep_text(sums);
	if (sums->complete == sums->walked)
		return xasprintf("%" PRIu64 " walked, 100 %% complete%s%s%s", sums->walked, guessed,
				 deep, running);
	return xasprintf("%" PRIu64 " walked, %" PRIu64 ".%" PRIu64 " %% complete%s%s%s%s",
			 sums->walked, parts / 10, parts % 10, guessed, pointers, deep, running);
}
