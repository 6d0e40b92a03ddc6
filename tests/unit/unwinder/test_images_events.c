/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes' mappings where events are missing or reported twice; and what many of them cost. */
#include "address_space.h"
#include "test_tools.h"
#include <time.h>

#include "images_fixture.h"

static void test_mapped_again(void **state)
{
	Images images = empty_images();
	const Image *image;

	(void)state;
	give_mapping(&images, 5, NS_TGID, 1, 0x1000, 0x3000);
	give_mapping(&images, 7, NS_TGID, 1, 0x1000, 0x3000); /* as it was: since 5 */
	image = only_image(&images);
	assert_int_equal(image->mappings.count, 1);
	assert_int_equal(image->mappings.items[0].from_ns, 5);
	assert_int_equal(image->mappings.items[0].reported_ns, 7);
	/* Something else was there in between, which was not looked at: since 9. */
	images_give(&images, make_mapping(8, MAPPING_EXEC, NS_TGID, 2, 0x2000, 0x3000, 0x2000), 8);
	images_give(&images, make_mapping(9, MAPPING_EXEC, NS_TGID, 1, 0x1000, 0x3000, 0x1000), 9);
	image = only_image(&images);
	assert_int_equal(image->mappings.count, 1);
	assert_int_equal(image->mappings.items[0].from_ns, 9);
	give_mapping(&images, 10, NS_TGID, 1, 0x1000, 0x3000);
	assert_int_equal(image->mappings.items[0].from_ns, 9);
	/* Another part of the file at that place. */
	images_give(&images, make_mapping(11, MAPPING_EXEC, NS_TGID, 1, 0x1000, 0x3000, 0), 11);
	assert_int_equal(only_image(&images)->mappings.items[0].from_ns, 11);
	images_free(&images);
}

static struct record *make_loss(uint32_t kind, uint64_t from_ns, uint64_t to_ns)
{
	struct rec_loss *record = make_record(REC_LOSS, 0, to_ns, sizeof(*record), NULL, 0);

	record->lost_kind = kind;
	record->cause = LOSS_SIDEBAND;
	record->from_ns = from_ns;
	record->to_ns = to_ns;
	return &record->h;
}

/* The processes of some lost mappings are unknown until they are read again. */
static void test_loss(void **state)
{
	Images images = empty_images();
	const Image *image;

	(void)state;
	give_task(&images, 1, NS_TGID, 1, BORN);
	give_mapping(&images, 2, NS_TGID, 1, 0x1000, 0x2000);
	give_mapping(&images, 2, NS_TGID, 2, 0x2000, 0x3000);
	image = only_image(&images);
	images_give(&images, make_loss(REC_SWITCH, 5, 6), 6);
	assert_int_equal(image->uncertain_since_ns, 0);
	images_give(&images, make_loss(REC_MAPPING, 10, 20), 20);
	assert_int_equal(image->uncertain_since_ns, 10);
	images_give(&images, make_loss(REC_MAPPING, 20, 30), 30);
	assert_int_equal(image->uncertain_since_ns, 10);
	give_fork(&images, 25, 11, NS_TGID);
	give_task(&images, 25, 11, 1, BORN + 1);
	assert_int_equal(images_find(&images, 1011, BORN + 1, 1)->uncertain_since_ns, 10);
	/* The first is there still, the second is gone, the third came unseen. */
	give_mapping(&images, 40, NS_TGID, 1, 0x1000, 0x2000);
	give_mapping(&images, 40, NS_TGID, 3, 0x5000, 0x6000);
	images_give(&images, make_space(40, SPACE_READ, NS_TGID, 0), 40);
	assert_int_equal(image->uncertain_since_ns, 0);
	assert_int_equal(image->mappings.count, 2);
	assert_mapping(image, 0, 1, 0x1000, 0x1fff);
	assert_int_equal(image->mappings.items[0].from_ns, 2);
	assert_mapping(image, 1, 3, 0x5000, 0x5fff);
	assert_int_equal(image->mappings.items[1].from_ns, 40);
	assert_false(images_use_file(&images, 3 + 1));
	assert_true(images_use_file(&images, 2)); /* by the child, which was not read */
	assert_int_equal(images_find(&images, 1011, BORN + 1, 1)->uncertain_since_ns, 10);
	images_free(&images);
}

