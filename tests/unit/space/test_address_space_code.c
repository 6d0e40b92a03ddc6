/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code made at run time in the address spaces of processes. */
#include "address_space.h"
#include "make_record.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PROCESS 100
#define CHILD	200
#define LIBRARY 1 /* the first file; all others are code's */

static void give(AddressSpaces *spaces, struct record *record)
{
	address_spaces_add(spaces, record);
	free(record);
}

static AddressSpaces *with_files(uint32_t count)
{
	AddressSpaces *spaces = address_spaces_new();

	give(spaces, make_file(LIBRARY, 0, "/lib/libfoo.so", 0));
	for (uint32_t id = 2; id <= count; id++)
		give(spaces, make_file(id, FILE_JIT, "/tmp/perf-100.map", 0));
	return spaces;
}

static uint32_t file_at(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t ns, uint64_t avma)
{
	Location location = address_spaces_locate(spaces, ns_tgid, ns, avma);

	return location.file ? location.file->id : 0;
}

static void collect_file(void *user, const MappedFile *file, uint64_t svma)
{
	(void)svma;
	*(unsigned *)user |= 1U << file->id;
}

static unsigned ever_at(AddressSpaces *spaces, uint32_t ns_tgid, uint64_t avma)
{
	unsigned ids = 0;

	address_spaces_locate_any(spaces, ns_tgid, avma, collect_file, &ids);
	return ids;
}

/* In any order, before the memory that it lies in is mapped, too. */
static void test_over_mappings(void **state)
{
	AddressSpaces *spaces = with_files(3);

	(void)state;
	give(spaces, make_code(30, PROCESS, 3, 0x1100, 0x1180, 0x1000));
	give(spaces, make_code(20, PROCESS, 2, 0x1100, 0x1200, 0x800));
	give(spaces, make_mapping(10, 0, PROCESS, LIBRARY, 0x1000, 0x2000, 0));
	give(spaces, make_mapping(25, 0, PROCESS, LIBRARY, 0x1000, 0x2000, 0));
	assert_int_equal(file_at(spaces, PROCESS, 19, 0x1100), LIBRARY);
	assert_int_equal(file_at(spaces, PROCESS, 20, 0x10ff), LIBRARY);
	assert_int_equal(file_at(spaces, PROCESS, 20, 0x1100), 2);
	assert_int_equal(file_at(spaces, PROCESS, 26, 0x1100), 2);
	assert_int_equal(file_at(spaces, PROCESS, 30, 0x1100), 3);
	assert_int_equal(file_at(spaces, PROCESS, 30, 0x1180), 2);
	assert_int_equal(file_at(spaces, PROCESS, 30, 0x1200), LIBRARY);
	assert_int_equal(address_spaces_locate(spaces, PROCESS, 29, 0x1110).svma, 0x910);
	assert_int_equal(address_spaces_locate(spaces, PROCESS, 30, 0x1110).svma, 0x110);
	assert_int_equal(ever_at(spaces, PROCESS, 0x1100), 1 << LIBRARY | 1 << 2 | 1 << 3);
	assert_int_equal(ever_at(spaces, PROCESS, 0x1180), 1 << LIBRARY | 1 << 2);
	address_spaces_free(spaces);
}

static void test_without_times_the_last_holds(void **state)
{
	AddressSpaces *spaces = with_files(3);

	(void)state;
	give(spaces, make_code(0, PROCESS, 2, 0x1000, 0x1100, 0));
	give(spaces, make_code(0, PROCESS, 3, 0x1080, 0x1100, 0));
	give(spaces, make_code(5, PROCESS, 2, 0x1100, 0x1000, 0)); /* no range */
	assert_int_equal(file_at(spaces, PROCESS, 0, 0x107f), 2);
	assert_int_equal(file_at(spaces, PROCESS, 0, 0x1080), 3);
	assert_int_equal(file_at(spaces, PROCESS, 9, 0x1080), 3);
	assert_int_equal(file_at(spaces, CHILD, 9, 0x1080), 0);
	address_spaces_free(spaces);
}

