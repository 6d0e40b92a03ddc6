/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events of several CPUs, which are seen some time after they happen and whose buffers are read one
 * after another: what was given on is at each time what had happened up to the time that is
 * called known. Made-up processes' mappings, against a model that sees all at once.
 */
#include "event_reorder.h"
#include "images.h"
#include "make_record.h"
#include "test_tools.h"

#define CPUS	4
#define PAGES	16 /* that are mapped over and over */
#define NUMBER	7
#define MARGIN	200  /* longer than an event takes to be seen, if it is not late */
#define EVENTS	3000 /* of a history */
#define RESTS	40   /* between two fetches, at most so many times the margin */
#define HISTORY 60   /* so many of them */

typedef struct Happened {
	uint64_t ns, seen_ns;
	uint32_t cpu, first, count; /* pages */
	uint32_t file;		    /* another one each time */
} Happened;

typedef struct World {
	VEC(Happened) all; /* in the order of time */
	size_t fetched[CPUS];
	EventReorder order;
	Images images;
	uint64_t last_ns; /* that was given on */
	uint64_t given;
	bool in_order;
} World;

static bool any(const void *user, const void *event)
{
	(void)user;
	return event != NULL;
}

/* longest: how long an event takes to be seen. Of one CPU they are seen in order. */
static void make_history(World *world, uint64_t longest)
{
	uint64_t ns = 1000, seen[CPUS] = {};

	*world = (World){.in_order = true};
	for (uint32_t i = 0; i < EVENTS; i++) {
		Happened event = {.cpu = random_below(CPUS), .file = i + 1};

		ns += 1 + random_below(random_below(10) ? 20 : 4 * MARGIN);
		event.ns = ns;
		event.seen_ns = MAX(seen[event.cpu], ns + random_below(longest));
		event.first = random_below(PAGES);
		event.count = 1 + random_below(PAGES - event.first);
		seen[event.cpu] = event.seen_ns;
		*vec_push(&world->all) = event;
	}
}

static void free_history(World *world)
{
	vec_free(&world->all);
	event_reorder_free(&world->order);
	images_free(&world->images);
}

static int take(void *user, const void *bytes, uint64_t ns)
{
	World *world = user;
	const Happened *event = bytes;
	struct record *record =
		make_mapping(ns, MAPPING_EXEC, NUMBER, event->file, event->first << 12,
			     (event->first + event->count) << 12, 0);

	world->in_order &= ns >= world->last_ns;
	world->last_ns = ns;
	world->given++;
	images_on_record(&world->images, record, ns);
	free(record);
	return 0;
}

/* What a CPU's buffer shows at that time. */
static void fetch(World *world, uint32_t cpu, uint64_t ns)
{
	for (size_t i = world->fetched[cpu]; i < world->all.count; i++) {
		const Happened *event = &world->all.items[i];

		if (event->cpu != cpu)
			continue;
		if (event->seen_ns > ns)
			break;
		event_reorder_add(&world->order, event->ns, event, sizeof(*event));
		world->fetched[cpu] = i + 1;
	}
}

/* Pages at which the image is not what had happened by then. */
static uint32_t differences(World *world, uint64_t watermark_ns)
{
	uint32_t pages[PAGES] = {}, found = 0;
	const Image *image;

	images_apply_pending(&world->images);
	image = world->images.list.count ? world->images.list.items[0] : NULL;
	for (size_t i = 0; i < world->all.count && world->all.items[i].ns <= watermark_ns; i++)
		for (uint32_t j = 0; j < world->all.items[i].count; j++)
			pages[world->all.items[i].first + j] = world->all.items[i].file;
	for (uint32_t i = 0; i < PAGES; i++) {
		const ImageMapping *mapping = image ? image_find(image, (uint64_t)i << 12) : NULL;

		found += (mapping ? mapping->file : 0) != pages[i];
	}
	return found;
}

/* From the first event to the last; returns how often the image was not what was called known. */
static uint32_t follow(World *world, uint64_t margin)
{
	uint64_t end = world->all.items[world->all.count - 1].seen_ns + 2 * margin + CPUS * 50;
	uint32_t wrong = 0;

	for (uint64_t ns = 1000 + margin; ns < end; ns += 1 + random_below(RESTS * MARGIN)) {
		uint64_t begin = ns;

		for (uint32_t cpu = 0; cpu < CPUS; cpu++, ns += random_below(50))
			fetch(world, cpu, ns);
		assert_int_equal(event_reorder_deliver(&world->order, begin - margin, take, world),
				 0);
		wrong += differences(world, world->order.watermark_ns) > 0;
	}
	for (uint32_t cpu = 0; cpu < CPUS; cpu++)
		fetch(world, cpu, UINT64_MAX);
	event_reorder_deliver(&world->order, UINT64_MAX, take, world);
	assert_int_equal(event_reorder_youngest_ns(&world->order, any, NULL), 0);
	assert_int_equal(world->given, EVENTS);
	assert_true(world->in_order);
	return wrong;
}

