/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes' mappings as they are now: by hand, and random histories against a map of bytes. */
#include "images_fixture.h"
#include "test_tools.h"

#define NEVER UINT64_MAX

/* ---- mappings ------------------------------------------------------------------------------ */

static void test_cut(void **state)
{
	Images images = empty_images();
	const Image *image;

	(void)state;
	give_mapping(&images, 1, NS_TGID, 1, 0x1000, 0x9000);
	give_mapping(&images, 2, NS_TGID, 2, 0x3000, 0x5000); /* in the middle: two are left */
	image = only_image(&images);
	assert_int_equal(image->mappings.count, 3);
	assert_mapping(image, 0, 1, 0x1000, 0x2fff);
	assert_mapping(image, 1, 2, 0x3000, 0x4fff);
	assert_mapping(image, 2, 1, 0x5000, 0x8fff);
	/* The second part is still where it was in the file. */
	assert_int_equal(image->mappings.items[2].bias, 0x1000);
	give_mapping(&images, 3, NS_TGID, 3, 0x2000, 0x6000); /* over two ends and a whole one */
	assert_int_equal(image->mappings.count, 3);
	assert_mapping(image, 0, 1, 0x1000, 0x1fff);
	assert_mapping(image, 1, 3, 0x2000, 0x5fff);
	assert_mapping(image, 2, 1, 0x6000, 0x8fff);
	give_mapping(&images, 4, NS_TGID, 4, 0x1000, 0x9000); /* over all of it */
	assert_int_equal(image->mappings.count, 1);
	assert_mapping(image, 0, 4, 0x1000, 0x8fff);
	assert_null(image_find(image, 0xfff));
	assert_non_null(image_find(image, 0x1000));
	assert_non_null(image_find(image, 0x8fff));
	assert_null(image_find(image, 0x9000));
	images_free(&images);
}

/* An end of 2^64 is written as 0. */
static void test_up_to_the_end(void **state)
{
	Images images = empty_images();
	const Image *image;

	(void)state;
	give_mapping(&images, 1, NS_TGID, 1, -0x3000ULL, 0);
	image = only_image(&images);
	assert_mapping(image, 0, 1, -0x3000ULL, UINT64_MAX);
	assert_non_null(image_find(image, UINT64_MAX));
	give_mapping(&images, 2, NS_TGID, 2, -0x2000ULL, -0x1000ULL);
	assert_int_equal(image->mappings.count, 3);
	assert_mapping(image, 2, 1, -0x1000ULL, UINT64_MAX);
	give_mapping(&images, 3, NS_TGID, 3, -0x2000ULL, 0);
	assert_int_equal(image->mappings.count, 2);
	assert_mapping(image, 0, 1, -0x3000ULL, -0x2001ULL);
	assert_mapping(image, 1, 3, -0x2000ULL, UINT64_MAX);
	images_free(&images);
}

static void test_not_taken(void **state)
{
	Images images = empty_images();
	const Image *image;

	(void)state;
	give_mapping(&images, 1, NS_TGID, 1, 0x1000, 0x2000);
	give_mapping(&images, 2, NS_TGID, 2, 0x1800, 0x1800); /* of no length */
	give_mapping(&images, 3, NS_TGID, 2, 0x1800, 0x1400); /* of less */
	images_give(&images, make_mapping(4, 0, NS_TGID, 2, 0x1000, 0x2000, 0), 4);
	image = only_image(&images);
	assert_int_equal(image->mappings.count, 1);
	assert_mapping(image, 0, 1, 0x1000, 0x1fff);
	assert_int_equal(image->latest_ns, 1);
	images_free(&images);
}

static void test_since_when(void **state)
{
	Images images = empty_images();
	const Image *image;

	(void)state;
	images_give(&images,
		    make_mapping(7, MAPPING_EXEC | MAPPING_INITIAL, NS_TGID, 1, 0x1000, 0x2000, 0),
		    7);
	give_mapping(&images, 9, NS_TGID, 2, 0x2000, 0x3000);
	image = only_image(&images);
	assert_int_equal(image->mappings.items[0].from_ns, 0);
	assert_int_equal(image->mappings.items[1].from_ns, 9);
	assert_int_equal(image->latest_ns, 9);
	images_free(&images);
}

