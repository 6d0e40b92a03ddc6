/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes' mappings where more or less is told than once of each; and what many of them cost. */
#include "test_tools.h"
#include <time.h>

#include "give_images.h"

static void test_mapped_again(void **state)
{
	Images images = {};
	const Image *image;

	(void)state;
	give_mapping(&images, 5, NS_TGID, 1, 0x1000, 0x3000);
	give_mapping(&images, 7, NS_TGID, 1, 0x1000, 0x3000); /* as it was: since 5 */
	image = only_image(&images);
	assert_int_equal(image->mappings.count, 1);
	assert_int_equal(image->mappings.items[0].from_ns, 5);
	assert_int_equal(image->mappings.items[0].told_ns, 7);
	/* Something else was there in between, which nobody has looked at: since 9. */
	give(&images, make_mapping(8, MAPPING_EXEC, NS_TGID, 2, 0x2000, 0x3000, 0x2000), 8);
	give(&images, make_mapping(9, MAPPING_EXEC, NS_TGID, 1, 0x1000, 0x3000, 0x1000), 9);
	image = only_image(&images);
	assert_int_equal(image->mappings.count, 1);
	assert_int_equal(image->mappings.items[0].from_ns, 9);
	give_mapping(&images, 10, NS_TGID, 1, 0x1000, 0x3000);
	assert_int_equal(image->mappings.items[0].from_ns, 9);
	/* Another part of the file at that place. */
	give(&images, make_mapping(11, MAPPING_EXEC, NS_TGID, 1, 0x1000, 0x3000, 0), 11);
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

/* Of some mappings that were lost nobody knows whose they were, until they are read again. */
static void test_loss(void **state)
{
	Images images = {};
	const Image *image;

	(void)state;
	give_task(&images, 1, NS_TGID, 1, BORN);
	give_mapping(&images, 2, NS_TGID, 1, 0x1000, 0x2000);
	give_mapping(&images, 2, NS_TGID, 2, 0x2000, 0x3000);
	image = only_image(&images);
	give(&images, make_loss(REC_SWITCH, 5, 6), 6);
	assert_int_equal(image->doubt_ns, 0);
	give(&images, make_loss(REC_MAPPING, 10, 20), 20);
	assert_int_equal(image->doubt_ns, 10);
	give(&images, make_loss(REC_MAPPING, 20, 30), 30);
	assert_int_equal(image->doubt_ns, 10);
	give_fork(&images, 25, 11, NS_TGID);
	give_task(&images, 25, 11, 1, BORN + 1);
	assert_int_equal(images_find(&images, 1011, BORN + 1, 1)->doubt_ns, 10);
	/* The first is there still, the second is gone, the third came while nobody saw. */
	give_mapping(&images, 40, NS_TGID, 1, 0x1000, 0x2000);
	give_mapping(&images, 40, NS_TGID, 3, 0x5000, 0x6000);
	give(&images, make_space(40, SPACE_READ, NS_TGID, 0), 40);
	assert_int_equal(image->doubt_ns, 0);
	assert_int_equal(image->mappings.count, 2);
	assert_mapping(image, 0, 1, 0x1000, 0x1fff);
	assert_int_equal(image->mappings.items[0].from_ns, 2);
	assert_mapping(image, 1, 3, 0x5000, 0x5fff);
	assert_int_equal(image->mappings.items[1].from_ns, 40);
	assert_false(images_use_file(&images, 3 + 1));
	assert_true(images_use_file(&images, 2)); /* by the child, which was not read */
	assert_int_equal(images_find(&images, 1011, BORN + 1, 1)->doubt_ns, 10);
	images_free(&images);
}

static void note_corrected(void *user, const Image *image)
{
	*(uint64_t *)user = image->exec_told_ns;
}

/* An exec that BPF has told, and the side-band has not by far later. */
static void test_lost_exec(void **state)
{
	const uint64_t told = NSEC_PER_SEC, late = told + 100 * NSEC_PER_MSEC;
	struct rec_exec *record = make_record(REC_EXEC, 0, told, sizeof(*record), NULL, 0);
	Images images = {};
	const Image *image;
	uint64_t corrected = 0;

	(void)state;
	give_task(&images, 1, NS_TGID, 1, BORN);
	give_mapping(&images, 2, NS_TGID, 1, 0x1000, 0x2000);
	image = only_image(&images);
	assert_true(image_is_ready(image, 2, 2));
	record->tid = record->tgid = TGID;
	record->exec_id = 2;
	give(&images, &record->h, told);
	assert_false(image_is_ready(image, told, told)); /* BPF's own entry is the new program's */
	images_correct(&images, late - 1, note_corrected, &corrected);
	assert_int_equal(corrected, 0);
	images_correct(&images, late, note_corrected, &corrected);
	assert_int_equal(corrected, told);
	assert_int_equal(image->exec_id, 2);
	assert_int_equal(image->mappings.count, 0);
	assert_false(images_use_file(&images, 1));
	assert_true(image_is_ready(image, late, late));
	images_free(&images);
}

/* The fork that is told later than BPF tells the birth is older than that. */
static void test_ready(void **state)
{
	Images images = {};
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

/* Of so many mappings at random places, that overlap now and then; the least of some tries. */
static uint64_t cost_of(uint32_t count)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		Images images = {};
		uint64_t begin;
		VEC(struct record *) records = {};

		for (uint32_t j = 0; j < count; j++) {
			uint64_t start = random_below(8 * count) << 12;

			*vec_push(&records) = make_mapping(j + 1, MAPPING_EXEC, NS_TGID, j % 100,
							   start, start + 0x2000, start);
		}
		begin = cpu_ns();
		for (uint32_t j = 0; j < count; j++) {
			images_take(&images, records.items[j], j);
			if (j % (count / COST_ROUNDS) == 0)
				images_settle(&images);
		}
		images_settle(&images);
		least = MIN(least, cpu_ns() - begin);
		assert_true(only_image(&images)->mappings.count > count / 2);
		for (uint32_t j = 0; j < count; j++)
			free(records.items[j]);
		vec_free(&records);
		images_free(&images);
	}
	return least;
}

/* Four times as many cost some four times as much, and not sixteen times. */
static void test_cost(void **state)
{
	uint64_t few = cost_of(15000), many = cost_of(60000);

	(void)state;
	print_message("%.1f ms of 15,000 mappings, %.1f ms of 60,000\n", few / 1e6, many / 1e6);
	assert_true(many < 8 * few);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mapped_again), cmocka_unit_test(test_loss),
		cmocka_unit_test(test_lost_exec),    cmocka_unit_test(test_ready),
		cmocka_unit_test(test_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
