/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tracks.h"

#define VISIBLE_COUNT 12
#define CPUS_VISIBLE  16 /* with more CPUs than that, none is visible at first */

/*
 * The rules for processes that share lanes: they live for less than this part of the window, and
 * there are at least this many of the name. A build's compilers live for less than 1/100 of it only
 * if there are hundreds, so processes that would fill the first screen alone may live for longer.
 */
static const struct {
	uint32_t part, count;
} lane_rules[] = {
	{.part = 100, .count = 3},
	{.part = 10, .count = VISIBLE_COUNT + 1},
};

/* One process on the screen, or all short processes of a name, while tracks are made. */
typedef struct Group {
	VEC(uint32_t) processes;
	const char *name;
	bool lanes;
	bool command;	  /* it is the command's process, */
	bool descends;	  /* or one that the command started, directly or not */
	TrackScore score; /* of its best thread */
	size_t order;
} Group;

typedef VEC(Group) Groups;

static uint64_t lifetime(uint64_t start_ns, uint64_t end_ns)
{
	return end_ns > start_ns ? end_ns - start_ns : 0;
}

/* ---- the order ------------------------------------------------------------------- */

/* A thread that is on the path for less than this part of it counts as one that is not. */
#define PATH_PART 100

/* Returns the time that each of Timeline::threads is on the critical path. The caller frees it. */
static uint64_t *path_times(const Timeline *timeline)
{
	const Thread *path = &timeline->path.track;
	uint64_t *times = xcalloc(timeline->threads.count + 1, sizeof(*times));

	for (size_t i = 0; i < path->intervals.count; i++) {
		uint64_t end_ns = i + 1 < path->intervals.count
					  ? path->intervals.items[i + 1].start_ns
					  : path->end_ns;

		times[path->owners.items[i]] += end_ns - path->intervals.items[i].start_ns;
	}
	for (size_t i = 0; i < timeline->threads.count; i++)
		if (times[i] < lifetime(path->start_ns, path->end_ns) / PATH_PART)
			times[i] = 0;
	return times;
}

static TrackScore thread_score(const Timeline *timeline, const uint64_t *path_ns, uint32_t thread)
{
	const Thread *t = &timeline->threads.items[thread];
	TrackScore score = {
		.path_ns = path_ns[thread],
		.active_ns = t->ledger[STATE_RUNNING] + t->ledger[STATE_RUNNABLE],
		.running_ns = t->ledger[STATE_RUNNING],
	};

	for (size_t i = 0; i < REASON_COUNT; i++) {
		enum category category = reason_info[i].category;

		if (category == CATEGORY_DISK || category == CATEGORY_FAULT ||
		    category == CATEGORY_LOCK)
			score.active_ns += t->reason_ledger[i];
	}
	return score;
}

/* Negative if x comes first, as for qsort(3). */
static int compare_scores(const TrackScore *x, const TrackScore *y)
{
	if (x->path_ns != y->path_ns)
		return x->path_ns > y->path_ns ? -1 : 1;
	if (x->active_ns != y->active_ns)
		return x->active_ns > y->active_ns ? -1 : 1;
	return 0;
}

/* ---- ids ---------------------------------------------------------------------- */

static TrackId make_id(Map *reuses, uint32_t ns_number, uint32_t number)
{
	TrackId id = {.number = ns_number ? ns_number : number, .host = ns_number == 0};
	uint64_t key = (uint64_t)id.host << 32 | id.number;
	uint32_t reuse = map_get(reuses, key);

	id.reuse = reuse == MAP_NONE ? 0 : reuse + 1;
	map_set(reuses, key, id.reuse);
	return id;
}

static TrackId *make_tids(const Timeline *timeline)
{
	TrackId *tids = xcalloc(timeline->threads.count, sizeof(*tids));
	Map reuses = {};

	for (size_t i = 0; i < timeline->threads.count; i++)
		tids[i] = make_id(&reuses, timeline->threads.items[i].ns_tid,
				  timeline->threads.items[i].tid);
	map_free(&reuses);
	return tids;
}

