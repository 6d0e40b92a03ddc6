/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * address_space.c - who had what mapped where, and when.
 *
 * A process lives through epochs: from its beginning or an exec to the next
 * exec. An epoch has its own mappings; one that began by fork also sees those
 * that its parent's epoch had at that moment, by reference. munmap is not
 * recorded (nobody executes there until something else is mapped), so what an
 * address meant at a time is the youngest mapping that covers it and is not
 * younger than that time (range_history.h).
 *
 * Code made at run time comes with its times, but in any order and after all
 * else, so it belongs to the process number, and its time tells the epoch: it
 * holds in the one that it was made in, and in those forked from that. Code
 * without a time holds in all of them. It lies over the mappings: memory for code
 * is mapped before code is put there, and mapped anew (mprotect) with the code in it.
 */
#include "address_space.h"
#include "range_history.h"
#include <string.h>

/* More files than this are not believed (ids are dense, so an id costs memory). */
#define FILE_ID_MAX (1u << 20)
#define EPOCH_NONE  UINT32_MAX

/* How an epoch sees an ancestor: as it was at ns. */
typedef struct Inherited {
	uint32_t epoch; /* EPOCH_NONE: nothing is inherited */
	uint64_t ns;
} Inherited;

#define INHERITED_NONE ((Inherited){.epoch = EPOCH_NONE})

typedef struct Epoch {
	uint64_t from_ns;
	uint64_t image_ns; /* when the program began that it runs: that of who it was forked from */
	uint32_t process;
	uint32_t base_generation;
	Inherited forked_from;
	Inherited mappings_from; /* the next one up that has mappings of its own */
	Inherited code_from;	 /* the next one up that has code of its own; see settle() */
	uint64_t latest_ns;	 /* of the mappings */
	RangeHistory mappings;	 /* value: FILE id */
} Epoch;

/* All that had one number; the last epoch is the present one. */
typedef struct Process {
	VEC(uint32_t) epochs; /* from_ns ascending */
	RangeHistory code;    /* value: FILE id */
} Process;

struct AddressSpaces {
	VEC(MappedFile *) files; /* by id - 1; NULL where the definition is missing */
	VEC(Epoch) epochs;	 /* what is inherited has a lower number */
	VEC(Process) processes;
	Map by_tgid; /* ns_tgid -> processes */
	bool has_code, settled;
};

AddressSpaces *address_spaces_new(void)
{
	return xcalloc(1, sizeof(AddressSpaces));
}

void address_spaces_free(AddressSpaces *spaces)
{
	if (!spaces)
		return;
	for (size_t i = 0; i < spaces->files.count; i++) {
		if (spaces->files.items[i])
			free(spaces->files.items[i]->path);
		free(spaces->files.items[i]);
	}
	for (size_t i = 0; i < spaces->epochs.count; i++)
		range_history_free(&spaces->epochs.items[i].mappings);
	for (size_t i = 0; i < spaces->processes.count; i++) {
		vec_free(&spaces->processes.items[i].epochs);
		range_history_free(&spaces->processes.items[i].code);
	}
	vec_free(&spaces->files);
	vec_free(&spaces->epochs);
	vec_free(&spaces->processes);
	map_free(&spaces->by_tgid);
	free(spaces);
}

/* ---- taking records ------------------------------------------------------ */

static void add_file(AddressSpaces *spaces, const struct rec_file *record)
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

static Process *find_process(const AddressSpaces *spaces, uint32_t ns_tgid)
{
	uint32_t number = map_get(&spaces->by_tgid, ns_tgid);

	return number == MAP_NONE ? NULL : &spaces->processes.items[number];
}

/* The process of a number; made if there is none. */
static Process *get_process(AddressSpaces *spaces, uint32_t ns_tgid)
{
	Process *process = find_process(spaces, ns_tgid);

	if (process)
		return process;
	map_set(&spaces->by_tgid, ns_tgid, spaces->processes.count);
	process = vec_push(&spaces->processes);
	*process = (Process){};
	return process;
}

