/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_images.h"
#include <string.h>

/* How long after an exec both BPF and the side-band have told of it, if they do. */
#define EXEC_PATIENCE_NS (100 * NSEC_PER_MSEC)

static void image_free(Image *image)
{
	vec_free(&image->mappings);
	free(image);
}

void images_free(Images *images)
{
	for (size_t i = 0; i < images->list.count; i++)
		image_free(images->list.items[i]);
	vec_free(&images->list);
	map_free(&images->current);
	map_free(&images->by_tgid);
}

static Image *current_image(const Images *images, uint32_t ns_tgid)
{
	uint32_t number = map_get(&images->current, ns_tgid);

	return number == MAP_NONE ? NULL : images->list.items[number];
}

/* A new one in the place of the present one, if there is one. */
static Image *begin_image(Images *images, uint32_t ns_tgid, uint64_t now_ns)
{
	Image *image = xcalloc(1, sizeof(*image)), *before = current_image(images, ns_tgid);

	if (before && !before->ended_ns)
		before->ended_ns = now_ns;
	image->ns_tgid = ns_tgid;
	image->changed = true;
	map_set(&images->current, ns_tgid, images->list.count);
	*vec_push(&images->list) = image;
	return image;
}

static Image *get_image(Images *images, uint32_t ns_tgid, uint64_t now_ns)
{
	Image *image = current_image(images, ns_tgid);

	return image ? image : begin_image(images, ns_tgid, now_ns);
}

/* ---- BPF's records ----------------------------------------------------------------------- */

/*
 * BPF's word on which process this is. Execs may have been told before it; an image that has no
 * number yet counts them. The record is about the image that was there at its time.
 */
static void name_images(Images *images, const struct rec_task *task)
{
	size_t last = map_get(&images->current, task->ns_tgid), first = last;
	const Image *of_record = NULL;
	uint32_t number = task->exec_id;

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
	number -= of_record ? of_record->exec_id : 0;
	for (size_t i = first; i <= last; i++) {
		Image *image = images->list.items[i];

		if (image->ns_tgid != task->ns_tgid || image->tgid)
			continue;
		image->tgid = task->tgid;
		image->exec_id += number;
		image->start_boottime = task->start_boottime;
		image->told_ns = task->h.ns;
		image->changed = true;
	}
}

static void take_task(Images *images, const struct rec_task *task, uint64_t now_ns)
{
	Image *image;

	if (task->h.flags & (TASK_FOREIGN | TASK_RENAME) || task->tid != task->tgid ||
	    !task->ns_tgid)
		return;
	image = get_image(images, task->ns_tgid, now_ns);
	if (image->tgid && image->start_boottime == task->start_boottime)
		return;
	if (image->tgid) /* a number used again */
		begin_image(images, task->ns_tgid, now_ns);
	name_images(images, task);
	map_set(&images->by_tgid, task->tgid, task->ns_tgid);
}

static void take_exec_told(Images *images, const struct rec_exec *record)
{
	uint32_t ns_tgid = map_get(&images->by_tgid, record->tgid);
	Image *image = ns_tgid == MAP_NONE ? NULL : current_image(images, ns_tgid);

	if (!image || image->tgid != record->tgid)
		return;
	image->exec_told = record->exec_id;
	image->exec_told_ns = record->h.ns;
}

static void take_exit(Images *images, const struct rec_exit *record, uint64_t now_ns)
{
	uint32_t ns_tgid = map_get(&images->by_tgid, record->tgid);
	Image *image = ns_tgid == MAP_NONE ? NULL : current_image(images, ns_tgid);

	if (image && image->tgid == record->tgid && record->h.flags & EXIT_GROUP_DEAD &&
	    !image->ended_ns)
		image->ended_ns = now_ns;
}

/* ---- the side-band's --------------------------------------------------------------------- */

/* What lies in [start, last] is no more: cut out of what was there. */
static void clear_range(Image *image, uint64_t start, uint64_t last)
{
	size_t count = image->mappings.count, kept = 0;
	VEC(ImageMapping) behind = {};

	for (size_t i = 0; i < count; i++) {
		ImageMapping mapping = image->mappings.items[i];

		if (mapping.last < start || mapping.start > last) {
			image->mappings.items[kept++] = mapping;
			continue;
		}
		if (mapping.last > last) {
			*vec_push(&behind) = mapping;
			behind.items[behind.count - 1].start = last + 1;
		}
		if (mapping.start < start) {
			mapping.last = start - 1;
			image->mappings.items[kept++] = mapping;
		}
	}
	image->mappings.count = kept;
	if (behind.count) { /* one at most: they do not overlap */
		size_t at = kept;

		vec_push(&image->mappings);
		while (at > 0 && image->mappings.items[at - 1].start > last) {
			image->mappings.items[at] = image->mappings.items[at - 1];
			at--;
		}
		image->mappings.items[at] = behind.items[0];
	}
	vec_free(&behind);
}