static TrackId *make_pids(const Timeline *timeline)
{
	TrackId *pids = xcalloc(timeline->processes.count, sizeof(*pids));
	Map reuses = {};

	for (size_t i = 0; i < timeline->processes.count; i++)
		pids[i] = make_id(&reuses, timeline->processes.items[i].ns_tgid,
				  timeline->processes.items[i].tgid);
	map_free(&reuses);
	return pids;
}

/* ---- groups --------------------------------------------------------------------- */

static const char *process_name(const Process *process)
{
	return process->name && *process->name ? process->name : "unknown";
}

static uint32_t command_process(const Timeline *timeline)
{
	return timeline->command_thread < timeline->threads.count
		       ? timeline->threads.items[timeline->command_thread].process
		       : THREAD_NONE;
}

static bool is_short(const Timeline *timeline, uint32_t process, uint32_t part)
{
	const Process *p = &timeline->processes.items[process];

	return lifetime(p->start_ns, p->end_ns) <
		       lifetime(timeline->start_ns, timeline->end_ns) / part &&
	       process != command_process(timeline);
}

static TrackScore process_score(const Timeline *timeline, const uint64_t *path_ns, uint32_t process)
{
	const Process *p = &timeline->processes.items[process];
	TrackScore best = {};

	for (size_t i = 0; i < p->threads.count; i++) {
		TrackScore score = thread_score(timeline, path_ns, p->threads.items[i]);

		if (compare_scores(&score, &best) < 0)
			best = score;
	}
	return best;
}

static bool descends_from_command(const Timeline *timeline, uint32_t process)
{
	uint32_t command = command_process(timeline);

	/* A process may have a parent that began later, as ids are used again; so count. */
	for (size_t i = 0; i < timeline->processes.count && process < timeline->processes.count;
	     i++) {
		process = timeline->processes.items[process].parent;
		if (process == command)
			return command != THREAD_NONE;
	}
	return false;
}

static void add_group(Groups *groups, const Timeline *timeline, uint32_t process, bool lanes)
{
	Group *group = vec_push(groups);

	*group = (Group){
		.name = process_name(&timeline->processes.items[process]),
		.lanes = lanes,
		.command = process == command_process(timeline),
		.descends = descends_from_command(timeline, process),
		.order = groups->count,
	};
}

/* How many processes of one name each rule would put into lanes. */
typedef struct NameCount {
	uint32_t of_rule[ARRAY_LEN(lane_rules)];
} NameCount;

typedef VEC(NameCount) NameCounts;

/* The counts are by index of the name in `names`. */
static void count_names(NameCounts *counts, Strings *names, const Timeline *timeline)
{
	for (size_t i = 0; i < timeline->processes.count; i++) {
		uint32_t name = strings_intern(names, process_name(&timeline->processes.items[i]));

		while (counts->count <= name)
			*vec_push(counts) = (NameCount){};
		for (size_t rule = 0; rule < ARRAY_LEN(lane_rules); rule++)
			counts->items[name].of_rule[rule] +=
				is_short(timeline, i, lane_rules[rule].part);
	}
}

static bool is_in_lane(const Timeline *timeline, uint32_t process, const NameCount *count)
{
	for (size_t rule = 0; rule < ARRAY_LEN(lane_rules); rule++)
		if (count->of_rule[rule] >= lane_rules[rule].count &&
		    is_short(timeline, process, lane_rules[rule].part))
			return true;
	return false;
}

static void make_groups(Groups *groups, const Timeline *timeline, const uint64_t *path_ns)
{
	Strings names = {};
	NameCounts counts = {};
	Map lanes = {}; /* name -> group */

	count_names(&counts, &names, timeline);
	for (size_t i = 0; i < timeline->processes.count; i++) {
		uint32_t name = strings_intern(&names, process_name(&timeline->processes.items[i]));
		bool shared = is_in_lane(timeline, i, &counts.items[name]);
		uint32_t number = shared ? map_get(&lanes, name) : MAP_NONE;

		if (timeline->processes.items[i].threads.count == 0)
			continue;
		if (number == MAP_NONE) {
			number = groups->count;
			add_group(groups, timeline, i, shared);
			if (shared)
				map_set(&lanes, name, number);
		}
		Group *group = &groups->items[number];
		TrackScore score = process_score(timeline, path_ns, i);

		*vec_push(&group->processes) = i;
		if (compare_scores(&score, &group->score) < 0)
			group->score = score;
	}
	strings_free(&names);
	vec_free(&counts);
	map_free(&lanes);
}

