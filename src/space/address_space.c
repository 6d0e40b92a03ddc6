/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * address_space.c - what every process had mapped, and when.
 *
 * A process goes through epochs: from its beginning or an exec to the next exec. An epoch has its
 * own mappings; one that began by fork also sees those that its parent's epoch had at that moment,
 * by reference. munmap is not recorded (no code runs there until something else is mapped), so an
 * address at a time means the youngest mapping that covers it and is not younger than that time
 * (range_history.h).
 *
 * Code made at run time comes with its times, but in any order and after all other records, so it
 * belongs to the process id, and its time decides the epoch: it is valid in the epoch in which it
 * was made, and in those forked from that. Code without a time is valid in all of them. It has
 * priority over mappings: memory for code is mapped before code is put there, and mapped again
 * (mprotect) with the code in it.
 */
#include "address_space.h"
#include "range_history.h"
#include <string.h>

/* Larger ids are refused: ids are dense, so an id costs memory. */
#define FILE_ID_MAX (1u << 20)
#define EPOCH_NONE  UINT32_MAX

/* How an epoch sees an ancestor: as of ns. */
typedef struct Inherited {
	uint32_t epoch; /* EPOCH_NONE: nothing is inherited */
	uint64_t ns;
} Inherited;

#define INHERITED_NONE ((Inherited){.epoch = EPOCH_NONE})

typedef struct Epoch {
	uint64_t from_ns;
	uint64_t image_ns; /* when its program began; after a fork, when the parent's program began
			    */
	uint32_t process;
	uint32_t base_generation;
	Inherited forked_from;
	Inherited mappings_from; /* the nearest ancestor with mappings of its own */
	Inherited code_from;	 /* the nearest ancestor with code of its own; see link_code() */
	uint64_t latest_ns;	 /* of the youngest mapping */
	RangeHistory mappings;	 /* value: FILE id */
} Epoch;

/* All processes that had one id; the last epoch is the present one. */
typedef struct Process {
	VEC(uint32_t) epochs; /* from_ns ascending */
	RangeHistory code;    /* value: FILE id */
} Process;

/*
 * The generation of a process in a span of time. Most queries are for the same few processes, and
 * mappings change seldom.
 */
typedef struct GenerationSpan {
	uint32_t ns_tgid, generation;
	uint64_t from_ns, until_ns; /* until_ns is not included; both 0: none */
} GenerationSpan;

/* A linker makes one, or a few; a damaged capture may have any number. */
#define MAPPED_TEXTS_MAX 16

#define GENERATION_SPANS 64 /* a power of two */

struct AddressSpaces {
	VEC(MappedFile *) files; /* by id - 1; NULL where the definition is missing */
	VEC(Epoch) epochs;	 /* an epoch inherits only from ones with a lower index */
	VEC(Process) processes;
	Map by_tgid; /* ns_tgid -> processes */
	bool has_code, code_linked;
	bool has_spans;
	GenerationSpan spans[GENERATION_SPANS]; /* by ns_tgid */
};

AddressSpaces *address_spaces_new(void)
{
	return xcalloc(1, sizeof(AddressSpaces));
}

static void mapped_file_free(MappedFile *file)
{
	if (!file)
		return;
	free(file->path);
	vec_free(&file->texts);
	free(file);
}

void address_spaces_free(AddressSpaces *spaces)
{
	if (!spaces)
		return;
	for (size_t i = 0; i < spaces->files.count; i++) {
		mapped_file_free(spaces->files.items[i]);
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
	uint32_t index = map_get(&spaces->by_tgid, ns_tgid);

	return index == MAP_NONE ? NULL : &spaces->processes.items[index];
}

/* Returns the process with this id, which is added if it is new. */
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
		/* The largest value that the generation of the previous epoch can reach. */
		epoch->base_generation = before->base_generation + before->mappings.list.count + 1;
	}
	epoch->image_ns = epoch->from_ns;
	*vec_push(&process->epochs) = spaces->epochs.count - 1;
	return spaces->epochs.count - 1;
}

/* Returns the present epoch; if none is known, one that began before the recording is added. */
static uint32_t current_epoch(AddressSpaces *spaces, uint32_t ns_tgid)
{
	const Process *process = find_process(spaces, ns_tgid);

	return process && process->epochs.count > 0
		       ? process->epochs.items[process->epochs.count - 1]
		       : begin_epoch(spaces, ns_tgid, 0);
}

/* Remembers which part of a file it is. Processes map the same parts. */
static void add_text(AddressSpaces *spaces, const struct rec_mapping *record)
{
	MappedText text = {.start = record->start - record->bias,
			   .end = record->end - record->bias,
			   .offset = record->pgoff};
	MappedFile *file;

	if (record->file == 0 || record->file > spaces->files.count || text.end <= text.start)
		return;
	file = spaces->files.items[record->file - 1];
	if (!file || !(record->h.flags & MAPPING_EXEC))
		return;
	for (size_t i = 0; i < file->texts.count; i++) {
		MappedText *known = &file->texts.items[i];

		if (known->start - known->offset == text.start - text.offset &&
		    known->start <= text.end && text.start <= known->end) {
			known->offset = MIN(known->offset, text.offset);
			known->start = MIN(known->start, text.start);
			known->end = MAX(known->end, text.end);
			return;
		}
	}
	if (file->texts.count < MAPPED_TEXTS_MAX)
		*vec_push(&file->texts) = text;
}