static uint32_t begin_epoch(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t from_ns)
{
	Process *process = get_process(spaces, ns_tgid);
	Epoch *epoch = vec_push(&spaces->epochs);

	*epoch = (Epoch){
		.from_ns = from_ns,
		.process = process - spaces->processes.items,
		.forked_from = INHERITED_NONE,
		.mappings_from = INHERITED_NONE,
		.code_from = INHERITED_NONE,
	};
	if (process->epochs.count > 0) {
		const Epoch *before =
			&spaces->epochs.items[process->epochs.items[process->epochs.count - 1]];

		epoch->from_ns = MAX(from_ns, before->from_ns);
		/* As much as that of the one before can become. */
		epoch->base_generation = before->base_generation + before->mappings.list.count + 1;
	}
	epoch->image_ns = epoch->from_ns;
	*vec_push(&process->epochs) = spaces->epochs.count - 1;
	return spaces->epochs.count - 1;
}

/* The epoch that holds now; one that began before the recording if none is known. */
static uint32_t current_epoch(AddressSpaces *spaces, uint32_t ns_tgid)
{
	const Process *process = find_process(spaces, ns_tgid);

	return process && process->epochs.count > 0
		       ? process->epochs.items[process->epochs.count - 1]
		       : begin_epoch(spaces, ns_tgid, 0);
}

static void add_mapping(AddressSpaces *spaces, const struct rec_mapping *record)
{
	TimedRange range = {
		.from_ns = record->h.ns,
		.start = record->start,
		.end = record->end,
		.bias = record->bias,
		.value = record->file,
	};
	uint32_t number; /* before the array is looked into: current_epoch may move it */
	Epoch *epoch;

	if (record->start >= record->end)
		return;
	number = current_epoch(spaces, record->ns_tgid);
	epoch = &spaces->epochs.items[number];
	if (record->h.flags & MAPPING_INITIAL) {
		range.from_ns = 0;
	} else {
		/* Those that came late (capture_read_sorted counts them) hold from then on. */
		epoch->latest_ns = MAX(epoch->latest_ns, range.from_ns);
		range.from_ns = epoch->latest_ns;
	}
	range_history_add(&epoch->mappings, &range);
}

static void add_code(AddressSpaces *spaces, const struct rec_code *record)
{
	TimedRange range = {
		.from_ns = record->h.ns,
		.start = record->start,
		.end = record->end,
		.bias = record->bias,
		.value = record->file,
	};

	if (record->start >= record->end)
		return;
	range_history_add(&get_process(spaces, record->ns_tgid)->code, &range);
	spaces->has_code = true;
}

static void add_space(AddressSpaces *spaces, const struct rec_space *record)
{
	Inherited parent = {.epoch = EPOCH_NONE, .ns = record->h.ns}, mappings;
	uint32_t number;
	Epoch *epoch;

	if (!(record->h.flags & (SPACE_FORK | SPACE_EXEC)))
		return;
	if (record->h.flags & SPACE_FORK)
		parent.epoch = current_epoch(spaces, record->ns_parent);
	mappings = parent;
	/* A parent that mapped nothing itself is only a step on the way to its own. */
	while (mappings.epoch != EPOCH_NONE) {
		const Epoch *step = &spaces->epochs.items[mappings.epoch];

		if (step->mappings.list.count > 0 || step->mappings_from.epoch == EPOCH_NONE)
			break;
		mappings = step->mappings_from;
	}
	number = begin_epoch(spaces, record->ns_tgid, record->h.ns);
	epoch = &spaces->epochs.items[number];
	if (parent.epoch != EPOCH_NONE)
		epoch->image_ns = spaces->epochs.items[parent.epoch].image_ns;
	epoch->forked_from = parent;
	epoch->mappings_from = mappings;
}

void address_spaces_add(AddressSpaces *spaces, const struct record *record)
{
	switch (record->kind) {
	case REC_FILE:
		add_file(spaces, (const struct rec_file *)record);
		break;
	case REC_MAPPING:
		add_mapping(spaces, (const struct rec_mapping *)record);
		break;
	case REC_CODE:
		add_code(spaces, (const struct rec_code *)record);
		break;
	case REC_SPACE:
		add_space(spaces, (const struct rec_space *)record);
		break;
	}
}

const MappedFile *address_spaces_file(const AddressSpaces *spaces, uint32_t id)
{
	return id > 0 && id <= spaces->files.count ? spaces->files.items[id - 1] : NULL;
}