static int compare_groups(const void *a, const void *b)
{
	const Group *x = a, *y = b;

	if (x->command != y->command)
		return x->command ? -1 : 1;
	if (x->descends != y->descends)
		return x->descends ? -1 : 1;
	return compare_scores(&x->score, &y->score) ?: (x->order < y->order ? -1 : 1);
}

/* ---- tracks --------------------------------------------------------------------- */

static void track_add_thread(Track *track, const Timeline *timeline, const uint64_t *path_ns,
			     uint32_t thread)
{
	const Thread *t = &timeline->threads.items[thread];
	TrackScore score;

	*vec_push(&track->threads) = thread;
	track->end_ns = t->end_ns;
	track->ended = t->exited_in_window;
	score = thread_score(timeline, path_ns, thread);
	track->score.path_ns += score.path_ns;
	track->score.active_ns += score.active_ns;
	track->score.running_ns += score.running_ns;
}

/* The viewer shows the thread's name in the row, and the process's only in tooltips. */
static const char *row_name(const Timeline *timeline, const Thread *thread)
{
	if (thread->is_main)
		return thread_label(timeline, thread);
	return thread->name && *thread->name ? thread->name : "unknown";
}

static Track *add_track(Tracks *tracks, const Timeline *timeline, const uint64_t *path_ns,
			uint32_t thread, TrackId pid)
{
	const Thread *t = &timeline->threads.items[thread];
	const Process *process = &timeline->processes.items[t->process];
	Track *track = vec_push(&tracks->list);

	*track = (Track){
		.name = xstrdup(row_name(timeline, t)),
		.process_name = xstrdup(process_name(process)),
		.pid = pid,
		.tid = tracks->tids[thread],
		.is_main = t->is_main,
		.device = DEVICE_NONE,
		.cpu = CPU_NONE,
		.start_ns = t->start_ns,
		.process_start_ns = process->start_ns,
		.process_end_ns = process->end_ns,
		.process_ended = process->exited_in_window,
	};
	track_add_thread(track, timeline, path_ns, thread);
	return track;
}

static int compare_tracks(const void *a, const void *b)
{
	const Track *x = a, *y = b;

	if (x->is_main != y->is_main)
		return x->is_main ? -1 : 1;
	return compare_scores(&x->score, &y->score)
		       ?: (x->threads.items[0] < y->threads.items[0] ? -1 : 1);
}

/*
 * Adds the threads of one process. One of them has to be the main one, or the viewer adds an empty
 * row; if the leader has ended, the best thread takes its place.
 */
static void add_process_tracks(Tracks *tracks, const Timeline *timeline, const uint64_t *path_ns,
			       uint32_t process, TrackId pid)
{
	const Process *p = &timeline->processes.items[process];
	size_t first = tracks->list.count;
	bool have_main = false;

	for (size_t i = 0; i < p->threads.count; i++) {
		Track *track = add_track(tracks, timeline, path_ns, p->threads.items[i], pid);

		track->is_main &= !have_main;
		have_main |= track->is_main;
	}
	qsort(tracks->list.items + first, tracks->list.count - first, sizeof(Track),
	      compare_tracks);
	tracks->list.items[first].is_main = true;
}

static int compare_starts(const void *a, const void *b, void *user)
{
	const Timeline *timeline = user;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	uint64_t x = timeline->threads.items[i].start_ns;
	uint64_t y = timeline->threads.items[j].start_ns;

	return x != y ? (x < y ? -1 : 1) : (i < j ? -1 : 1);
}

/* Returns the lane among those from `first` on that is free at ns, or TRACK_NONE. */
static uint32_t free_lane(const Tracks *tracks, size_t first, uint64_t ns)
{
	for (size_t i = first; i < tracks->list.count; i++)
		if (tracks->list.items[i].end_ns <= ns)
			return i;
	return TRACK_NONE;
}