const MappedText *address_spaces_text(const MappedFile *file, uint64_t svma)
{
	for (size_t i = 0; i < file->texts.count; i++)
		if (svma >= file->texts.items[i].start && svma < file->texts.items[i].end)
			return &file->texts.items[i];
	return NULL;
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
	uint32_t index; /* first, because current_epoch() may move the array */
	Epoch *epoch;

	if (record->start >= record->end)
		return;
	add_text(spaces, record);
	index = current_epoch(spaces, record->ns_tgid);
	epoch = &spaces->epochs.items[index];
	if (record->h.flags & MAPPING_INITIAL) {
		range.from_ns = 0;
	} else {
		/*
		 * A mapping that came late (capture_read_sorted() counts them) is valid from then
		 * on.
		 */
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
	uint32_t index;
	Epoch *epoch;

	if (!(record->h.flags & (SPACE_FORK | SPACE_EXEC)))
		return;
	if (record->h.flags & SPACE_FORK)
		parent.epoch = current_epoch(spaces, record->ns_parent);
	mappings = parent;
	/* A parent without mappings of its own only leads to its parent. */
	while (mappings.epoch != EPOCH_NONE) {
		const Epoch *step = &spaces->epochs.items[mappings.epoch];

		if (step->mappings.list.count > 0 || step->mappings_from.epoch == EPOCH_NONE)
			break;
		mappings = step->mappings_from;
	}
	index = begin_epoch(spaces, record->ns_tgid, record->h.ns);
	epoch = &spaces->epochs.items[index];
	if (parent.epoch != EPOCH_NONE)
		epoch->image_ns = spaces->epochs.items[parent.epoch].image_ns;
	epoch->forked_from = parent;
	epoch->mappings_from = mappings;
}

static void forget_spans(AddressSpaces *spaces)
{
	if (spaces->has_spans)
		memset(spaces->spans, 0, sizeof(spaces->spans));
	spaces->has_spans = false;
}

void address_spaces_add(AddressSpaces *spaces, const struct record *record)
{
	forget_spans(spaces);
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

/* Links epochs to inherited code: only now all processes that have code are known. */
static void link_code(AddressSpaces *spaces)
{
	if (spaces->code_linked)
		return;
	spaces->code_linked = true;
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

/* Returns the epoch of the process at ns; the first one if ns is before all. */
static uint32_t epoch_at(const AddressSpaces *spaces, const Process *process, uint64_t ns)
{
	const uint32_t *epochs = process->epochs.items;
	size_t next = partition_point(middle, process->epochs.count,
				      spaces->epochs.items[epochs[middle]].from_ns <= ns);

	if (process->epochs.count == 0)
		return EPOCH_NONE; /* only code is known of it */
	return epochs[MAX(next, 1u) - 1];
}

/* Narrows the span to the time in which the history has as many ranges as at ns. */
static uint32_t count_in_span(RangeHistory *history, uint64_t ns, GenerationSpan *span)
{
	size_t count = range_history_count(history, ns);

	if (count > 0)
		span->from_ns = MAX(span->from_ns, history->list.items[count - 1].from_ns);
	if (count < history->list.count)
		span->until_ns = MIN(span->until_ns, history->list.items[count].from_ns);
	return count;
}

/* Narrows the span to the epoch at ns. */
static uint32_t epoch_in_span(const AddressSpaces *spaces, const Process *process, uint64_t ns,
			      GenerationSpan *span)
{
	uint32_t index = epoch_at(spaces, process, ns);

	for (size_t i = 0; i < process->epochs.count; i++) {
		uint64_t from_ns = spaces->epochs.items[process->epochs.items[i]].from_ns;

		if (from_ns <= ns)
			span->from_ns = MAX(span->from_ns, from_ns);
		else
			span->until_ns = MIN(span->until_ns, from_ns);
	}
	return index;
}

static GenerationSpan find_span(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t ns)
{
	GenerationSpan span = {.ns_tgid = ns_tgid, .until_ns = UINT64_MAX};
	Process *process = find_process(spaces, ns_tgid);
	uint32_t index;

	if (!process)
		return span;
	/* No part ever decreases, so their sum changes when one does. */
	span.generation = count_in_span(&process->code, ns, &span);
	index = epoch_in_span(spaces, process, ns, &span);
	if (index != EPOCH_NONE) {
		Epoch *epoch = &spaces->epochs.items[index];

		span.generation += epoch->base_generation +
				   count_in_span(&epoch->mappings, ns, &span) +
				   (epoch->from_ns <= ns);
	}
	return span;
}

uint32_t address_spaces_generation(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t ns)
{
	GenerationSpan *span = &spaces->spans[ns_tgid % GENERATION_SPANS];

	if (span->ns_tgid != ns_tgid || ns < span->from_ns || ns >= span->until_ns) {
		*span = find_span(spaces, ns_tgid, ns);
		spaces->has_spans = true;
	}
	return span->generation;
}

/* Returns whether a process's code is of the epoch of this time. */
static bool is_of_epoch(const TimedRange *code, uint64_t epoch_ns)
{
	return code->from_ns == 0 || code->from_ns >= epoch_ns;
}

/*
 * Returns the code made at run time that was at avma in this epoch or in those it was forked from.
 */
static const TimedRange *find_code(AddressSpaces *spaces, uint32_t index, uint64_t ns,
				   uint64_t avma)
{
	link_code(spaces);
	while (index != EPOCH_NONE) {
		const Epoch *epoch = &spaces->epochs.items[index];
		RangeHistory *code = &spaces->processes.items[epoch->process].code;
		const TimedRange *found = range_history_find(code, ns, avma);

		if (found && is_of_epoch(found, epoch->from_ns))
			return found;
		ns = MIN(ns, epoch->code_from.ns);
		index = epoch->code_from.epoch;
	}
	return NULL;
}

static const TimedRange *find_mapping(AddressSpaces *spaces, uint32_t index, uint64_t ns,
				      uint64_t avma)
{
	while (index != EPOCH_NONE) {
		Epoch *epoch = &spaces->epochs.items[index];
		const TimedRange *found = range_history_find(&epoch->mappings, ns, avma);

		if (found)
			return found;
		ns = MIN(ns, epoch->mappings_from.ns);
		index = epoch->mappings_from.epoch;
	}
	return NULL;
}

Location address_spaces_locate(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t ns, uint64_t avma)
{
	Process *process = find_process(spaces, ns_tgid);
	uint32_t index = process ? epoch_at(spaces, process, ns) : EPOCH_NONE;
	const TimedRange *found = NULL;

	if (index != EPOCH_NONE)
		found = find_code(spaces, index, ns, avma);
	else if (process)
		found = range_history_find(&process->code, ns, avma);
	if (!found)
		found = find_mapping(spaces, index, ns, avma);
	if (!found)
		return (Location){};
	return (Location){.file = address_spaces_file(spaces, found->value),
			  .svma = avma - found->bias};
}

Location address_spaces_locate_data(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t ns,
				    uint64_t avma)
{
	Process *process = find_process(spaces, ns_tgid);
	uint32_t index = process ? epoch_at(spaces, process, ns) : EPOCH_NONE;
	const TimedRange *nearest = NULL;

	while (index != EPOCH_NONE) {
		Epoch *epoch = &spaces->epochs.items[index];
		const TimedRange *found = range_history_below(&epoch->mappings, ns, avma);

		if (found && (!nearest || found->start > nearest->start))
			nearest = found;
		ns = MIN(ns, epoch->mappings_from.ns);
		index = epoch->mappings_from.epoch;
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
	uint32_t index = process ? epoch_at(spaces, process, to_ns) : EPOCH_NONE;
	const TimedRange *before, *after;
	uint64_t image_ns;

	if (index == EPOCH_NONE || to_ns <= from_ns)
		return false;
	image_ns = spaces->epochs.items[index].image_ns;
	if (image_ns > from_ns && image_ns <= to_ns)
		return true;
	/*
	 * Each change counts, also one that was reverted: the walk may have used what was there in
	 * between.
	 */
	after = find_mapping(spaces, index, to_ns, avma);
	while (after && after->from_ns > from_ns) {
		before = find_mapping(spaces, index, after->from_ns - 1, avma);
		if (before && (before->value != after->value || before->bias != after->bias))
			return true;
		if (before && before->from_ns >= after->from_ns)
			return false; /* it has the same time: an older one cannot be found in this
					 way */
		after = before;
	}
	return false;
}

/* The state of address_spaces_locate_any() on its way through the histories. */
typedef struct Visit {
	const AddressSpaces *spaces;
	uint64_t avma;
	uint64_t epoch_ns; /* only code for which is_of_epoch() holds */
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

/* Visits what avma meant in the epochs that this one was forked from. */
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

static void visit_mappings(AddressSpaces *spaces, uint32_t index, Visit *visit)
{
	uint64_t ns = UINT64_MAX;

	while (index != EPOCH_NONE) {
		Epoch *epoch = &spaces->epochs.items[index];

		range_history_visit(&epoch->mappings, ns, visit->avma, visit_range, visit);
		ns = MIN(ns, epoch->mappings_from.ns);
		index = epoch->mappings_from.epoch;
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
	link_code(spaces);
	range_history_visit(&process->code, UINT64_MAX, avma, visit_range, &visiting);
	for (size_t i = 0; i < process->epochs.count; i++) {
		uint32_t index = process->epochs.items[i];

		visit_inherited(spaces, &spaces->epochs.items[index], &visiting);
		visit_mappings(spaces, index, &visiting);
	}
}
