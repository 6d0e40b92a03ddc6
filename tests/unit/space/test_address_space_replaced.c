/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether an address is still what it was, by hand and against a replay of all events. */
#include "address_space.h"
#include "make_record.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PROCESS 100
#define CHILD	200

static void give(AddressSpaces *spaces, struct record *record)
{
	address_spaces_add(spaces, record);
	free(record);
}

static AddressSpaces *with_files(uint32_t count)
{
	AddressSpaces *spaces = address_spaces_new();

	for (uint32_t id = 1; id <= count; id++)
		give(spaces, make_file(id, 0, "/lib/libfoo.so", 0));
	return spaces;
}

static void test_replaced(void **state)
{
	AddressSpaces *spaces = with_files(2);

	(void)state;
	give(spaces, make_mapping(10, 0, PROCESS, 1, 0x1000, 0x5000, 0x1000));
	give(spaces, make_mapping(20, 0, PROCESS, 2, 0x3000, 0x8000, 0x3000));
	assert_false(address_spaces_replaced(spaces, PROCESS, 10, 19, 0x3000));
	assert_true(address_spaces_replaced(spaces, PROCESS, 10, 20, 0x3000));
	assert_true(address_spaces_replaced(spaces, PROCESS, 19, 1000, 0x4fff));
	assert_false(address_spaces_replaced(spaces, PROCESS, 20, 1000, 0x3000));
	/* Its neighbours are as they were. */
	assert_false(address_spaces_replaced(spaces, PROCESS, 10, 1000, 0x2fff));
	assert_false(address_spaces_replaced(spaces, PROCESS, 10, 1000, 0x5000));
	assert_false(
		address_spaces_replaced(spaces, PROCESS, 9, 19, 0x3000)); /* nothing was there */
	assert_true(address_spaces_replaced(spaces, PROCESS, 9, 1000, 0x3000));
	/* Nothing is between a moment and an earlier one. */
	assert_false(address_spaces_replaced(spaces, PROCESS, 20, 10, 0x3000));
	assert_false(address_spaces_replaced(spaces, CHILD, 10, 20, 0x3000));
	address_spaces_free(spaces);
}

/* mprotect maps once more what is there; but what comes back was away. */
static void test_same_again(void **state)
{
	AddressSpaces *spaces = with_files(2);

	(void)state;
	give(spaces, make_mapping(10, 0, PROCESS, 1, 0x1000, 0x5000, 0x1000));
	give(spaces, make_mapping(20, 0, PROCESS, 1, 0x2000, 0x3000, 0x1000));
	give(spaces, make_mapping(30, 0, PROCESS, 2, 0x2000, 0x3000, 0x1000));
	give(spaces, make_mapping(40, 0, PROCESS, 1, 0x2000, 0x3000, 0x1000));
	give(spaces, make_mapping(50, 0, PROCESS, 1, 0x2000, 0x3000, 0x1800));
	assert_false(address_spaces_replaced(spaces, PROCESS, 10, 20, 0x2000));
	assert_true(address_spaces_replaced(spaces, PROCESS, 10, 30, 0x2000));
	assert_true(address_spaces_replaced(spaces, PROCESS, 10, 40, 0x2000));
	assert_true(address_spaces_replaced(spaces, PROCESS, 30, 40, 0x2000));
	assert_true(address_spaces_replaced(spaces, PROCESS, 10, 50, 0x2000));
	address_spaces_free(spaces);
}