/* ---- processes ----------------------------------------------------------------------------- */

static void test_life(void **state)
{
	Images images = empty_images();
	Image *image;

	(void)state;
	give_task(&images, 1, NS_TGID, 3, BORN);
	give_mapping(&images, 2, NS_TGID, 1, 0x1000, 0x2000);
	assert_int_equal(file_at(&images, NS_TGID, BORN, 3, 0x1000), 1);
	assert_null(images_find(&images, TGID, BORN, 4));
	assert_null(images_find(&images, TGID, BORN + 1, 3));
	assert_null(images_find(&images, TGID + 1, BORN, 3));

	give_fork(&images, 3, 11, NS_TGID);
	give_task(&images, 3, 11, 3, BORN + 1);
	give_mapping(&images, 4, NS_TGID, 2, 0x1000, 0x2000); /* the parent's alone */
	assert_int_equal(file_at(&images, 11, BORN + 1, 3, 0x1000), 1);
	assert_int_equal(file_at(&images, NS_TGID, BORN, 3, 0x1000), 2);

	image = images_find(&images, 1011, BORN + 1, 3);
	image->changed = false;
	give_exec(&images, 5, 11);
	assert_int_equal(image->ended_ns, 5);
	assert_int_equal(file_at(&images, 11, BORN + 1, 4, 0x1000), 0); /* begins empty */
	assert_int_equal(file_at(&images, 11, BORN + 1, 3, 0x1000), 1); /* what comes late */
	assert_true(images_find(&images, 1011, BORN + 1, 4)->changed);

	give_exit(&images, 6, 11, 0); /* a thread's */
	assert_int_equal(images_find(&images, 1011, BORN + 1, 4)->ended_ns, 0);
	give_exit(&images, 7, 11, EXIT_GROUP_DEAD);
	assert_int_equal(images_find(&images, 1011, BORN + 1, 4)->ended_ns, 7);
	assert_int_equal(images_find(&images, TGID, BORN, 3)->ended_ns, 0);
	images_free(&images);
}

/* BPF's records of non-targets, of threads and of names are not about a process. */
static void test_other_tasks(void **state)
{
	Images images = empty_images();
	struct record *record;

	(void)state;
	record = make_task(TGID, TGID, NS_TGID);
	record->flags = TASK_NON_TARGET;
	images_give(&images, record, 1);
	record = make_task(TGID, TGID, NS_TGID);
	record->flags = TASK_RENAME;
	images_give(&images, record, 1);
	images_give(&images, make_task(TGID + 1, TGID, NS_TGID), 1);
	images_give(&images, make_task(TGID, TGID, 0), 1);
	images_give(&images, make_waking(1, TGID, TGID), 1);
	assert_int_equal(images.list.count, 0);
	images_free(&images);
}

static void test_empty_fork(void **state)
{
	Images images = empty_images();

	(void)state;
	give_task(&images, 1, NS_TGID, 1, BORN);
	give_fork(&images, 2, 11, NS_TGID); /* of a parent with nothing */
	give_fork(&images, 3, 12, 99);	    /* of an unknown process */
	give_task(&images, 3, 11, 1, BORN + 2);
	give_task(&images, 3, 12, 1, BORN + 3);
	assert_int_equal(file_at(&images, 11, BORN + 2, 1, 0x1000), 0);
	assert_int_equal(file_at(&images, 12, BORN + 3, 1, 0x1000), 0);
	images_free(&images);
}

/* The exit that BPF reports comes before the exec that the side-band reports. */
static void test_exec_of_the_dead(void **state)
{
	Images images = empty_images();

	(void)state;
	give_task(&images, 1, NS_TGID, 1, BORN);
	give_exit(&images, 9, NS_TGID, EXIT_GROUP_DEAD);
	give_exec(&images, 5, NS_TGID);
	give_mapping(&images, 6, NS_TGID, 1, 0x1000, 0x2000);
	assert_int_equal(file_at(&images, NS_TGID, BORN, 2, 0x1000), 1);
	assert_int_equal(images_find(&images, TGID, BORN, 2)->ended_ns, 9);
	images_free(&images);
}

