/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "images.h"
#include <string.h>

/*
 * How long after an exec both BPF and the side-band have reported it, unless the report was lost.
 */
#define EXEC_TIMEOUT_NS (100 * NSEC_PER_MSEC)

static void image_free(Image *image)
{
	vec_free(&image->mappings);
	vec_free(&image->pending);
	vec_free(&image->past);
	free(image);
}

void images_free(Images *images)
{
	for (size_t i = 0; i < images->list.count; i++)
		image_free(images->list.items[i]);
	vec_free(&images->list);
	map_free(&images->current);
	vec_free(&images->uses);
	vec_free(&images->found);
}

/* ---- uses --------------------------------------------------------------------------------- */

static void add_uses(Images *images, const Image *image, uint32_t each)
{
	for (size_t i = 0; i < image->mappings.count; i++) {
		uint32_t file = image->mappings.items[i].file;

		while (images->uses.count <= file)
			*vec_push(&images->uses) = 0;
		images->uses.items[file] += each;
	}
}

/* This is called before and after each change of the image's mappings. */
static void uncount(Images *images, Image *image)
{
	if (image->counted)
		add_uses(images, image, -1U);
	image->counted = false;
}

static void count(Images *images, Image *image)
{
	image->counted = !image->ended_ns;
	if (image->counted)
		add_uses(images, image, 1);
}

/*
 * Copies of stacks may still look up what the image mapped, but no stack is walked by it any more.
 */
static void end_image(Images *images, Image *image, uint64_t now_ns)
{
	uncount(images, image);
	image->ended_ns = now_ns;
}

/* ---- images ------------------------------------------------------------------------------- */

static Image *current_image(const Images *images, uint32_t ns_tgid)
{
	uint32_t index = map_get(&images->current, ns_tgid);

	return index == MAP_NONE ? NULL : images->list.items[index];
}

/* Starts a new image by a record of that time; the present image, if there is one, ends. */
static Image *begin_image(Images *images, uint32_t ns_tgid, uint64_t ns, uint64_t now_ns)
{
	Image *image = xcalloc(1, sizeof(*image)), *before = current_image(images, ns_tgid);

	if (before && !before->ended_ns)
		end_image(images, before, now_ns);
	image->ns_tgid = ns_tgid;
	image->uncertain_since_ns = ns <= images->loss_to_ns ? images->loss_from_ns : 0;
	image->changed = true;
	map_set(&images->current, ns_tgid, images->list.count);
	*vec_push(&images->list) = image;
	return image;
}

static Image *get_image(Images *images, uint32_t ns_tgid, uint64_t ns, uint64_t now_ns)
{
	Image *image = current_image(images, ns_tgid);

	return image ? image : begin_image(images, ns_tgid, ns, now_ns);
}

/* ---- BPF's records ----------------------------------------------------------------------- */

/*
 * BPF reports which process this is. Execs may have been reported before; an image without an
 * exec_id counts them. The record is about the image that was there at the record's time.
 */
static void name_images(Images *images, const struct rec_task *task)
{
	size_t last = map_get(&images->current, task->ns_tgid), first = last;
	const Image *of_record = NULL;
	uint32_t execs = task->exec_id;

	for (size_t i = last + 1; i-- > 0;) {
		const Image *image = images->list.items[i];

		if (image->ns_tgid != task->ns_tgid || image->tgid)
			continue;
		first = i;
		if (!of_record && (image->begun_ns <= task->h.ns || image->exec_id == 0))
			of_record = image;
		if (image->exec_id == 0)
			break;
	}
	execs -= of_record ? of_record->exec_id : 0;
	for (size_t i = first; i <= last; i++) {
		Image *image = images->list.items[i];

		if (image->ns_tgid != task->ns_tgid || image->tgid)
			continue;
		image->tgid = task->tgid;
		image->exec_id += execs;
		image->start_boottime = task->start_boottime;
		image->reported_ns = task->h.ns;
		image->changed = true;
	}
}

static void on_task(Images *images, const struct rec_task *task, uint64_t now_ns)
{
	Image *image;

	if (task->h.flags & (TASK_NON_TARGET | TASK_RENAME) || task->tid != task->tgid ||
	    !task->ns_tgid)
		return;
	image = get_image(images, task->ns_tgid, task->h.ns, now_ns);
	if (image->tgid && image->start_boottime == task->start_boottime)
		return;
	if (image->tgid) /* the process id is used again */
		begin_image(images, task->ns_tgid, task->h.ns, now_ns);
	name_images(images, task);
}