static void test_exec_and_fork(void **state)
{
	AddressSpaces *spaces = with_files(2);

	(void)state;
	give(spaces, make_mapping(10, 0, PROCESS, 1, 0x1000, 0x2000, 0));
	give(spaces, make_mapping(20, 0, PROCESS, 2, 0x1000, 0x2000, 0));
	give(spaces, make_space(30, SPACE_FORK, CHILD, PROCESS));
	give(spaces, make_mapping(40, 0, PROCESS, 1, 0x1000, 0x2000, 0));
	give(spaces, make_mapping(50, 0, CHILD, 1, 0x1000, 0x1800, 0));
	give(spaces, make_space(60, SPACE_EXEC, CHILD, 0));
	give(spaces, make_space(70, SPACE_FORK, 300, CHILD));
	/* The parent's counts up to the fork, then the child's own. */
	assert_true(address_spaces_replaced(spaces, CHILD, 10, 30, 0x1000));
	assert_false(address_spaces_replaced(spaces, CHILD, 20, 49, 0x1000));
	assert_true(address_spaces_replaced(spaces, CHILD, 20, 50, 0x1000));
	assert_true(address_spaces_replaced(spaces, CHILD, 10, 50, 0x1000));
	assert_false(address_spaces_replaced(spaces, CHILD, 20, 50, 0x1800));
	/* After an exec nothing holds, wherever it is, in children too. */
	assert_true(address_spaces_replaced(spaces, CHILD, 50, 60, 0x9000));
	assert_true(address_spaces_replaced(spaces, 300, 50, 80, 0x9000));
	assert_false(address_spaces_replaced(spaces, CHILD, 60, 80, 0x1000));
	assert_false(address_spaces_replaced(spaces, 300, 60, 80, 0x1000));
	assert_false(address_spaces_replaced(spaces, CHILD, 20, 49, 0x9000));
	address_spaces_free(spaces);
}

/* ---- against a replay -------------------------------------------------------- */

enum { EVENTS = 64, NUMBERS = 5, SPAN = 16, FILES = 3 };

typedef struct Event {
	enum { MAPPING, FORK, EXEC } what;
	uint64_t ns;
	uint32_t tgid, other, file, bias;
	uint64_t start, end;
} Event;

/* A process at some moment: which events ever mapped each address, and its last exec. */
typedef struct Image {
	uint64_t mapped[SPAN]; /* bit i: events[i] */
	uint64_t exec_ns;
} Image;

static void replay_event(Image *images, const Event *event, int i)
{
	Image *image = &images[event->tgid];

	if (event->what == FORK)
		*image = images[event->other];
	if (event->what == EXEC)
		*image = (Image){.exec_ns = event->ns};
	for (uint64_t at = event->start; event->what == MAPPING && at < event->end; at++)
		image->mapped[at] |= 1ULL << i;
}

/* Which event had mapped it by ns, or -1. */
static int mapped_by(const Event *events, uint64_t mapped, uint64_t ns)
{
	for (int i = EVENTS; i-- > 0;)
		if (mapped >> i & 1 && events[i].ns <= ns)
			return i;
	return -1;
}

static bool model_replaced(const Event *events, uint32_t tgid, uint64_t from_ns, uint64_t to_ns,
			   uint64_t avma)
{
	Image images[NUMBERS + 1] = {};
	int before;

	if (to_ns <= from_ns)
		return false;
	for (int i = 0; i < EVENTS && events[i].ns <= to_ns; i++)
		replay_event(images, &events[i], i);
	if (images[tgid].exec_ns > from_ns)
		return true;
	for (int i = 0; i < EVENTS; i++) {
		if (!(images[tgid].mapped[avma] >> i & 1) || events[i].ns <= from_ns)
			continue;
		before = mapped_by(events, images[tgid].mapped[avma], events[i].ns - 1);
		if (before >= 0 && (events[before].file != events[i].file ||
				    events[before].bias != events[i].bias))
			return true;
	}
	return false;
}

static void make_events(Event events[EVENTS], unsigned *random)
{
	for (int i = 0; i < EVENTS; i++) {
		unsigned what = rand_r(random) % 16;
		Event *event = &events[i];

		*event = (Event){
			.what = what == 0  ? EXEC
				: what < 3 ? FORK
					   : MAPPING,
			.ns = 10 * (i + 1),
			.tgid = 1 + rand_r(random) % NUMBERS,
			.other = 1 + rand_r(random) % NUMBERS,
			.file = 1 + rand_r(random) % FILES,
			.bias = rand_r(random) % 2,
			.start = rand_r(random) % SPAN,
		};
		event->end = event->start + 1 + rand_r(random) % 8;
		event->end = MIN(event->end, (uint64_t)SPAN);
	}
}

static void give_event(AddressSpaces *spaces, const Event *event)
{
	if (event->what == MAPPING)
		give(spaces, make_mapping(event->ns, 0, event->tgid, event->file, event->start,
					  event->end, event->bias));
	else
		give(spaces, make_space(event->ns, event->what == FORK ? SPACE_FORK : SPACE_EXEC,
					event->tgid, event->other));
}