/* What a child inherits is that of the moment; its own lies over it. */
static void test_fork_inherits(void **state)
{
	AddressSpaces *spaces = with_files(5);

	(void)state;
	give(spaces, make_mapping(1, 0, PROCESS, LIBRARY, 0x1000, 0x9000, 0));
	give(spaces, make_space(20, SPACE_FORK, CHILD, PROCESS));
	give(spaces, make_space(30, SPACE_FORK, 300, CHILD));
	give(spaces, make_space(40, SPACE_FORK, 400, 300));
	give(spaces, make_space(50, SPACE_EXEC, 400, 0));
	/* The memory becomes executable again in the child. */
	give(spaces, make_mapping(35, 0, 300, LIBRARY, 0x1000, 0x9000, 0));
	give(spaces, make_code(10, PROCESS, 2, 0x1000, 0x2000, 0));
	give(spaces, make_code(25, PROCESS, 3, 0x1000, 0x2000, 0));
	give(spaces, make_code(36, 300, 4, 0x1800, 0x1900, 0));
	give(spaces, make_code(60, 400, 5, 0x5000, 0x6000, 0));
	assert_int_equal(file_at(spaces, PROCESS, 70, 0x1000), 3);
	assert_int_equal(file_at(spaces, CHILD, 70, 0x1000), 2);
	assert_int_equal(file_at(spaces, 300, 70, 0x1000), 2);
	assert_int_equal(file_at(spaces, 300, 70, 0x1800), 4);
	assert_int_equal(file_at(spaces, 300, 35, 0x1800), 2);
	assert_int_equal(file_at(spaces, 400, 49, 0x1800), 4);
	assert_int_equal(file_at(spaces, 400, 50, 0x1800), 0);
	assert_int_equal(file_at(spaces, 400, 60, 0x5000), 5);
	assert_int_equal(ever_at(spaces, CHILD, 0x1000), 1 << LIBRARY | 1 << 2);
	assert_int_equal(ever_at(spaces, 400, 0x1800), 1 << LIBRARY | 1 << 2 | 1 << 4);
	assert_int_equal(ever_at(spaces, 400, 0x5000), 1 << LIBRARY | 1 << 5);
	address_spaces_free(spaces);
}

/* The time says which image code belongs to; code without a time belongs to all images with the
 * pid. */
static void test_exec_and_reused_numbers(void **state)
{
	AddressSpaces *spaces = with_files(4);

	(void)state;
	give(spaces, make_mapping(1, 0, PROCESS, LIBRARY, 0x9000, 0xa000, 0));
	give(spaces, make_space(20, SPACE_EXEC, PROCESS, 0));
	give(spaces, make_space(40, SPACE_FORK, PROCESS, CHILD));
	give(spaces, make_code(10, PROCESS, 2, 0x1000, 0x2000, 0));
	give(spaces, make_code(30, PROCESS, 3, 0x1000, 0x2000, 0));
	give(spaces, make_code(0, PROCESS, 4, 0x5000, 0x6000, 0));
	assert_int_equal(file_at(spaces, PROCESS, 19, 0x1000), 2);
	assert_int_equal(file_at(spaces, PROCESS, 20, 0x1000), 0);
	assert_int_equal(file_at(spaces, PROCESS, 39, 0x1000), 3);
	assert_int_equal(file_at(spaces, PROCESS, 40, 0x1000), 0);
	for (uint64_t ns = 0; ns < 50; ns++)
		assert_int_equal(file_at(spaces, PROCESS, ns, 0x5000), 4);
	address_spaces_free(spaces);
}

static void test_generation(void **state)
{
	AddressSpaces *spaces = with_files(2);
	const uint64_t changes[] = {10, 15, 20, 30, 35, 40};
	uint32_t seen[ARRAY_LEN(changes)];

	(void)state;
	give(spaces, make_mapping(10, 0, PROCESS, LIBRARY, 0x1000, 0x2000, 0));
	give(spaces, make_space(20, SPACE_EXEC, PROCESS, 0));
	give(spaces, make_mapping(35, 0, PROCESS, LIBRARY, 0x1000, 0x2000, 0));
	give(spaces, make_code(40, PROCESS, 2, 0x1000, 0x2000, 0));
	give(spaces, make_code(15, PROCESS, 2, 0x1000, 0x2000, 0));
	give(spaces, make_code(30, PROCESS, 2, 0x1000, 0x2000, 0));
	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		seen[i] = address_spaces_generation(spaces, PROCESS, changes[i]);
		assert_int_equal(seen[i],
				 address_spaces_generation(spaces, PROCESS, changes[i] + 4));
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(seen[i], seen[k]);
	}
	address_spaces_free(spaces);
}

/* ---- against the plain rules, by looking at everything ----------------------- */

enum { EVENTS = 120, NUMBERS = 5, SPAN = 24 };

typedef struct Event {
	enum { MAPPING, CODE, FORK, EXEC } what;
	uint64_t ns;
	uint32_t tgid, other, file;
	uint64_t start, end;
} Event;

typedef struct Model {
	Event events[EVENTS];
} Model;

/* When tgid last began by ns (0: before all events), and of which process it is a copy (0: none).
 */
static uint64_t begin_of(const Model *model, uint32_t tgid, uint64_t ns, uint32_t *ret_parent)
{
	uint64_t begin = 0;

	*ret_parent = 0;
	for (int i = 0; i < EVENTS; i++) {
		const Event *event = &model->events[i];

		if (event->tgid != tgid || event->ns > ns)
			continue;
		if (event->what == FORK || event->what == EXEC) {
			begin = event->ns;
			*ret_parent = event->what == FORK ? event->other : 0;
		}
	}
	return begin;
}