/* The reader of a capture, which sees the records in the order of their times. */
static AddressSpaces *spaces_of(struct record **records, size_t count, const Images *images,
				bool with_found)
{
	AddressSpaces *spaces = address_spaces_new();
	VEC(const struct record *) all = {};

	for (uint32_t id = 1; id <= 5; id++) {
		struct record *file = make_file(id, 0, "/lib/libfoo.so", 0);

		address_spaces_add(spaces, file);
		free(file);
	}
	for (size_t i = 0; i < count; i++)
		*vec_push(&all) = records[i];
	for (size_t i = 0; with_found && i < images->found.count; i++)
		*vec_push(&all) = &images->found.items[i].h;
	for (uint64_t ns = 1; ns <= 100; ns++)
		for (size_t i = 0; i < all.count; i++)
			if (all.items[i]->ns == ns)
				address_spaces_add(spaces, all.items[i]);
	vec_free(&all);
	return spaces;
}

#define WAS 0x1000 /* where the first is all the time, */
#define NOW 0x2000 /* where something was lost, */
#define NEW 0x5000 /* where nothing was before */

/*
 * A walk that knew what was mapped until the loss: of what it found where a reading finds
 * something else it is unknown whether it was still there. By a process's own time.
 */
static void check_found(uint64_t created_ns, int made, uint64_t since)
{
	struct record *records[] = {
		make_mapping(2, MAPPING_EXEC, NS_TGID, 1, WAS, WAS + 0x1000, WAS),
		make_mapping(2, MAPPING_EXEC, NS_TGID, 2, NOW, NOW + 0x1000, NOW),
		make_space(created_ns, made, made == SPACE_FORK ? 11 : NS_TGID,
			   made == SPACE_FORK ? NS_TGID : 0),
		make_mapping(18, MAPPING_EXEC, 11, 5, NEW + 0x3000, NEW + 0x4000, NEW),
		make_mapping(40, MAPPING_EXEC, 11, 1, WAS, WAS + 0x1000, WAS),
		make_mapping(40, MAPPING_EXEC, 11, 3, NOW, NOW + 0x1000, NOW),
		make_mapping(40, MAPPING_EXEC, 11, 4, NEW, NEW + 0x1000, NEW),
		make_space(40, SPACE_READ, 11, 0),
	};
	uint32_t number = made == SPACE_FORK ? 11 : NS_TGID;
	Images images = empty_images();
	AddressSpaces *spaces;

	for (size_t i = 0; i < ARRAY_LEN(records); i++) {
		if (i == 3)
			images_give(&images, make_loss(REC_MAPPING, 10, 20), 20);
		/* An event of the other process says nothing of this one. */
		if (i >= 3 && records[i]->kind == REC_MAPPING)
			((struct rec_mapping *)records[i])->ns_tgid = number;
		if (i == 7)
			((struct rec_space *)records[i])->ns_tgid = number;
		images_on_record(&images, records[i], records[i]->ns);
	}
	assert_int_equal(images.found.count, made == SPACE_EXEC ? 3 : 2);
	for (size_t i = 0; i < images.found.count; i++) {
		assert_int_equal(images.found.items[i].h.ns, since);
		assert_int_equal(images.found.items[i].ns_tgid, number);
	}
	spaces = spaces_of(records, ARRAY_LEN(records), &images, true);
	if (made == SPACE_FORK) {
		assert_true(address_spaces_replaced(spaces, number, 10, since, NOW));
		assert_false(address_spaces_replaced(spaces, number, 10, 39, WAS));
		assert_false(address_spaces_replaced(spaces, number, since, 60, NOW));
	}
	assert_int_equal(address_spaces_locate(spaces, number, since, NOW).file->id, 3);
	assert_int_equal(address_spaces_locate(spaces, number, since, NEW).file->id, 4);
	address_spaces_free(spaces);
	spaces = spaces_of(records, ARRAY_LEN(records), &images, false);
	assert_null(address_spaces_locate(spaces, number, since, NEW).file);
	address_spaces_free(spaces);
	images_free(&images);
	for (size_t i = 0; i < ARRAY_LEN(records); i++)
		free(records[i]);
}

static void test_found(void **state)
{
	(void)state;
	check_found(5, SPACE_FORK, 11);
	check_found(15, SPACE_FORK, 16);
	check_found(15, SPACE_EXEC, 16);
}