static void name_lanes(Tracks *tracks, size_t first, const Group *group)
{
	for (size_t i = first; i < tracks->list.count; i++) {
		Track *track = &tracks->list.items[i];

		free(track->process_name);
		free(track->name);
		track->process_name = xasprintf("%s ×%zu", group->name, group->processes.count);
		track->name = i == first ? xstrdup(track->process_name)
					 : xasprintf("%s lane %zu", group->name, i - first + 1);
		track->is_main = i == first;
		track->is_lane = true;
		track->process_start_ns = tracks->list.items[first].start_ns;
		track->process_ended = false;
	}
}

static void add_lanes(Tracks *tracks, const Timeline *timeline, const uint64_t *path_ns,
		      const Group *group, TrackId pid)
{
	size_t first = tracks->list.count;
	VEC(uint32_t) threads = {};

	for (size_t i = 0; i < group->processes.count; i++) {
		const Process *p = &timeline->processes.items[group->processes.items[i]];

		for (size_t k = 0; k < p->threads.count; k++)
			*vec_push(&threads) = p->threads.items[k];
	}
	qsort_r(threads.items, threads.count, sizeof(*threads.items), compare_starts,
		(void *)timeline);
	for (size_t i = 0; i < threads.count; i++) {
		uint32_t thread = threads.items[i];
		uint32_t lane = free_lane(tracks, first, timeline->threads.items[thread].start_ns);

		if (lane == TRACK_NONE)
			add_track(tracks, timeline, path_ns, thread, pid);
		else
			track_add_thread(&tracks->list.items[lane], timeline, path_ns, thread);
	}
	vec_free(&threads);
	name_lanes(tracks, first, group);
	tracks->lanes += tracks->list.count - first;
	tracks->laned_processes += group->processes.count;
}

/* The viewer shows the PID of a main thread, but not "0": the path is the first row. */
#define PATH_PID 0

static void add_path(Tracks *tracks, const Timeline *timeline)
{
	const Thread *path = &timeline->path.track;
	Track *track;

	if (path->intervals.count == 0)
		return;
	track = vec_push(&tracks->list);
	*track = (Track){
		.name = xstrdup(path->name),
		.process_name = xstrdup("Critical path"),
		.pid = {.number = PATH_PID},
		.tid = {.word = "critical path"},
		.is_main = true,
		.is_path = true,
		.device = DEVICE_NONE,
		.cpu = CPU_NONE,
		.start_ns = path->start_ns,
		.end_ns = path->end_ns,
		.process_start_ns = path->start_ns,
		.process_end_ns = path->end_ns,
	};
	*vec_push(&track->threads) = timeline->threads.count;
}

/*
 * The CPUs, the devices and the system are no processes: their ids are words, and none of their
 * tracks is a main one, so that the viewer shows a title above them and no PID.
 */

static void add_cpus(Tracks *tracks, const Timeline *timeline)
{
	for (size_t i = 0; i < timeline->cpus.count; i++) {
		if (timeline->cpus.items[i].runs.count == 0)
			continue;
		char *name = xasprintf("CPU %zu", i);

		*vec_push(&tracks->list) = (Track){
			.name = name,
			.process_name = xstrdup("CPUs"),
			.pid = {.word = "CPUs"},
			.tid = {.word = name},
			.device = DEVICE_NONE,
			.cpu = i,
			.start_ns = timeline->start_ns,
			.end_ns = timeline->end_ns,
			.process_start_ns = timeline->start_ns,
		};
	}
}

static void add_devices(Tracks *tracks, const Timeline *timeline)
{
	for (size_t i = 0; i < timeline->requests.devices.count; i++) {
		const BlockDevice *device = &timeline->requests.devices.items[i];

		if (device->requests.count == 0)
			continue;
		char *name = request_device_text(&timeline->requests, device->number);

		*vec_push(&tracks->list) = (Track){
			.name = name,
			.process_name = xstrdup("Block devices"),
			.pid = {.word = "Block devices"},
			.tid = {.word = name},
			.device = i,
			.cpu = CPU_NONE,
			.start_ns = timeline->start_ns,
			.end_ns = timeline->end_ns,
			.process_start_ns = timeline->start_ns,
		};
	}
}