/* How many of the questions, which are the same for one seed, are answered otherwise. */
static unsigned count_differences(AddressSpaces *spaces, const Event *events, unsigned random,
				  unsigned *ret_replaced)
{
	unsigned differences = 0;

	for (int query = 0; query < 500; query++) {
		uint32_t tgid = 1 + rand_r(&random) % NUMBERS;
		uint64_t from = rand_r(&random) % (10 * EVENTS + 20);
		uint64_t to = rand_r(&random) % (10 * EVENTS + 20);
		uint64_t avma = rand_r(&random) % SPAN;
		bool expected = model_replaced(events, tgid, from, to, avma);

		*ret_replaced += expected;
		differences += address_spaces_replaced(spaces, tgid, from, to, avma) != expected;
	}
	return differences;
}

static AddressSpaces *make_spaces(const Event events[EVENTS])
{
	AddressSpaces *spaces = with_files(FILES);

	/* All are there from the beginning on. */
	for (uint32_t tgid = 1; tgid <= NUMBERS; tgid++)
		give(spaces, make_mapping(1, 0, tgid, 1, 1000, 1001, 0));
	for (int i = 0; i < EVENTS; i++)
		give_event(spaces, &events[i]);
	return spaces;
}

static void test_random_against_replay(void **state)
{
	unsigned replaced = 0, noticed = 0;

	(void)state;
	for (unsigned seed = 1; seed <= 100; seed++) {
		unsigned random = seed;
		Event events[EVENTS];
		AddressSpaces *spaces;

		make_events(events, &random);
		spaces = make_spaces(events);
		assert_int_equal(count_differences(spaces, events, random, &replaced), 0);
		/* Another truth does not fit. */
		for (int i = 0; i < EVENTS; i++)
			events[i].file = 1 + events[i].file % FILES * (i % 2);
		noticed += count_differences(spaces, events, random, &replaced) > 0;
		address_spaces_free(spaces);
	}
	assert_true(replaced > 10000);
	assert_true(noticed > 80);
}

/* What was found out for one moment may be used at all others of the same generation. */
static void test_one_answer_a_generation(void **state)
{
	unsigned same = 0;

	(void)state;
	for (unsigned seed = 1; seed <= 30; seed++) {
		unsigned random = seed;
		Event events[EVENTS];
		AddressSpaces *spaces;

		make_events(events, &random);
		spaces = make_spaces(events);
		for (int query = 0; query < 5000; query++) {
			uint32_t tgid = 1 + rand_r(&random) % NUMBERS;
			uint64_t from = rand_r(&random) % (10 * EVENTS + 20);
			uint64_t a = rand_r(&random) % (10 * EVENTS + 20);
			uint64_t b = a + rand_r(&random) % 100;
			uint64_t avma = rand_r(&random) % SPAN;

			if (address_spaces_generation(spaces, tgid, a) !=
			    address_spaces_generation(spaces, tgid, b))
				continue;
			same++;
			assert_int_equal(address_spaces_replaced(spaces, tgid, from, a, avma),
					 address_spaces_replaced(spaces, tgid, from, b, avma));
		}
		address_spaces_free(spaces);
	}
	assert_true(same > 10000);
}

/* A process whose number is first heard of when it is forked, or execs. */
static void test_generation_at_the_begin(void **state)
{
	AddressSpaces *spaces = with_files(1);

	(void)state;
	give(spaces, make_mapping(10, 0, PROCESS, 1, 0x1000, 0x2000, 0));
	give(spaces, make_space(20, SPACE_EXEC, CHILD, 0));
	assert_true(address_spaces_replaced(spaces, CHILD, 15, 20, 0x1000));
	assert_false(address_spaces_replaced(spaces, CHILD, 15, 19, 0x1000));
	assert_int_not_equal(address_spaces_generation(spaces, CHILD, 19),
			     address_spaces_generation(spaces, CHILD, 20));
	address_spaces_free(spaces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_same_again),
		cmocka_unit_test(test_exec_and_fork),
		cmocka_unit_test(test_random_against_replay),
		cmocka_unit_test(test_one_answer_a_generation),
		cmocka_unit_test(test_generation_at_the_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
