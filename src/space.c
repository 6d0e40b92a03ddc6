/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * space.c - who had what mapped where, and when.
 *
 * A process lives through epochs: from its beginning or an exec to the next
 * exec. An epoch has its own mappings; one that began by fork also sees those
 * that its parent's epoch had at that moment, by reference. munmap is not
 * recorded (nobody executes there until something else is mapped), so what an
 * address meant at a time is the youngest mapping that covers it and is not
 * younger than that time.
 *
 * To answer that, an epoch's mappings stand in a segment tree over its address
 * ranges: each mapping in O(log n) nodes, each node's list in order of time. A
 * query walks from one leaf to the root and searches each list on the way.
 * The tree is built at the first query.
 */
#include "space.h"
#include <string.h>

/* More files than this are not believed (ids are dense, so an id costs memory). */
#define FILE_ID_MAX (1u << 20)
#define EPOCH_NONE  UINT32_MAX

typedef struct Mapping {
	uint64_t from_ns; /* 0: since ever */
	uint64_t start, end;
	uint64_t bias;
	uint32_t file;
} Mapping;

typedef struct Epoch {
	uint64_t from_ns;
	uint32_t parent;  /* EPOCH_NONE: began empty */
	uint64_t fork_ns; /* parent's mappings up to here count */
	uint32_t base_generation;
	VEC(Mapping) mappings; /* in order of from_ns once the tree is built */
	bool built;
	VEC(uint64_t) bounds; /* range i = [bounds[i], bounds[i + 1]) = leaf node i + ranges */
	uint32_t ranges;
	uint32_t *node_starts; /* lists[node_starts[n] … node_starts[n + 1]) is node n's */
	uint32_t *lists;       /* indexes of mappings, ascending */
} Epoch;

/* All that had one number; the last epoch is the present one. */
typedef struct Process {
	VEC(uint32_t) epochs; /* from_ns ascending */
} Process;

struct Spaces {
	VEC(MappedFile *) files; /* by id - 1; NULL where the definition is missing */
	VEC(Epoch) epochs;
	VEC(Process) processes;
	Map by_tgid; /* ns_tgid -> processes */
};

Spaces *spaces_new(void)
{
	return xcalloc(1, sizeof(Spaces));
}

void spaces_free(Spaces *spaces)
{
	if (!spaces)
		return;
	for (size_t i = 0; i < spaces->files.count; i++) {
		if (spaces->files.items[i])
			free(spaces->files.items[i]->path);
		free(spaces->files.items[i]);
	}
	for (size_t i = 0; i < spaces->epochs.count; i++) {
		Epoch *epoch = &spaces->epochs.items[i];

		vec_free(&epoch->mappings);
		vec_free(&epoch->bounds);
		free(epoch->node_starts);
		free(epoch->lists);
	}
	for (size_t i = 0; i < spaces->processes.count; i++)
		vec_free(&spaces->processes.items[i].epochs);
	vec_free(&spaces->files);
	vec_free(&spaces->epochs);
	vec_free(&spaces->processes);
	map_free(&spaces->by_tgid);
	free(spaces);
}

/* ---- taking records ------------------------------------------------------ */

static void add_file(Spaces *spaces, const struct rec_file *record)
{
	MappedFile *file;

	if (record->id == 0 || record->id > FILE_ID_MAX)
		return;
	while (spaces->files.count < record->id)
		*vec_push(&spaces->files) = NULL;
	if (spaces->files.items[record->id - 1])
		return;
	file = xcalloc(1, sizeof(*file));
	file->id = record->id;
	file->flags = record->h.flags;
	file->build_id_len = MIN(record->build_id_len, sizeof(file->build_id));
	memcpy(file->build_id, record->build_id, file->build_id_len);
	file->base_svma = record->base_svma;
	file->size = record->size;
	file->mtime_ns = record->mtime_ns;
	file->path = xstrdup(record->path);
	spaces->files.items[record->id - 1] = file;
}

static Process *find_process(const Spaces *spaces, uint32_t ns_tgid)
{
	uint32_t number = map_get(&spaces->by_tgid, ns_tgid);

	return number == MAP_NONE ? NULL : &spaces->processes.items[number];
}