/* BPF's word comes after execs, and is about the time before, between or behind them. */
static void test_execs_before_the_task(void **state)
{
	(void)state;
	for (uint64_t asked = 1; asked <= 5; asked += 2) {
		uint32_t reported = asked / 2,
			 first = 7 - reported; /* execs that BPF has seen by then */
		Images images = empty_images();

		give_fork(&images, 1, NS_TGID, 99);
		give_mapping(&images, 1, NS_TGID, 1, 0x1000, 0x2000);
		give_exec(&images, 2, NS_TGID);
		give_mapping(&images, 2, NS_TGID, 2, 0x1000, 0x2000);
		give_exec(&images, 4, NS_TGID);
		give_mapping(&images, 4, NS_TGID, 3, 0x1000, 0x2000);
		give_task(&images, asked, NS_TGID, 7, BORN);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(file_at(&images, NS_TGID, BORN, first + i, 0x1000), i + 1);
		images_free(&images);
	}
}

/* BPF is asked at the start; an exec just before that comes from the side-band after it. */
static void test_exec_that_bpf_knows(void **state)
{
	Images images = empty_images();

	(void)state;
	give_task(&images, 10, NS_TGID, 7, BORN);
	give_mapping(&images, 1, NS_TGID, 1, 0x1000, 0x2000);
	give_exec(&images, 9, NS_TGID);
	give_mapping(&images, 9, NS_TGID, 2, 0x1000, 0x2000);
	assert_int_equal(file_at(&images, NS_TGID, BORN, 7, 0x1000), 2);
	assert_int_equal(file_at(&images, NS_TGID, BORN, 6, 0x1000), 1);
	give_exec(&images, 11, NS_TGID); /* one more, and it counts */
	assert_int_equal(file_at(&images, NS_TGID, BORN, 8, 0x1000), 0);
	assert_int_equal(file_at(&images, NS_TGID, BORN, 7, 0x1000), 2);
	images_free(&images);
}

/* The next process with a pid, reported by either source first, with or without the old one's end.
 */
static void test_number_again(void **state)
{
	(void)state;
	for (int variant = 0; variant < 4; variant++) {
		Images images = empty_images();

		give_task(&images, 1, 20, 1, BORN);
		give_mapping(&images, 1, 20, 1, 0x1000, 0x2000);
		give_task(&images, 1, NS_TGID, 1, BORN);
		give_mapping(&images, 2, NS_TGID, 2, 0x1000, 0x2000);
		if (variant & 1)
			give_exit(&images, 3, NS_TGID, EXIT_GROUP_DEAD);
		if (variant & 2)
			give_task(&images, 4, NS_TGID, 5, BORN + 4);
		give_fork(&images, 4, NS_TGID, 20);
		if (!(variant & 2))
			give_task(&images, 4, NS_TGID, 5, BORN + 4);
		assert_int_equal(file_at(&images, NS_TGID, BORN + 4, 5, 0x1000), 1);
		assert_int_equal(images_find(&images, TGID, BORN + 4, 5)->ended_ns, 0);
		assert_int_equal(file_at(&images, NS_TGID, BORN, 1, 0x1000), 2);
		assert_int_equal(images_find(&images, TGID, BORN, 1)->ended_ns,
				 variant & 1 ? 3 : 4);
		images_free(&images);
	}
}

/* The old process is known by BPF's word alone; or by what the side-band reported too late. */
static void test_number_of_little_known(void **state)
{
	Images images = empty_images();

	(void)state;
	give_task(&images, 1, 20, 1, BORN);
	give_mapping(&images, 1, 20, 1, 0x1000, 0x2000);
	give_task(&images, 2, NS_TGID, 1, BORN);
	give_fork(&images, 4, NS_TGID, 20);
	give_task(&images, 5, NS_TGID, 1, BORN + 4);
	assert_int_equal(file_at(&images, NS_TGID, BORN + 4, 1, 0x1000), 1);
	assert_int_equal(file_at(&images, NS_TGID, BORN, 1, 0x1000), 0);

	give_exit(&images, 6, NS_TGID, EXIT_GROUP_DEAD);
	give_task(&images, 8, NS_TGID, 1, BORN + 7);
	give_mapping(&images, 5, NS_TGID, 2, 0x1000, 0x2000);
	give_fork(&images, 7, NS_TGID, 20);
	assert_int_equal(file_at(&images, NS_TGID, BORN + 7, 1, 0x1000), 1);
	images_free(&images);
}