/* What it lies over was reported when something else had been lost already. */
static void test_found_over_told(void **state)
{
	struct record *records[] = {
		make_mapping(2, MAPPING_EXEC, NS_TGID, 1, WAS, WAS + 0x1000, WAS),
		make_mapping(14, MAPPING_EXEC, NS_TGID, 2, NOW, NOW + 0x1000, NOW),
		make_mapping(40, MAPPING_EXEC, NS_TGID, 1, WAS, WAS + 0x1000, WAS),
		make_mapping(40, MAPPING_EXEC, NS_TGID, 3, NOW, NOW + 0x2000, NOW),
		make_space(40, SPACE_READ, NS_TGID, 0),
	};
	Images images = empty_images();
	AddressSpaces *spaces;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(records); i++) {
		images_on_record(&images, records[i], records[i]->ns);
		images_apply_pending(&images);
		if (i == 0) /* the doubt is about an image that is there */
			images_give(&images, make_loss(REC_MAPPING, 10, 20), 20);
	}
	assert_int_equal(images.found.count, 1);
	spaces = spaces_of(records, ARRAY_LEN(records), &images, true);
	assert_int_equal(address_spaces_locate(spaces, NS_TGID, 14, NOW).file->id, 2);
	assert_int_equal(address_spaces_locate(spaces, NS_TGID, 15, NOW).file->id, 3);
	assert_true(address_spaces_replaced(spaces, NS_TGID, 10, 15, NOW));
	address_spaces_free(spaces);
	images_free(&images);
	for (size_t i = 0; i < ARRAY_LEN(records); i++)
		free(records[i]);
}

static void note_corrected(void *user, const Image *image)
{
	*(uint64_t *)user = image->bpf_exec_ns;
}

/* An exec that BPF has reported, and the side-band has not long after. */
static void test_lost_exec(void **state)
{
	const uint64_t reported = NSEC_PER_SEC, late = reported + 100 * NSEC_PER_MSEC;
	struct rec_exec *record = make_record(REC_EXEC, 0, reported, sizeof(*record), NULL, 0);
	Images images = empty_images();
	const Image *image;
	uint64_t corrected = 0;

	(void)state;
	give_task(&images, 1, NS_TGID, 1, BORN);
	give_mapping(&images, 2, NS_TGID, 1, 0x1000, 0x2000);
	image = only_image(&images);
	assert_true(image_is_ready(image, 2, 2));
	record->tid = record->tgid = TGID;
	record->exec_id = 2;
	images_give(&images, &record->h, reported);
	assert_false(image_is_ready(image, reported,
				    reported)); /* BPF's own entry is the new program's */
	images_correct(&images, late - 1, note_corrected, &corrected);
	assert_int_equal(corrected, 0);
	images_correct(&images, late, note_corrected, &corrected);
	assert_int_equal(corrected, reported);
	assert_int_equal(image->exec_id, 2);
	assert_int_equal(image->mappings.count, 0);
	assert_false(images_use_file(&images, 1));
	assert_true(image_is_ready(image, late, late));
	images_free(&images);
}

/* A fork that is reported later than BPF's birth is older than that. */
static void test_ready(void **state)
{
	Images images = empty_images();
	const Image *image;

	(void)state;
	give_task(&images, 10, NS_TGID, 1, BORN);
	image = only_image(&images);
	assert_false(image_is_ready(image, 9, 100));
	assert_true(image_is_ready(image, 10, 100));
	give_exit(&images, 20, NS_TGID, EXIT_GROUP_DEAD);
	assert_false(image_is_ready(image, 30, 100));
	images_free(&images);
}

/* ---- what it costs ------------------------------------------------------------------------- */

#define COST_ROUNDS 20 /* in which mappings come */

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

/* The cost of so many mappings at random addresses, some of which overlap; the least of some tries.
 */
static uint64_t cost_of(uint32_t count)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		Images images = empty_images();
		uint64_t begin;
		VEC(struct record *) records = {};

		for (uint32_t j = 0; j < count; j++) {
			uint64_t start = random_below(8 * count) << 12;

			*vec_push(&records) = make_mapping(j + 1, MAPPING_EXEC, NS_TGID, j % 100,
							   start, start + 0x2000, start);
		}
		begin = cpu_ns();
		for (uint32_t j = 0; j < count; j++) {
			images_on_record(&images, records.items[j], j);
			if (j % (count / COST_ROUNDS) == 0)
				images_apply_pending(&images);
		}
		images_apply_pending(&images);
		least = MIN(least, cpu_ns() - begin);
		assert_true(only_image(&images)->mappings.count > count / 2);
		for (uint32_t j = 0; j < count; j++)
			free(records.items[j]);
		vec_free(&records);
		images_free(&images);
	}
	return least;
}