static uint32_t model_find(const Model *model, int what, uint32_t tgid, uint64_t ns, uint64_t avma)
{
	uint32_t parent;
	uint64_t begin = begin_of(model, tgid, ns, &parent), best_ns = 0;
	uint32_t found = 0;

	for (int i = 0; i < EVENTS; i++) {
		const Event *event = &model->events[i];

		if ((int)event->what == what && event->tgid == tgid && event->ns <= ns &&
		    event->start <= avma && avma < event->end && event->ns >= best_ns) {
			found = event->file;
			best_ns = event->ns;
		}
	}
	if (found && (best_ns >= begin || (what == CODE && best_ns == 0)))
		return found;
	/* All events have different times, so the parent just before the fork. */
	return parent ? model_find(model, what, parent, begin - 1, avma) : 0;
}

static void make_event(Model *model, int i, unsigned *random)
{
	Event *event = &model->events[i];

	*event = (Event){
		.what = rand_r(random) % 4,
		.ns = 10 * (i + 1),
		.tgid = 1 + rand_r(random) % NUMBERS,
		.other = 1 + rand_r(random) % NUMBERS,
		.file = i + 1,
		.start = rand_r(random) % SPAN,
	};
	event->end = event->start + 1 + rand_r(random) % 8;
	if (event->what == CODE && rand_r(random) % 4 == 0)
		event->ns = 0;
}

static void give_event(AddressSpaces *spaces, const Event *event)
{
	switch (event->what) {
	case MAPPING:
		give(spaces, make_mapping(event->ns, 0, event->tgid, event->file, event->start,
					  event->end, 0));
		break;
	case CODE:
		give(spaces,
		     make_code(event->ns, event->tgid, event->file, event->start, event->end, 0));
		break;
	case FORK:
		give(spaces, make_space(event->ns, SPACE_FORK, event->tgid, event->other));
		break;
	case EXEC:
		give(spaces, make_space(event->ns, SPACE_EXEC, event->tgid, 0));
		break;
	}
}

static void count_file(void *user, const MappedFile *file, uint64_t svma)
{
	(void)svma;
	((unsigned *)user)[file->id]++;
}

static void ask(AddressSpaces *spaces, const Model *model, unsigned *random)
{
	uint64_t ns = 5 + 10 * (rand_r(random) % (EVENTS + 1)), avma = rand_r(random) % (SPAN + 8);
	uint32_t tgid = 1 + rand_r(random) % NUMBERS;
	unsigned ever[EVENTS + 1] = {};
	uint32_t expected = model_find(model, CODE, tgid, ns, avma);

	if (!expected)
		expected = model_find(model, MAPPING, tgid, ns, avma);
	assert_int_equal(file_at(spaces, tgid, ns, avma), expected);
	if (!expected)
		return;
	address_spaces_locate_any(spaces, tgid, avma, count_file, ever);
	assert_int_not_equal(ever[expected], 0);
}

static void test_random_against_scan(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 100; seed++) {
		AddressSpaces *spaces = with_files(EVENTS);
		unsigned random = seed;
		Model model;

		for (int i = 0; i < EVENTS; i++)
			make_event(&model, i, &random);
		/* All processes are there from the beginning, before any event. */
		for (uint32_t tgid = 1; tgid <= NUMBERS; tgid++)
			give(spaces, make_mapping(1, 0, tgid, LIBRARY, 1000, 1001, 0));
		/* Code with times comes in any order: here backwards. */
		for (int i = EVENTS; i-- > 0;)
			if (model.events[i].what == CODE && model.events[i].ns > 0)
				give_event(spaces, &model.events[i]);
		for (int i = 0; i < EVENTS; i++)
			if (model.events[i].what != CODE || model.events[i].ns == 0)
				give_event(spaces, &model.events[i]);
		for (int query = 0; query < 300; query++)
			ask(spaces, &model, &random);
		address_spaces_free(spaces);
	}
}

/* A long chain of forks, and more code than a walk along it could bear. */
static void test_much_code(void **state)
{
	enum { CODES = 50000, FORKS = 100000 };
	AddressSpaces *spaces = with_files(3);

	(void)state;
	for (uint32_t i = 1; i <= FORKS; i++)
		give(spaces, make_space(2 * CODES + i, SPACE_FORK, PROCESS + i, PROCESS + i - 1));
	for (uint64_t i = 0; i < CODES; i++)
		give(spaces,
		     make_code(i + 1, PROCESS, 2 + i % 2, 0x1000 + i, 0x1000 + 2 * CODES - i, 0));
	for (uint64_t i = 0; i < CODES; i++)
		assert_int_equal(file_at(spaces, PROCESS, i + 1, 0x1000 + CODES - 1), 2 + i % 2);
	for (uint32_t i = 1; i <= FORKS; i++)
		assert_int_equal(file_at(spaces, PROCESS + i, 3 * CODES + i, 0x1000), 2);
	address_spaces_free(spaces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_over_mappings),
		cmocka_unit_test(test_without_times_the_last_holds),
		cmocka_unit_test(test_fork_inherits),
		cmocka_unit_test(test_exec_and_reused_numbers),
		cmocka_unit_test(test_generation),
		cmocka_unit_test(test_random_against_scan),
		cmocka_unit_test(test_much_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