/* What was read of a running process is younger than its birth, which is reported later. */
static void test_initial_and_fork(void **state)
{
	Images images = empty_images();

	(void)state;
	give_task(&images, 1, 20, 1, BORN);
	give_mapping(&images, 1, 20, 1, 0x1000, 0x2000);
	give_task(&images, 3, NS_TGID, 1, BORN + 2);
	images_give(&images,
		    make_mapping(4, MAPPING_EXEC | MAPPING_INITIAL, NS_TGID, 1, 0x1000, 0x2000, 0),
		    4);
	give_fork(&images, 2, NS_TGID, 20);
	assert_int_equal(images.list.count, 2);
	assert_int_equal(file_at(&images, NS_TGID, BORN + 2, 1, 0x1000), 1);
	images_free(&images);
}

/* ---- dropping ------------------------------------------------------------------------------ */

typedef struct Forgotten {
	uint32_t exec_ids[8];
	size_t count;
} Forgotten;

static void note_forgotten(void *user, Image *image)
{
	Forgotten *forgotten = user;

	assert_true(forgotten->count < ARRAY_LEN(forgotten->exec_ids));
	forgotten->exec_ids[forgotten->count++] = image->exec_id;
}

static void test_drop(void **state)
{
	Images images = empty_images();
	Forgotten forgotten = {};

	(void)state;
	give_task(&images, 1, NS_TGID, 1, BORN);
	give_task(&images, 1, 20, 50, BORN);
	give_exec(&images, 10, NS_TGID);
	give_exec(&images, 20, NS_TGID);
	images_drop_ended(&images, 10, note_forgotten, &forgotten); /* not those of that moment */
	assert_int_equal(forgotten.count, 0);
	images_drop_ended(&images, 11, note_forgotten, &forgotten);
	assert_int_equal(forgotten.count, 1);
	assert_int_equal(forgotten.exec_ids[0], 1);
	assert_null(images_find(&images, TGID, BORN, 1));
	/* The present one is still found by its number. */
	give_mapping(&images, 30, NS_TGID, 9, 0x1000, 0x2000);
	assert_int_equal(file_at(&images, NS_TGID, BORN, 3, 0x1000), 9);
	give_mapping(&images, 30, 20, 8, 0x1000, 0x2000);
	assert_int_equal(file_at(&images, 20, BORN, 50, 0x1000), 8);
	give_exit(&images, 40, NS_TGID, EXIT_GROUP_DEAD);
	images_drop_ended(&images, NEVER, NULL, NULL);
	assert_int_equal(only_image(&images)->exec_id, 50);
	/* The next process with its pid begins without mappings. */
	give_mapping(&images, 50, NS_TGID, 7, 0x3000, 0x4000);
	give_task(&images, 51, NS_TGID, 1, BORN + 50);
	assert_int_equal(file_at(&images, NS_TGID, BORN + 50, 1, 0x1000), 0);
	assert_int_equal(file_at(&images, NS_TGID, BORN + 50, 1, 0x3000), 7);
	images_free(&images);
}

/* ---- random histories ---------------------------------------------------------------------- */

#define BYTES	  64 /* of each address space */
#define NUMBERS	  6
#define HISTORIES 200
#define ROUNDS	  40

/* An image as it must be: which file is at each byte. */
typedef struct ModelImage {
	uint32_t number, exec_id;
	uint64_t born, ended_ns, exit_ns;
	uint32_t files[BYTES];
} ModelImage;

typedef struct History {
	Images images;
	VEC(ModelImage) model; /* the present one of a number is its last */
	VEC(struct record *) of_bpf, of_sideband;
	uint64_t base; /* address of byte 0 */
	uint64_t ns;
	uint32_t mappings;
} History;