static void take_mapping(Images *images, const struct rec_mapping *record, uint64_t now_ns)
{
	Image *image = get_image(images, record->ns_tgid, now_ns);
	ImageMapping mapping = {
		.start = record->start,
		.last = record->end - 1,
		.bias = record->bias,
		.from_ns = record->h.flags & MAPPING_INITIAL ? 0 : record->h.ns,
		.file = record->file,
		.awaits = !(record->h.flags & MAPPING_INITIAL),
	};
	size_t at;

	if (mapping.start > mapping.last || !(record->h.flags & MAPPING_EXEC))
		return;
	clear_range(image, mapping.start, mapping.last);
	at = image->mappings.count;
	vec_push(&image->mappings);
	while (at > 0 && image->mappings.items[at - 1].start > mapping.start) {
		image->mappings.items[at] = image->mappings.items[at - 1];
		at--;
	}
	image->mappings.items[at] = mapping;
	image->latest_ns = MAX(image->latest_ns, record->h.ns);
	image->changed = true;
}

/* The child's number may be known from BPF by now, or will be. */
static void take_fork(Images *images, const struct rec_space *record, uint64_t now_ns)
{
	Image *child = get_image(images, record->ns_tgid, now_ns);
	const Image *parent = current_image(images, record->ns_parent);
	uint64_t past_ns = MAX(child->latest_ns, child->told_ns);

	/* What was there before the fork is another process, which had the number. */
	if (past_ns && past_ns < record->h.ns)
		child = begin_image(images, record->ns_tgid, now_ns);
	child->mappings.count = 0;
	child->latest_ns = record->h.ns;
	child->changed = true;
	if (parent)
		vec_append(&child->mappings, parent->mappings.items, parent->mappings.count);
	for (size_t i = 0; i < child->mappings.count; i++)
		child->mappings.items[i].awaits = false; /* not from its own mmap on */
}

static void take_exec(Images *images, const struct rec_space *record, uint64_t now_ns)
{
	Image *before = get_image(images, record->ns_tgid, now_ns), *image;
	uint64_t ended_ns = before->ended_ns;

	image = begin_image(images, record->ns_tgid, now_ns);
	image->tgid = before->tgid;
	image->start_boottime = before->start_boottime;
	image->told_ns = before->told_ns;
	image->exec_told = before->exec_told;
	image->exec_told_ns = before->exec_told_ns;
	image->begun_ns = record->h.ns;
	/* As the kernel counts. But BPF may have asked it after this exec. */
	if (before->tgid && record->h.ns <= before->told_ns)
		image->exec_id = before->exec_id--;
	else
		image->exec_id = before->exec_id + 1;
	image->latest_ns = record->h.ns;
	image->ended_ns = ended_ns; /* BPF may have told the end already */
}

void images_take(Images *images, const struct record *record, uint64_t now_ns)
{
	switch (record->kind) {
	case REC_TASK:
		take_task(images, (const struct rec_task *)record, now_ns);
		break;
	case REC_EXEC:
		take_exec_told(images, (const struct rec_exec *)record);
		break;
	case REC_EXIT:
		take_exit(images, (const struct rec_exit *)record, now_ns);
		break;
	case REC_MAPPING:
		take_mapping(images, (const struct rec_mapping *)record, now_ns);
		break;
	case REC_SPACE:
		if (record->flags & SPACE_FORK)
			take_fork(images, (const struct rec_space *)record, now_ns);
		else if (record->flags & SPACE_EXEC)
			take_exec(images, (const struct rec_space *)record, now_ns);
		break;
	}
}

/* How many execs the side-band is behind BPF. */
static int32_t execs_behind(const Image *image)
{
	return image->exec_told_ns ? (int32_t)(image->exec_told - image->exec_id) : INT32_MIN;
}

bool image_has_begun(const Image *image, uint64_t now_ns)
{
	return !image->begun_ns || image->told_ns >= image->begun_ns || execs_behind(image) >= 0 ||
	       now_ns > image->begun_ns + EXEC_PATIENCE_NS;
}

size_t images_correct(Images *images, uint64_t known_ns)
{
	size_t corrected = 0;

	for (size_t i = 0; i < images->list.count; i++) {
		Image *image = images->list.items[i];

		if (image->ended_ns || !image->tgid || execs_behind(image) <= 0 ||
		    known_ns < image->exec_told_ns + EXEC_PATIENCE_NS)
			continue;
		image->exec_id = image->exec_told;
		image->mappings.count = 0;
		image->changed = true;
		corrected++;
	}
	return corrected;
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
	size_t low = 0, high = image->mappings.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (image->mappings.items[middle].start <= avma)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || image->mappings.items[low - 1].last < avma)
		return NULL;
	return &image->mappings.items[low - 1];
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