/* Returns the current image of a process as BPF names it, or NULL. */
static Image *image_of_tgid(const Images *images, uint32_t tgid)
{
	const Process *process = process_table_find_tgid(images->processes, tgid);
	Image *image = process ? current_image(images, process->ns_tgid) : NULL;

	return image && image->tgid == tgid ? image : NULL;
}

static void on_bpf_exec(Images *images, const struct rec_exec *record)
{
	Image *image = image_of_tgid(images, record->tgid);

	if (!image)
		return;
	image->bpf_exec_id = record->exec_id;
	image->bpf_exec_ns = record->h.ns;
}

static void on_exit_record(Images *images, const struct rec_exit *record, uint64_t now_ns)
{
	Image *image = image_of_tgid(images, record->tgid);

	/* Another process may have the process id already. */
	if (image && image->start_boottime == record->process_start_boottime &&
	    record->h.flags & EXIT_GROUP_DEAD && !image->ended_ns)
		end_image(images, image, now_ns);
}

/* ---- the side-band's --------------------------------------------------------------------- */

static bool is_same(const ImageMapping *a, const ImageMapping *b)
{
	return a->start == b->start && a->last == b->last && a->file == b->file &&
	       a->bias == b->bias;
}

/* Of one image: one with a few thousand at a time replaces code all the time. */
#define PAST_MAX 4096

static void drop_past(PastMappings *past, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < past->count; i++)
		if (past->items[i].to_ns + IMAGES_PAST_NS > now_ns)
			past->items[kept++] = past->items[i];
	past->count = kept;
}

/* Notes that of this mapping the part from start to last was there until then. */
static void add_past(PastMappings *past, const ImageMapping *mapping, uint64_t start, uint64_t last,
		     uint64_t to_ns)
{
	PastMapping *added;

	if (mapping->from_ns >= to_ns)
		return;
	/* The first one is among the oldest: if it stays, all do, and looking takes long. */
	if (past->count == PAST_MAX && past->items[0].to_ns + IMAGES_PAST_NS <= to_ns)
		drop_past(past, to_ns);
	if (past->count == PAST_MAX)
		return;
	added = vec_push(past);
	*added = (PastMapping){*mapping, to_ns};
	added->mapping.pgoff += start - mapping->start;
	added->mapping.start = start;
	added->mapping.last = last;
}

/* A mapping that replaces an identical one counts from the time of the older one. */
static void hide(ImageMapping *top, const ImageMapping *under, PastMappings *past)
{
	if (!is_same(top, under))
		add_past(past, under, MAX(top->start, under->start), MIN(top->last, under->last),
			 top->from_ns);
	top->covered_ns = MAX(top->covered_ns, under->from_ns);
	if (!is_same(top, under) || top->hides) {
		top->hides = true;
		return;
	}
	top->from_ns = under->from_ns;
	top->unpublished = under->unpublished;
	top->hides = under->hides;
}

/* A position in the mappings of a layer; `now` may be a part of one. */
typedef struct Cursor {
	const ImageMapping *next, *end;
	ImageMapping now;
	bool has_now;
} Cursor;

static void advance(Cursor *cursor)
{
	cursor->has_now = cursor->next < cursor->end;
	if (cursor->has_now)
		cursor->now = *cursor->next++;
}

/* Copies what lies before top, and drops what lies under top. */
static void pass_to(Cursor *under, ImageMapping *top, ImageMappings *both, PastMappings *past)
{
	while (under->has_now && under->now.start <= top->last) {
		if (under->now.last < top->start) {
			*vec_push(both) = under->now;
			advance(under);
			continue;
		}
		hide(top, &under->now, past);
		if (under->now.start < top->start) {
			*vec_push(both) = under->now;
			both->items[both->count - 1].last = top->start - 1;
		}
		if (under->now.last > top->last) {
			under->now.pgoff += top->last + 1 - under->now.start;
			under->now.start = top->last + 1;
		} else {
			advance(under);
		}
	}
}

/* Lays the younger mappings over the older ones. Both are sorted by address. O(n). */
static ImageMappings overlay(const ImageMappings *older, const ImageMappings *younger,
			     PastMappings *past)
{
	Cursor under = {.next = older->items, .end = older->items + older->count};
	ImageMappings both = {};

	vec_reserve(&both, older->count + 2 * younger->count);
	advance(&under);
	for (size_t i = 0; i < younger->count; i++) {
		ImageMapping top = younger->items[i];

		pass_to(&under, &top, &both, past);
		*vec_push(&both) = top;
	}
	for (; under.has_now; advance(&under))
		*vec_push(&both) = under.now;
	return both;
}