static uint32_t begin_epoch(Spaces *spaces, uint32_t ns_tgid, uint64_t from_ns)
{
	Process *process = find_process(spaces, ns_tgid);
	Epoch *epoch = vec_push(&spaces->epochs);

	*epoch = (Epoch){.from_ns = from_ns, .parent = EPOCH_NONE};
	if (!process) {
		map_set(&spaces->by_tgid, ns_tgid, spaces->processes.count);
		process = vec_push(&spaces->processes);
		*process = (Process){};
	} else {
		const Epoch *before =
			&spaces->epochs.items[process->epochs.items[process->epochs.count - 1]];

		epoch->from_ns = MAX(from_ns, before->from_ns);
		epoch->base_generation = before->base_generation + before->mappings.count + 1;
	}
	*vec_push(&process->epochs) = spaces->epochs.count - 1;
	return spaces->epochs.count - 1;
}

/* The epoch that holds now; one that began before the recording if none is known. */
static uint32_t current_epoch(Spaces *spaces, uint32_t ns_tgid)
{
	const Process *process = find_process(spaces, ns_tgid);

	return process ? process->epochs.items[process->epochs.count - 1]
		       : begin_epoch(spaces, ns_tgid, 0);
}

static void add_mapping(Spaces *spaces, const struct rec_mapping *record)
{
	uint32_t number; /* before the array is looked into: current_epoch may move it */
	Epoch *epoch;

	if (record->start >= record->end)
		return;
	number = current_epoch(spaces, record->ns_tgid);
	epoch = &spaces->epochs.items[number];
	*vec_push(&epoch->mappings) = (Mapping){
		.from_ns = record->h.flags & MAPPING_INITIAL ? 0 : record->h.ns,
		.start = record->start,
		.end = record->end,
		.bias = record->bias,
		.file = record->file,
	};
}

static void add_space(Spaces *spaces, const struct rec_space *record)
{
	uint32_t parent = EPOCH_NONE, number;
	uint64_t fork_ns = record->h.ns;

	if (!(record->h.flags & (SPACE_FORK | SPACE_EXEC)))
		return;
	if (record->h.flags & SPACE_FORK)
		parent = current_epoch(spaces, record->ns_parent);
	/* A parent that mapped nothing itself is only a step on the way to its own. */
	while (parent != EPOCH_NONE && spaces->epochs.items[parent].mappings.count == 0 &&
	       spaces->epochs.items[parent].parent != EPOCH_NONE) {
		fork_ns = spaces->epochs.items[parent].fork_ns;
		parent = spaces->epochs.items[parent].parent;
	}
	number = begin_epoch(spaces, record->ns_tgid, record->h.ns);
	spaces->epochs.items[number].parent = parent;
	spaces->epochs.items[number].fork_ns = fork_ns;
}

void spaces_add(Spaces *spaces, const struct record *record)
{
	switch (record->kind) {
	case REC_FILE:
		add_file(spaces, (const struct rec_file *)record);
		break;
	case REC_MAPPING:
		add_mapping(spaces, (const struct rec_mapping *)record);
		break;
	case REC_SPACE:
		add_space(spaces, (const struct rec_space *)record);
		break;
	}
}

const MappedFile *spaces_file(const Spaces *spaces, uint32_t id)
{
	return id > 0 && id <= spaces->files.count ? spaces->files.items[id - 1] : NULL;
}

size_t spaces_file_count(const Spaces *spaces)
{
	return spaces->files.count;
}

/* ---- the tree of an epoch ------------------------------------------------ */

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The initial ones go first; all others came in order of time. */
static void put_initial_first(Epoch *epoch)
{
	const Mapping *items = epoch->mappings.items;
	size_t count = epoch->mappings.count, k = 0;
	Mapping *ordered = xmalloc(count * sizeof(*ordered));

	for (size_t i = 0; i < count; i++)
		if (items[i].from_ns == 0)
			ordered[k++] = items[i];
	for (size_t i = 0; i < count; i++)
		if (items[i].from_ns != 0)
			ordered[k++] = items[i];
	free(epoch->mappings.items);
	epoch->mappings.items = ordered;
	epoch->mappings.capacity = count;
}