static ModelImage *model_of(History *history, uint32_t number)
{
	for (size_t i = history->model.count; i-- > 0;)
		if (history->model.items[i].number == number)
			return &history->model.items[i];
	return NULL;
}

static void report_birth(History *history, const ModelImage *born)
{
	struct record *record = make_task(born->number + 1000, born->number + 1000, born->number);
	struct rec_task *task = (struct rec_task *)record;

	record->ns = history->ns + 1;
	task->exec_id = born->exec_id;
	task->start_boottime = born->born;
	*vec_push(&history->of_bpf) = record;
}

static void begin(History *history, ModelImage image)
{
	image.born = history->ns;
	image.ended_ns = image.exit_ns = 0;
	*vec_push(&history->model) = image;
	report_birth(history, &image);
}

static void do_map(History *history, ModelImage *image)
{
	uint32_t from = random_below(BYTES), to = from + 1 + random_below(BYTES - from);
	uint32_t file = ++history->mappings;

	for (uint32_t i = from; i < to; i++)
		image->files[i] = file;
	*vec_push(&history->of_sideband) =
		make_mapping(history->ns, MAPPING_EXEC, image->number, file, history->base + from,
			     history->base + to, history->base);
}

static void do_fork(History *history, const ModelImage *parent, uint32_t number)
{
	ModelImage child = *parent;

	*vec_push(&history->of_sideband) =
		make_space(history->ns, SPACE_FORK, number, parent->number);
	child.number = number;
	begin(history, child);
}

static void do_exec(History *history, ModelImage *image, uint64_t now)
{
	ModelImage next = *image;

	*vec_push(&history->of_sideband) = make_space(history->ns, SPACE_EXEC, next.number, 0);
	image->ended_ns = now;
	next.exec_id++;
	memset(next.files, 0, sizeof(next.files));
	*vec_push(&history->model) = next;
}

static void do_exit(History *history, ModelImage *image, uint64_t now)
{
	struct rec_exit *record =
		make_record(REC_EXIT, EXIT_GROUP_DEAD, history->ns, sizeof(*record), NULL, 0);

	record->tid = record->tgid = image->number + 1000;
	record->process_start_boottime = image->born;
	*vec_push(&history->of_bpf) = &record->h;
	image->ended_ns = image->exit_ns = now;
}

/* now: when the events of this round are reported. A pid is free again in the next one. */
static void do_something(History *history, uint64_t now)
{
	uint32_t number = 1 + random_below(NUMBERS), other = 1 + random_below(NUMBERS);
	ModelImage *image = model_of(history, number), *free_one = model_of(history, other);

	history->ns += 10;
	if (!image || image->exit_ns)
		return;
	switch (random_below(8)) {
	case 0:
		do_exec(history, image, now);
		break;
	case 1:
		if (number != 1) /* so that one is left */
			do_exit(history, image, now);
		break;
	case 2:
	case 3:
		if (!free_one || (free_one->exit_ns && free_one->exit_ns < now))
			do_fork(history, image, other);
		break;
	default:
		do_map(history, image);
	}
}

static void give_all(History *history, bool bpf, uint64_t now)
{
	struct record **records = bpf ? history->of_bpf.items : history->of_sideband.items;
	size_t count = bpf ? history->of_bpf.count : history->of_sideband.count;

	for (size_t i = 0; i < count; i++)
		images_give(&history->images, records[i], now);
	if (bpf)
		history->of_bpf.count = 0;
	else
		history->of_sideband.count = 0;
}

static void drop_some(History *history, uint64_t before)
{
	size_t kept = 0;

	images_drop_ended(&history->images, before, NULL, NULL);
	for (size_t i = 0; i < history->model.count; i++) {
		ModelImage image = history->model.items[i];

		if (!image.ended_ns || image.ended_ns >= before)
			history->model.items[kept++] = image;
	}
	history->model.count = kept;
}

static void one_round(History *history)
{
	uint64_t now = history->ns + 1000, todo = 1 + random_below(12);
	bool bpf_first = random_below(2);

	for (uint64_t i = 0; i < todo; i++)
		do_something(history, now);
	give_all(history, bpf_first, now);
	give_all(history, !bpf_first, now);
	history->ns = now;
	if (random_below(4) == 0)
		drop_some(history, now - random_below(3000));
}