/* Makes one layer of what was mapped one after another, by merging halves: O(n log n). */
static ImageMappings flatten(const ImageMapping *items, size_t count, PastMappings *past)
{
	ImageMappings first = {}, second, both;

	if (count == 1) {
		*vec_push(&first) = *items;
		return first;
	}
	first = flatten(items, count / 2, past);
	second = flatten(items + count / 2, count - count / 2, past);
	both = overlay(&first, &second, past);
	vec_free(&first);
	vec_free(&second);
	return both;
}

static void apply_pending(Images *images, Image *image)
{
	ImageMappings younger, both;

	if (image->pending.count == 0)
		return;
	younger = flatten(image->pending.items, image->pending.count, &image->past);
	uncount(images, image);
	both = overlay(&image->mappings, &younger, &image->past);
	vec_free(&younger);
	vec_free(&image->mappings);
	image->mappings = both;
	image->pending.count = 0;
	for (size_t i = 0; i < both.count; i++)
		both.items[i].hides = false;
	count(images, image);
}

void images_apply_pending(Images *images)
{
	for (size_t i = 0; i < images->list.count; i++)
		apply_pending(images, images->list.items[i]);
}

void images_mark_changed(Images *images, uint32_t ns_tgid)
{
	Image *image = current_image(images, ns_tgid);

	if (image)
		image->changed = true;
}

bool images_use_file(const Images *images, uint32_t file)
{
	return file < images->uses.count && images->uses.items[file] > 0;
}

/* Replaces the image's mappings. */
static void set_mappings(Images *images, Image *image, const ImageMapping *items, size_t number)
{
	uncount(images, image);
	image->mappings.count = image->pending.count = 0;
	vec_append(&image->mappings, items, number);
	count(images, image);
}

/*
 * Adds a mapping that was found out later (jit_code.h). What has been mapped over it since is
 * younger and stays.
 */
static void add_late(Images *images, Image *image, const ImageMapping *mapping)
{
	ImageMapping left = *mapping;
	size_t next;

	apply_pending(images, image);
	next = partition_point(middle, image->mappings.count,
			       image->mappings.items[middle].last < mapping->start);
	for (; next < image->mappings.count; next++) {
		const ImageMapping *other = &image->mappings.items[next];

		if (other->start > mapping->last)
			break;
		if (other->reported_ns <= mapping->reported_ns)
			continue;
		add_past(&image->past, mapping, MAX(other->start, mapping->start),
			 MIN(other->last, mapping->last), other->reported_ns);
		if (left.start < other->start) {
			*vec_push(&image->pending) = left;
			image->pending.items[image->pending.count - 1].last = other->start - 1;
		}
		if (other->last >= mapping->last)
			return;
		left.start = other->last + 1;
		left.pgoff = mapping->pgoff + (left.start - mapping->start);
	}
	*vec_push(&image->pending) = left;
}

static bool is_late(const Image *image, const ImageMapping *mapping)
{
	if (mapping->reported_ns >= image->latest_ns)
		return false;
	for (size_t i = 0; i < image->pending.count; i++)
		if (image->pending.items[i].reported_ns > mapping->reported_ns &&
		    image->pending.items[i].start <= mapping->last &&
		    mapping->start <= image->pending.items[i].last)
			return true;
	for (size_t i = partition_point(middle, image->mappings.count,
					image->mappings.items[middle].last < mapping->start);
	     i < image->mappings.count && image->mappings.items[i].start <= mapping->last; i++)
		if (image->mappings.items[i].reported_ns > mapping->reported_ns)
			return true;
	return false;
}

static void on_mapping(Images *images, const struct rec_mapping *record, uint64_t now_ns)
{
	Image *image = get_image(images, record->ns_tgid, record->h.ns, now_ns);
	ImageMapping mapping = {
		.start = record->start,
		.last = record->end - 1,
		.bias = record->bias,
		.pgoff = record->pgoff,
		.from_ns = record->h.flags & MAPPING_INITIAL ? 0 : record->h.ns,
		.reported_ns = record->h.ns,
		.file = record->file,
		.unpublished = !(record->h.flags & MAPPING_INITIAL),
	};

	if (mapping.start > mapping.last || !(record->h.flags & MAPPING_EXEC))
		return;
	if (is_late(image, &mapping))
		add_late(images, image, &mapping);
	else
		*vec_push(&image->pending) = mapping;
	image->latest_ns = MAX(image->latest_ns, record->h.ns);
	image->changed = true;
}