static void add_system(Tracks *tracks, const Timeline *timeline)
{
	*vec_push(&tracks->list) = (Track){
		.name = xstrdup("lost events"),
		.process_name = xstrdup("System"),
		.pid = {.word = "System"},
		.tid = {.word = "System"},
		.is_system = true,
		.device = DEVICE_NONE,
		.cpu = CPU_NONE,
		.start_ns = timeline->start_ns,
		.end_ns = timeline->end_ns,
		.process_start_ns = timeline->start_ns,
	};
}

/* ---- the first screen --------------------------------------------------------- */

static bool is_thread_track(const Track *track)
{
	return track->device == DEVICE_NONE && track->cpu == CPU_NONE && !track->is_path;
}

/* Returns the best of those that ran, or were on the critical path. */
static uint32_t best_track(const Tracks *tracks, const bool *taken)
{
	uint32_t best = TRACK_NONE;

	for (size_t i = 0; i < tracks_system(tracks); i++) {
		const Track *track = &tracks->list.items[i];

		if (!taken[i] && is_thread_track(track) &&
		    (track->score.running_ns > 0 || track->score.path_ns > 0) &&
		    (best == TRACK_NONE ||
		     compare_scores(&track->score, &tracks->list.items[best].score) < 0))
			best = i;
	}
	return best;
}

static bool is_shown_always(const Track *track, const Timeline *timeline)
{
	if (track->cpu != CPU_NONE)
		return timeline->cpus.count <= CPUS_VISIBLE;
	if (!is_thread_track(track))
		return true;
	return !track->is_lane && track->threads.count > 0 &&
	       track->threads.items[0] == timeline->command_thread;
}

/*
 * The critical path says what the run waited for, also if there is only one thread: its call tree
 * begins with the states. If nothing ran, the first thread is that of the command.
 */
static uint32_t first_selected(const Tracks *tracks, uint32_t best)
{
	if (tracks->list.items[0].is_path)
		return 0;
	if (best != TRACK_NONE)
		return best;
	return is_thread_track(&tracks->list.items[0]) ? 0 : tracks_system(tracks);
}

static void choose_visible(Tracks *tracks, const Timeline *timeline)
{
	bool *shown = xcalloc(tracks->list.count, sizeof(*shown));

	for (size_t i = 0; i < VISIBLE_COUNT; i++) {
		uint32_t best = best_track(tracks, shown);

		if (i == 0)
			tracks->selected = first_selected(tracks, best);
		if (best == TRACK_NONE)
			break;
		shown[best] = true;
	}
	shown[tracks_system(tracks)] = true;
	for (size_t i = 0; i < tracks->list.count; i++) {
		const Track *track = &tracks->list.items[i];

		if (shown[i] || is_shown_always(track, timeline))
			*vec_push(&tracks->visible) = i;
	}
	free(shown);
}

void tracks_init(Tracks *tracks, const Timeline *timeline)
{
	TrackId *pids = make_pids(timeline);
	_cleanup_free_ uint64_t *path_ns = path_times(timeline);
	Groups groups = {};

	*tracks = (Tracks){.tids = make_tids(timeline)};
	add_path(tracks, timeline);
	make_groups(&groups, timeline, path_ns);
	if (groups.count > 0)
		qsort(groups.items, groups.count, sizeof(*groups.items), compare_groups);
	for (size_t i = 0; i < groups.count; i++) {
		Group *group = &groups.items[i];
		uint32_t process = group->processes.items[0];

		if (group->lanes)
			add_lanes(tracks, timeline, path_ns, group, pids[process]);
		else
			add_process_tracks(tracks, timeline, path_ns, process, pids[process]);
		vec_free(&group->processes);
	}
	vec_free(&groups);
	free(pids);
	add_cpus(tracks, timeline);
	add_devices(tracks, timeline);
	add_system(tracks, timeline);
	track_tell_apart(tracks);
	choose_visible(tracks, timeline);
}

void tracks_free(Tracks *tracks)
{
	for (size_t i = 0; i < tracks->list.count; i++) {
		free(tracks->list.items[i].name);
		free(tracks->list.items[i].process_name);
		vec_free(&tracks->list.items[i].threads);
	}
	vec_free(&tracks->list);
	vec_free(&tracks->visible);
	free(tracks->tids);
}
