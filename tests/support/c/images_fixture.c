/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "images_fixture.h"
#include "test_tools.h"

static ProcessTable process_table;

Images empty_images(void)
{
	process_table_free(&process_table);
	return (Images){.processes = &process_table};
}

void images_give(Images *images, struct record *record, uint64_t now)
{
	if (record->kind == REC_TASK)
		process_table_describe(&process_table, (const struct rec_task *)record);
	images_on_record(images, record, now);
	free(record);
}

void give_task(Images *images, uint64_t ns, uint32_t number, uint32_t exec_id, uint64_t born)
{
	struct record *record = make_task(number + 1000, number + 1000, number);
	struct rec_task *task = (struct rec_task *)record;

	record->ns = ns;
	task->exec_id = exec_id;
	task->start_boottime = born;
	images_give(images, record, ns);
}

void give_exit(Images *images, uint64_t now, uint32_t number, int flags)
{
	struct rec_exit *record = make_record(REC_EXIT, flags, now, sizeof(*record), NULL, 0);

	uint32_t place = map_get(&images->current, number);

	record->tid = record->tgid = number + 1000;
	if (place != MAP_NONE)
		record->process_start_boottime = images->list.items[place]->start_boottime;
	images_give(images, &record->h, now);
}

void give_mapping(Images *images, uint64_t ns, uint32_t number, uint32_t file, uint64_t start,
		  uint64_t end)
{
	images_give(images, make_mapping(ns, MAPPING_EXEC, number, file, start, end, start), ns);
	images_apply_pending(images);
}

void give_fork(Images *images, uint64_t ns, uint32_t number, uint32_t parent)
{
	images_give(images, make_space(ns, SPACE_FORK, number, parent), ns);
}

void give_exec(Images *images, uint64_t ns, uint32_t number)
{
	images_give(images, make_space(ns, SPACE_EXEC, number, 0), ns);
}

uint32_t file_at(const Images *images, uint32_t number, uint64_t born, uint32_t exec_id,
		 uint64_t avma)
{
	const Image *image = images_find(images, number + 1000, born, exec_id);
	const ImageMapping *mapping = image ? image_find(image, avma) : NULL;

	assert_non_null(image);
	return mapping ? mapping->file : 0;
}

const Image *only_image(Images *images)
{
	images_apply_pending(images);
	assert_int_equal(images->list.count, 1);
	return images->list.items[0];
}

void assert_mapping(const Image *image, size_t number, uint32_t file, uint64_t start, uint64_t last)
{
	assert_true(number < image->mappings.count);
	assert_int_equal(image->mappings.items[number].file, file);
	assert_int_equal(image->mappings.items[number].start, start);
	assert_int_equal(image->mappings.items[number].last, last);
}