/* BPF may have reported the child's process id already, or will do so. */
static void on_fork(Images *images, const struct rec_space *record, uint64_t now_ns)
{
	Image *child = get_image(images, record->ns_tgid, record->h.ns, now_ns);
	Image *parent = current_image(images, record->ns_parent);
	uint64_t past_ns = MAX(child->latest_ns, child->reported_ns);

	/* What was there before the fork is another process that had the same id. */
	if (past_ns && past_ns < record->h.ns)
		child = begin_image(images, record->ns_tgid, record->h.ns, now_ns);
	child->latest_ns = child->created_ns = record->h.ns;
	child->changed = true;
	if (!parent) {
		set_mappings(images, child, NULL, 0);
		return;
	}
	apply_pending(images, parent);
	set_mappings(images, child, parent->mappings.items, parent->mappings.count);
	child->uncertain_since_ns = parent->uncertain_since_ns;
	for (size_t i = 0; i < child->mappings.count; i++)
		child->mappings.items[i].unpublished =
			false; /* the delay is counted from the child's own mmap on */
}

/*
 * A stack that was walked while mappings were uncertain may have seen this one, or its predecessor.
 */
static void note_found(Images *images, const Image *image, const ImageMapping *mapping)
{
	uint64_t after_ns =
		MAX(image->uncertain_since_ns, MAX(image->created_ns, mapping->covered_ns));

	*vec_push(&images->found) = (struct rec_mapping){
		.h = {.len = sizeof(struct rec_mapping),
		      .kind = REC_MAPPING,
		      .flags = MAPPING_EXEC,
		      .ns = MIN(after_ns + 1, mapping->from_ns)},
		.ns_tgid = image->ns_tgid,
		.file = mapping->file,
		.start = mapping->start,
		.end = mapping->last + 1,
		.pgoff = mapping->pgoff,
		.bias = mapping->bias,
	};
}

/* All that the process maps was just reported again: what is older is gone. */
static void on_read_space(Images *images, const struct rec_space *record)
{
	Image *image = current_image(images, record->ns_tgid);
	size_t kept = 0;

	if (!image)
		return;
	apply_pending(images, image);
	uncount(images, image);
	for (size_t i = 0; i < image->mappings.count; i++) {
		const ImageMapping *mapping = &image->mappings.items[i];

		if (mapping->reported_ns != record->h.ns)
			continue;
		if (image->uncertain_since_ns && mapping->from_ns == record->h.ns)
			note_found(images, image, mapping);
		image->mappings.items[kept++] = *mapping;
	}
	image->mappings.count = kept;
	count(images, image);
	image->uncertain_since_ns = 0;
	image->changed = true;
}

/* The lost records can be of any process. */
static void on_loss(Images *images, const struct rec_loss *record)
{
	if (record->lost_kind != REC_MAPPING)
		return;
	images->loss_from_ns = record->from_ns;
	images->loss_to_ns = MAX(images->loss_to_ns, record->to_ns);
	for (size_t i = 0; i < images->list.count; i++) {
		Image *image = images->list.items[i];

		if (!image->uncertain_since_ns || image->uncertain_since_ns > record->from_ns)
			image->uncertain_since_ns = record->from_ns;
	}
}

static void on_exec(Images *images, const struct rec_space *record, uint64_t now_ns)
{
	Image *before = get_image(images, record->ns_tgid, record->h.ns, now_ns), *image;
	uint64_t ended_ns = before->ended_ns;

	image = begin_image(images, record->ns_tgid, record->h.ns, now_ns);
	image->tgid = before->tgid;
	image->start_boottime = before->start_boottime;
	image->reported_ns = before->reported_ns;
	image->bpf_exec_id = before->bpf_exec_id;
	image->bpf_exec_ns = before->bpf_exec_ns;
	image->begun_ns = image->created_ns = record->h.ns;
	/*
	 * Inside of a loss: the image began without mappings, but records of later ones may be
	 * lost.
	 */
	if (image->uncertain_since_ns)
		image->uncertain_since_ns = record->h.ns;
	/* The exec_id is counted as the kernel does. BPF may have read it after this exec. */
	if (before->tgid && record->h.ns <= before->reported_ns)
		image->exec_id = before->exec_id--;
	else
		image->exec_id = before->exec_id + 1;
	image->latest_ns = record->h.ns;
	image->ended_ns = ended_ns; /* BPF may have reported the end already */
}