/* Records that came late (capture_read_sorted counts them) take effect when they came. */
static void raise_times(Epoch *epoch)
{
	uint64_t latest = 0;

	for (size_t i = 0; i < epoch->mappings.count; i++) {
		Mapping *mapping = &epoch->mappings.items[i];

		latest = MAX(latest, mapping->from_ns);
		mapping->from_ns = latest;
	}
}

static void build_bounds(Epoch *epoch)
{
	size_t kept = 0;

	for (size_t i = 0; i < epoch->mappings.count; i++) {
		*vec_push(&epoch->bounds) = epoch->mappings.items[i].start;
		*vec_push(&epoch->bounds) = epoch->mappings.items[i].end;
	}
	qsort(epoch->bounds.items, epoch->bounds.count, sizeof(uint64_t), compare_u64);
	for (size_t i = 0; i < epoch->bounds.count; i++)
		if (kept == 0 || epoch->bounds.items[kept - 1] != epoch->bounds.items[i])
			epoch->bounds.items[kept++] = epoch->bounds.items[i];
	epoch->bounds.count = kept;
	epoch->ranges = kept ? kept - 1 : 0;
}

/* The range that holds avma, or epoch->ranges. */
static uint32_t find_range(const Epoch *epoch, uint64_t avma)
{
	size_t low = 0, high = epoch->bounds.count; /* bounds before low are <= avma */

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (epoch->bounds.items[middle] <= avma)
			low = middle + 1;
		else
			high = middle;
	}
	return low == 0 || low == epoch->bounds.count ? epoch->ranges : low - 1;
}

/* A mapping covers at most two nodes on each level of the tree. */
#define COVER_MAX 64

/* The nodes that together stand for the ranges of a mapping. */
static size_t cover(const Epoch *epoch, const Mapping *mapping, uint32_t nodes[static COVER_MAX])
{
	uint32_t low = find_range(epoch, mapping->start) + epoch->ranges;
	/* The last byte's range: `end` itself may be beyond the last bound. */
	uint32_t high = find_range(epoch, mapping->end - 1) + epoch->ranges + 1;
	size_t count = 0;

	for (; low < high; low >>= 1, high >>= 1) {
		if (low & 1)
			nodes[count++] = low++;
		if (high & 1)
			nodes[count++] = --high;
	}
	return count;
}

static void build_tree(Epoch *epoch)
{
	uint32_t nodes[COVER_MAX], *next;
	size_t total;

	epoch->built = true;
	if (epoch->mappings.count == 0)
		return;
	put_initial_first(epoch);
	raise_times(epoch);
	build_bounds(epoch);
	total = 2 * (size_t)epoch->ranges;
	epoch->node_starts = xcalloc(total + 1, sizeof(*epoch->node_starts));
	for (size_t i = 0; i < epoch->mappings.count; i++) {
		size_t count = cover(epoch, &epoch->mappings.items[i], nodes);

		for (size_t k = 0; k < count; k++)
			epoch->node_starts[nodes[k] + 1]++;
	}
	for (size_t i = 0; i < total; i++)
		epoch->node_starts[i + 1] += epoch->node_starts[i];
	epoch->lists = xmalloc(epoch->node_starts[total] * sizeof(*epoch->lists));
	next = xmalloc(total * sizeof(*next));
	memcpy(next, epoch->node_starts, total * sizeof(*next));
	for (size_t i = 0; i < epoch->mappings.count; i++) {
		size_t count = cover(epoch, &epoch->mappings.items[i], nodes);

		for (size_t k = 0; k < count; k++)
			epoch->lists[next[nodes[k]]++] = i;
	}
	free(next);
}

static Epoch *built_epoch(const Spaces *spaces, uint32_t number)
{
	Epoch *epoch = &spaces->epochs.items[number];

	if (!epoch->built)
		build_tree(epoch);
	return epoch;
}

/* ---- queries ------------------------------------------------------------- */