static void test_known_is_known(void **state)
{
	(void)state;
	for (int i = 0; i < HISTORY; i++) {
		World world;

		make_history(&world, MARGIN);
		assert_int_equal(follow(&world, MARGIN), 0);
		assert_int_equal(world.order.late, 0);
		assert_int_equal(differences(&world, UINT64_MAX), 0);
		free_history(&world);
	}
}

/* If what has been fetched is called known, it is not: the margin is needed. */
static void test_without_margin(void **state)
{
	uint32_t wrong = 0;
	uint64_t late = 0;

	(void)state;
	for (int i = 0; i < HISTORY; i++) {
		World world;

		make_history(&world, MARGIN);
		wrong += follow(&world, 0);
		late += world.order.late;
		free_history(&world);
	}
	assert_true(wrong > HISTORY);
	assert_true(late > HISTORY);
}

typedef VEC(uint64_t) Numbers;

static int take_number(void *user, const void *event, uint64_t ns)
{
	Numbers *list = user;

	*vec_push(list) = *(const uint64_t *)event;
	*vec_push(list) = ns;
	return 0;
}

static void add_number(EventReorder *order, uint64_t ns, uint64_t number)
{
	event_reorder_add(order, ns, &number, sizeof(number));
}

/* By hand: a late event is counted, and applies from the time at which it could be known. */
static void test_late(void **state)
{
	static const uint64_t want[] = {1, 10, 2, 20, 4, 31, 5, 31, 3, 35, 6, 36};
	EventReorder order = {};
	Numbers given = {};

	(void)state;
	add_number(&order, 20, 2);
	add_number(&order, 35, 3);
	add_number(&order, 10, 1);
	assert_int_equal(event_reorder_deliver(&order, 30, take_number, &given), 0);
	assert_int_equal(event_reorder_youngest_ns(&order, any, NULL), 35);
	add_number(&order, 30, 5); /* "all up to 30", it was said */
	add_number(&order, 25, 4);
	add_number(&order, 36, 6);
	assert_int_equal(event_reorder_deliver(&order, 36, take_number, &given), 0);
	assert_int_equal(order.late, 2);
	assert_int_equal(given.count, ARRAY_LEN(want));
	assert_memory_equal(given.items, want, sizeof(want));
	/* Time does not go back. */
	add_number(&order, 36, 7);
	assert_int_equal(event_reorder_deliver(&order, 1, take_number, &given), 0);
	assert_int_equal(order.watermark_ns, 36);
	assert_int_equal(order.late, 3);
	vec_free(&given);
	event_reorder_free(&order);
}

static bool is_even(const void *user, const void *event)
{
	(void)user;
	return *(const uint64_t *)event % 2 == 0;
}

/* The youngest of the kept events that matters. */
static void test_youngest(void **state)
{
	EventReorder order = {};
	Numbers given = {};

	(void)state;
	for (uint64_t i = 1; i <= 9; i++)
		add_number(&order, 10 * i, i);
	assert_int_equal(event_reorder_deliver(&order, 25, take_number, &given), 0);
	assert_int_equal(event_reorder_youngest_ns(&order, any, NULL), 90);
	assert_int_equal(event_reorder_youngest_ns(&order, is_even, NULL), 80);
	assert_int_equal(event_reorder_deliver(&order, 85, take_number, &given), 0);
	assert_int_equal(event_reorder_youngest_ns(&order, is_even, NULL), 0);
	vec_free(&given);
	event_reorder_free(&order);
}

static int fail_once(void *user, const void *event, uint64_t ns)
{
	(void)event;
	(void)ns;
	return ++*(int *)user == 2 ? -5 : 0;
}

static void test_error(void **state)
{
	EventReorder order = {};
	int calls = 0;

	(void)state;
	for (uint64_t i = 1; i <= 5; i++)
		add_number(&order, i, i);
	assert_int_equal(event_reorder_deliver(&order, 4, fail_once, &calls), -5);
	assert_int_equal(calls, 2);
	assert_int_equal(event_reorder_youngest_ns(&order, any, NULL), 5);
	assert_int_equal(event_reorder_deliver(&order, 5, fail_once, &calls), 0);
	assert_int_equal(calls, 3);
	event_reorder_free(&order);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_is_known), cmocka_unit_test(test_without_margin),
		cmocka_unit_test(test_late),	       cmocka_unit_test(test_youngest),
		cmocka_unit_test(test_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