/* Forked by a process that has not ended. */
static bool is_used(const History *history, uint32_t file)
{
	for (size_t i = 0; i < history->model.count; i++) {
		const ModelImage *image = &history->model.items[i];

		for (uint32_t byte = 0; byte < BYTES && !image->ended_ns; byte++)
			if (image->files[byte] == file)
				return true;
	}
	return false;
}

/* In how many bytes, images, orders of mappings and uses of files the two differ. */
static uint32_t differences(History *history)
{
	uint32_t found = history->images.list.count != history->model.count;

	images_apply_pending(&history->images);
	for (uint32_t file = 1; file <= history->mappings; file++)
		found += images_use_file(&history->images, file) != is_used(history, file);
	for (size_t i = 0; i < history->model.count; i++) {
		const ModelImage *want = &history->model.items[i];
		const Image *image = images_find(&history->images, want->number + 1000, want->born,
						 want->exec_id);

		if (!image) {
			found++;
			continue;
		}
		found += image->ended_ns != want->ended_ns || image->ns_tgid != want->number;
		for (uint32_t byte = 0; byte < BYTES; byte++) {
			const ImageMapping *mapping = image_find(image, history->base + byte);

			found += (mapping ? mapping->file : 0) != want->files[byte];
		}
		for (size_t j = 1; j < image->mappings.count; j++)
			found +=
				image->mappings.items[j - 1].last >= image->mappings.items[j].start;
	}
	return found;
}

static void history_begin(History *history)
{
	*history = (History){.images = empty_images(),
			     .base = random_below(2) ? -(uint64_t)BYTES : 0x1000,
			     .ns = 10};
	begin(history, (ModelImage){.number = 1, .exec_id = random_below(5)});
}

static void history_free(History *history)
{
	images_free(&history->images);
	vec_free(&history->model);
	vec_free(&history->of_bpf);
	vec_free(&history->of_sideband);
}

static void test_random(void **state)
{
	(void)state;
	for (int i = 0; i < HISTORIES; i++) {
		History history;

		history_begin(&history);
		for (int round = 0; round < ROUNDS; round++) {
			one_round(&history);
			if (differences(&history) == 0)
				continue;
			print_error("WALLPROF_SEED=%s: history %d, round %d: %u differ\n",
				    getenv("WALLPROF_SEED") ?: "1", i, round,
				    differences(&history));
			fail();
		}
		history_free(&history);
	}
}

/* Changes one record of the side-band; its content must be noticed as missing. */
static void alter(History *history, int how)
{
	struct record *record = history->of_sideband.items[history->of_sideband.count - 1];
	struct rec_mapping *mapping = (struct rec_mapping *)record;

	switch (how) {
	case 0:
		mapping->h.kind = REC_NONE;
		break;
	case 1:
		mapping->start++;
		break;
	case 2:
		mapping->end--;
		break;
	case 3:
		mapping->file++;
		break;
	default:
		mapping->ns_tgid = NUMBERS + 1;
	}
}

static void test_altered(void **state)
{
	(void)state;
	for (int how = 0; how < 5; how++) {
		History history;

		history_begin(&history);
		for (int round = 0; round < 5; round++)
			one_round(&history);
		assert_int_equal(differences(&history), 0);
		do_map(&history, model_of(&history, 1));
		alter(&history, how);
		give_all(&history, /* bpf= */ false, history.ns);
		assert_int_not_equal(differences(&history), 0);
		history_free(&history);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_up_to_the_end),
		cmocka_unit_test(test_not_taken),
		cmocka_unit_test(test_since_when),
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_other_tasks),
		cmocka_unit_test(test_empty_fork),
		cmocka_unit_test(test_exec_of_the_dead),
		cmocka_unit_test(test_execs_before_the_task),
		cmocka_unit_test(test_exec_that_bpf_knows),
		cmocka_unit_test(test_number_again),
		cmocka_unit_test(test_number_of_little_known),
		cmocka_unit_test(test_initial_and_fork),
		cmocka_unit_test(test_drop),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_altered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