size_t address_spaces_file_count(const AddressSpaces *spaces)
{
	return spaces->files.count;
}

/* ---- queries ------------------------------------------------------------- */

static bool has_code(const AddressSpaces *spaces, uint32_t epoch)
{
	return spaces->processes.items[spaces->epochs.items[epoch].process].code.list.count > 0;
}

/* Only now it is known which processes have code, and so where an epoch inherits it from. */
static void settle(AddressSpaces *spaces)
{
	if (spaces->settled)
		return;
	spaces->settled = true;
	for (size_t i = 0; spaces->has_code && i < spaces->epochs.count; i++) {
		Epoch *epoch = &spaces->epochs.items[i];
		uint32_t parent = epoch->forked_from.epoch;

		if (parent == EPOCH_NONE)
			continue;
		epoch->code_from = has_code(spaces, parent)
					   ? epoch->forked_from
					   : spaces->epochs.items[parent].code_from;
	}
}

/* The epoch that the process was in at ns; the first one if ns is before all. */
static uint32_t epoch_at(const AddressSpaces *spaces, const Process *process, uint64_t ns)
{
	const uint32_t *epochs = process->epochs.items;
	size_t next = partition_point(middle, process->epochs.count,
				      spaces->epochs.items[epochs[middle]].from_ns <= ns);

	if (process->epochs.count == 0)
		return EPOCH_NONE; /* nothing but code is known of it */
	return epochs[MAX(next, 1u) - 1];
}

uint32_t address_spaces_generation(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t ns)
{
	Process *process = find_process(spaces, ns_tgid);
	uint32_t number = process ? epoch_at(spaces, process, ns) : EPOCH_NONE;
	uint32_t generation = 0;

	/* Each part never falls as time goes on, so their sum is new when one is. */
	if (process)
		generation += range_history_count(&process->code, ns);
	if (number != EPOCH_NONE) {
		Epoch *epoch = &spaces->epochs.items[number];

		generation += epoch->base_generation + range_history_count(&epoch->mappings, ns) +
			      (epoch->from_ns <= ns);
	}
	return generation;
}

/* Is a process's code of this epoch's time? */
static bool is_of_epoch(const TimedRange *code, uint64_t epoch_ns)
{
	return code->from_ns == 0 || code->from_ns >= epoch_ns;
}

/* The code made at run time that lay at avma in this epoch or in what it was forked from. */
static const TimedRange *find_code(AddressSpaces *spaces, uint32_t number, uint64_t ns,
				   uint64_t avma)
{
	settle(spaces);
	while (number != EPOCH_NONE) {
		const Epoch *epoch = &spaces->epochs.items[number];
		RangeHistory *code = &spaces->processes.items[epoch->process].code;
		const TimedRange *found = range_history_find(code, ns, avma);

		if (found && is_of_epoch(found, epoch->from_ns))
			return found;
		ns = MIN(ns, epoch->code_from.ns);
		number = epoch->code_from.epoch;
	}
	return NULL;
}

static const TimedRange *find_mapping(AddressSpaces *spaces, uint32_t number, uint64_t ns,
				      uint64_t avma)
{
	while (number != EPOCH_NONE) {
		Epoch *epoch = &spaces->epochs.items[number];
		const TimedRange *found = range_history_find(&epoch->mappings, ns, avma);

		if (found)
			return found;
		ns = MIN(ns, epoch->mappings_from.ns);
		number = epoch->mappings_from.epoch;
	}
	return NULL;
}

Location address_spaces_locate(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t ns, uint64_t avma)
{
	Process *process = find_process(spaces, ns_tgid);
	uint32_t number = process ? epoch_at(spaces, process, ns) : EPOCH_NONE;
	const TimedRange *found = NULL;

	if (number != EPOCH_NONE)
		found = find_code(spaces, number, ns, avma);
	else if (process)
		found = range_history_find(&process->code, ns, avma);
	if (!found)
		found = find_mapping(spaces, number, ns, avma);
	if (!found)
		return (Location){};
	return (Location){.file = address_spaces_file(spaces, found->value),
			  .svma = avma - found->bias};
}