void images_on_record(Images *images, const struct record *record, uint64_t now_ns)
{
	switch (record->kind) {
	case REC_TASK:
		on_task(images, (const struct rec_task *)record, now_ns);
		break;
	case REC_EXEC:
		on_bpf_exec(images, (const struct rec_exec *)record);
		break;
	case REC_EXIT:
		on_exit_record(images, (const struct rec_exit *)record, now_ns);
		break;
	case REC_MAPPING:
		on_mapping(images, (const struct rec_mapping *)record, now_ns);
		break;
	case REC_SPACE:
		if (record->flags & SPACE_FORK)
			on_fork(images, (const struct rec_space *)record, now_ns);
		else if (record->flags & SPACE_EXEC)
			on_exec(images, (const struct rec_space *)record, now_ns);
		else if (record->flags & SPACE_READ)
			on_read_space(images, (const struct rec_space *)record);
		break;
	case REC_LOSS:
		on_loss(images, (const struct rec_loss *)record);
		break;
	}
}

/* The number of execs that BPF has reported and the side-band has not. */
static int32_t missing_execs(const Image *image)
{
	return image->bpf_exec_ns ? (int32_t)(image->bpf_exec_id - image->exec_id) : INT32_MIN;
}

bool image_is_ready(const Image *image, uint64_t watermark_ns, uint64_t now_ns)
{
	if (!image->tgid || image->ended_ns || image->reported_ns > watermark_ns ||
	    missing_execs(image) > 0)
		return false;
	return !image->begun_ns || image->reported_ns >= image->begun_ns ||
	       missing_execs(image) == 0 || now_ns > image->begun_ns + EXEC_TIMEOUT_NS;
}

void images_correct(Images *images, uint64_t watermark_ns,
		    void (*corrected)(void *user, const Image *image), void *user)
{
	for (size_t i = 0; i < images->list.count; i++) {
		Image *image = images->list.items[i];

		if (image->ended_ns || !image->tgid || missing_execs(image) <= 0 ||
		    watermark_ns < image->bpf_exec_ns + EXEC_TIMEOUT_NS)
			continue;
		image->exec_id = image->bpf_exec_id;
		image->changed = true;
		set_mappings(images, image, NULL, 0);
		corrected(user, image);
	}
}

/* ---- queries --------------------------------------------------------------------------------- */

Image *images_find(const Images *images, uint32_t tgid, uint64_t start_boottime, uint32_t exec_id)
{
	for (size_t i = images->list.count; i-- > 0;) {
		Image *image = images->list.items[i];

		if (image->tgid == tgid && image->start_boottime == start_boottime &&
		    image->exec_id == exec_id)
			return image;
	}
	return NULL;
}

const ImageMapping *image_find(const Image *image, uint64_t avma)
{
	size_t next = partition_point(middle, image->mappings.count,
				      image->mappings.items[middle].start <= avma);

	if (next == 0 || image->mappings.items[next - 1].last < avma)
		return NULL;
	return &image->mappings.items[next - 1];
}

const ImageMapping *image_find_at(const Image *image, uint64_t avma, uint64_t ns)
{
	const ImageMapping *now = image_find(image, avma);

	if (now && now->reported_ns <= ns)
		return now;
	for (size_t i = image->past.count; i-- > 0;) {
		const PastMapping *past = &image->past.items[i];

		if (past->mapping.start <= avma && avma <= past->mapping.last &&
		    past->mapping.from_ns <= ns && ns < past->to_ns)
			return &past->mapping;
	}
	/* It is as old as an identical one, which it replaced, or was only reported again. */
	return now && now->from_ns <= ns ? now : NULL;
}

void images_drop_ended(Images *images, uint64_t ns, void (*forget)(void *user, Image *image),
		       void *user)
{
	size_t kept = 0;

	for (size_t i = 0; i < images->list.count; i++) {
		Image *image = images->list.items[i];

		if (!image->ended_ns || image->ended_ns >= ns) {
			images->list.items[kept++] = image;
			continue;
		}
		if (forget)
			forget(user, image);
		image_free(image);
	}
	if (kept == images->list.count)
		return;
	images->list.count = kept;
	map_free(&images->current);
	for (size_t i = 0; i < kept; i++)
		map_set(&images->current, images->list.items[i]->ns_tgid, i);
}