/* Four times as many cost some four times as much, or more if they lack room in a cache. */
static void test_cost(void **state)
{
	uint64_t few = cost_of(15000), many = cost_of(60000);

	(void)state;
	print_message("%.1f ms of 15,000 mappings, %.1f ms of 60,000\n", few / 1e6, many / 1e6);
	assert_true(many < 12 * few);
}

/* ---- what was mapped before ------------------------------------------------------------- */

static uint32_t file_then(const Image *image, uint64_t avma, uint64_t ns)
{
	const ImageMapping *mapping = image_find_at(image, avma, ns);

	return mapping ? mapping->file : 0;
}

/* Stacks that were taken earlier are walked by what was mapped then. */
static void test_past(void **state)
{
	Images images = empty_images();
	struct record *younger;
	const Image *image;

	(void)state;
	give_mapping(&images, 10, NS_TGID, 1, 0x1000, 0x5000);
	give_mapping(&images, 20, NS_TGID, 2, 0x2000, 0x3000);
	image = only_image(&images);
	assert_int_equal(file_then(image, 0x2000, 9), 0);
	assert_int_equal(file_then(image, 0x2000, 19), 1);
	assert_int_equal(file_then(image, 0x2fff, 20), 2);
	assert_int_equal(file_then(image, 0x3000, 19), 1);
	/* It was found out late, and is older than what lies in its middle. */
	give_mapping(&images, 15, NS_TGID, 3, 0x1800, 0x4000);
	assert_int_equal(file_then(image, 0x2000, 14), 1);
	assert_int_equal(file_then(image, 0x2000, 15), 3);
	assert_int_equal(file_then(image, 0x2000, 20), 2);
	assert_int_equal(file_then(image, 0x1800, 14), 1);
	assert_int_equal(file_then(image, 0x1800, 20), 3);
	assert_int_equal(file_then(image, 0x3fff, 20), 3);
	assert_int_equal(file_then(image, 0x4000, 20), 1);
	assert_int_equal(image->mappings.count, 5);
	/* Late, and all of it is replaced already, by one that is not applied yet. */
	younger = make_mapping(30, MAPPING_EXEC, NS_TGID, 4, 0x8000, 0x9000, 0);
	images_on_record(&images, younger, 30);
	free(younger);
	give_mapping(&images, 25, NS_TGID, 5, 0x8000, 0x9000);
	assert_int_equal(file_then(image, 0x8000, 24), 0);
	assert_int_equal(file_then(image, 0x8000, 29), 5);
	assert_int_equal(file_then(image, 0x8000, 30), 4);
	images_free(&images);
}

/* Of two like mappings, one after another, which count as one, the first had what is found out. */
static void test_past_alike(void **state)
{
	Images images = empty_images();
	const Image *image;

	(void)state;
	give_mapping(&images, 10, NS_TGID, 1, 0x1000, 0x2000);
	give_mapping(&images, 20, NS_TGID, 1, 0x1000, 0x2000);
	give_mapping(&images, 10, NS_TGID, 2, 0x1000, 0x1800);
	image = only_image(&images);
	assert_int_equal(file_then(image, 0x1000, 19), 2);
	assert_int_equal(file_then(image, 0x1000, 20), 1);
	assert_int_equal(file_then(image, 0x1800, 10), 1);
	assert_int_equal(file_then(image, 0x1800, 9), 0);
	assert_int_equal(image->mappings.count, 1);
	images_free(&images);
}

/* Processes that replace code all the time: what is old is dropped first. */
static void test_past_limit(void **state)
{
	Images images = empty_images();
	const Image *image;

	(void)state;
	for (uint32_t i = 1; i < 10000; i++)
		give_mapping(&images, i * NSEC_PER_MSEC, NS_TGID, i, 0x1000, 0x2000);
	image = only_image(&images);
	assert_true(image->past.count > 1000 && image->past.count < 6000);
	assert_int_equal(file_then(image, 0x1000, 9000 * NSEC_PER_MSEC), 9000);
	assert_int_equal(file_then(image, 0x1000, 10 * NSEC_PER_MSEC), 0);
	images_free(&images);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_past),
		cmocka_unit_test(test_past_alike),
		cmocka_unit_test(test_past_limit),
		cmocka_unit_test(test_mapped_again),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_found_over_told),
		cmocka_unit_test(test_lost_exec),
		cmocka_unit_test(test_ready),
		cmocka_unit_test(test_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