/* How many of the epoch's mappings there were at ns. */
static size_t count_until(const Epoch *epoch, uint64_t ns)
{
	size_t low = 0, high = epoch->mappings.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (epoch->mappings.items[middle].from_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* How many entries of a node's list are below `until`. */
static uint32_t count_below(const Epoch *epoch, uint32_t node, size_t until)
{
	uint32_t first = epoch->node_starts[node];
	uint32_t low = first, high = epoch->node_starts[node + 1];

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (epoch->lists[middle] < until)
			low = middle + 1;
		else
			high = middle;
	}
	return low - first;
}

/* The mapping of this epoch alone that avma lay in at ns, or NULL. */
static const Mapping *youngest(const Epoch *epoch, uint64_t ns, uint64_t avma)
{
	uint32_t range = find_range(epoch, avma);
	size_t until = count_until(epoch, ns);
	const Mapping *found = NULL;

	if (range == epoch->ranges)
		return NULL;
	for (uint32_t node = range + epoch->ranges; node > 0; node >>= 1) {
		uint32_t below = count_below(epoch, node, until);
		const Mapping *mapping;

		if (below == 0)
			continue;
		mapping =
			&epoch->mappings.items[epoch->lists[epoch->node_starts[node] + below - 1]];
		if (!found || mapping > found)
			found = mapping;
	}
	return found;
}

/* The epoch that the process was in at ns; the first one if ns is before all. */
static uint32_t epoch_at(const Spaces *spaces, const Process *process, uint64_t ns)
{
	size_t low = 1, high = process->epochs.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (spaces->epochs.items[process->epochs.items[middle]].from_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return process->epochs.items[low - 1];
}

uint32_t spaces_generation(const Spaces *spaces, uint32_t ns_tgid, uint64_t ns)
{
	const Process *process = find_process(spaces, ns_tgid);
	const Epoch *epoch;

	if (!process)
		return 0;
	epoch = built_epoch(spaces, epoch_at(spaces, process, ns));
	return epoch->base_generation + count_until(epoch, ns);
}

Location spaces_locate(const Spaces *spaces, uint32_t ns_tgid, uint64_t ns, uint64_t avma)
{
	const Process *process = find_process(spaces, ns_tgid);
	uint32_t number = process ? epoch_at(spaces, process, ns) : EPOCH_NONE;

	while (number != EPOCH_NONE) {
		const Epoch *epoch = built_epoch(spaces, number);
		const Mapping *mapping = youngest(epoch, ns, avma);

		if (mapping)
			return (Location){.file = spaces_file(spaces, mapping->file),
					  .svma = avma - mapping->bias};
		ns = MIN(ns, epoch->fork_ns);
		number = epoch->parent;
	}
	return (Location){};
}

/* Visits what avma meant in one epoch up to `ns`, its parents included. */
static void visit_epoch(const Spaces *spaces, uint32_t number, uint64_t ns, uint64_t avma,
			void (*visit)(void *, const MappedFile *, uint64_t), void *user)
{
	while (number != EPOCH_NONE) {
		const Epoch *epoch = built_epoch(spaces, number);
		uint32_t range = find_range(epoch, avma);
		size_t until = count_until(epoch, ns);

		for (uint32_t node = range + epoch->ranges; range < epoch->ranges && node > 0;
		     node >>= 1) {
			const uint32_t *list = epoch->lists + epoch->node_starts[node];

			for (uint32_t i = count_below(epoch, node, until); i > 0; i--) {
				const Mapping *mapping = &epoch->mappings.items[list[i - 1]];
				const MappedFile *file = spaces_file(spaces, mapping->file);

				if (file)
					visit(user, file, avma - mapping->bias);
			}
		}
		ns = MIN(ns, epoch->fork_ns);
		number = epoch->parent;
	}
}

void spaces_locate_any(const Spaces *spaces, uint32_t ns_tgid, uint64_t avma,
		       void (*visit)(void *user, const MappedFile *file, uint64_t svma), void *user)
{
	const Process *process = find_process(spaces, ns_tgid);

	for (size_t i = 0; process && i < process->epochs.count; i++)
		visit_epoch(spaces, process->epochs.items[i], UINT64_MAX, avma, visit, user);
}