Location address_spaces_locate_data(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t ns,
				    uint64_t avma)
{
	Process *process = find_process(spaces, ns_tgid);
	uint32_t number = process ? epoch_at(spaces, process, ns) : EPOCH_NONE;
	const TimedRange *nearest = NULL;

	while (number != EPOCH_NONE) {
		Epoch *epoch = &spaces->epochs.items[number];
		const TimedRange *found = range_history_below(&epoch->mappings, ns, avma);

		if (found && (!nearest || found->start > nearest->start))
			nearest = found;
		ns = MIN(ns, epoch->mappings_from.ns);
		number = epoch->mappings_from.epoch;
	}
	if (!nearest)
		return (Location){};
	return (Location){.file = address_spaces_file(spaces, nearest->value),
			  .svma = avma - nearest->bias};
}

bool address_spaces_replaced(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t from_ns,
			     uint64_t to_ns, uint64_t avma)
{
	const Process *process = find_process(spaces, ns_tgid);
	uint32_t number = process ? epoch_at(spaces, process, to_ns) : EPOCH_NONE;
	const TimedRange *before, *after;
	uint64_t image_ns;

	if (number == EPOCH_NONE || to_ns <= from_ns)
		return false;
	image_ns = spaces->epochs.items[number].image_ns;
	if (image_ns > from_ns && image_ns <= to_ns)
		return true;
	/*
	 * Each change counts, also one that was changed back: the walk may have known what was
	 * there in between.
	 */
	after = find_mapping(spaces, number, to_ns, avma);
	while (after && after->from_ns > from_ns) {
		before = find_mapping(spaces, number, after->from_ns - 1, avma);
		if (before && (before->value != after->value || before->bias != after->bias))
			return true;
		if (before && before->from_ns >= after->from_ns)
			return false; /* of the same time: nothing older is found so */
		after = before;
	}
	return false;
}

/* What address_spaces_locate_any is asked, on its way through the histories. */
typedef struct Visit {
	const AddressSpaces *spaces;
	uint64_t avma;
	uint64_t epoch_ns; /* only what is_of_epoch() */
	void (*visit)(void *user, const MappedFile *file, uint64_t svma);
	void *user;
} Visit;

static void visit_range(void *user, const TimedRange *range)
{
	const Visit *visit = user;
	const MappedFile *file = address_spaces_file(visit->spaces, range->value);

	if (file && is_of_epoch(range, visit->epoch_ns))
		visit->visit(visit->user, file, visit->avma - range->bias);
}

/* What avma meant in what an epoch was forked from. */
static void visit_inherited(AddressSpaces *spaces, const Epoch *epoch, Visit *visit)
{
	uint64_t ns = UINT64_MAX;

	for (Inherited from = epoch->code_from; from.epoch != EPOCH_NONE; from = epoch->code_from) {
		ns = MIN(ns, from.ns);
		epoch = &spaces->epochs.items[from.epoch];
		visit->epoch_ns = epoch->from_ns;
		range_history_visit(&spaces->processes.items[epoch->process].code, ns, visit->avma,
				    visit_range, visit);
	}
	visit->epoch_ns = 0;
}

static void visit_mappings(AddressSpaces *spaces, uint32_t number, Visit *visit)
{
	uint64_t ns = UINT64_MAX;

	while (number != EPOCH_NONE) {
		Epoch *epoch = &spaces->epochs.items[number];

		range_history_visit(&epoch->mappings, ns, visit->avma, visit_range, visit);
		ns = MIN(ns, epoch->mappings_from.ns);
		number = epoch->mappings_from.epoch;
	}
}

void address_spaces_locate_any(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t avma,
			       void (*visit)(void *user, const MappedFile *file, uint64_t svma),
			       void *user)
{
	Process *process = find_process(spaces, ns_tgid);
	Visit visiting = {.spaces = spaces, .avma = avma, .visit = visit, .user = user};

	if (!process)
		return;
	settle(spaces);
	range_history_visit(&process->code, UINT64_MAX, avma, visit_range, &visiting);
	for (size_t i = 0; i < process->epochs.count; i++) {
		uint32_t number = process->epochs.items[i];

		visit_inherited(spaces, &spaces->epochs.items[number], &visiting);
		visit_mappings(spaces, number, &visiting);
	}
}
