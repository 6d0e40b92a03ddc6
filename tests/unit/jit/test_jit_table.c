/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_table.h"
#include "jitdump_fixture.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static JitTable *from_map(const char *text)
{
	JitTable *table = jit_table_new();

	jit_table_add_perf_map(table, text, strlen(text));
	return table;
}

/* Takes the dump over. */
static JitTable *from_dump(Dump *dump)
{
	JitTable *table = jit_table_new();

	assert_int_equal(jit_table_add_jitdump(table, dump->items, dump->count), 0);
	vec_free(dump);
	return table;
}

typedef struct Found {
	char text[512]; /* "name@ns" of each, joined by blanks */
	const JitPiece *first;
} Found;

static void note(void *user, const JitPiece *piece)
{
	Found *found = user;
	size_t used = strlen(found->text);

	if (!found->first)
		found->first = piece;
	snprintf(found->text + used, sizeof(found->text) - used, "%s%s@%ju", used ? " " : "",
		 piece->name, (uintmax_t)piece->ns);
}

static Found find(JitTable *table, uint64_t avma)
{
	Found found = {};

	jit_table_find(table, avma, note, &found);
	return found;
}

#define assert_found(table, avma, expected) assert_string_equal(find(table, avma).text, expected)

static void test_map_the_last_holds(void **state)
{
	JitTable *table = from_map("1000 100 one\n1080 100 two\n2000 10 one\n");

	(void)state;
	assert_found(table, 0xfff, "");
	assert_found(table, 0x1000, "one@0");
	assert_found(table, 0x1080, "two@0");
	assert_found(table, 0x117f, "two@0");
	assert_found(table, 0x1180, "");
	assert_int_equal(find(table, 0x1000).first->svma, 0);
	assert_int_equal(find(table, 0x1080).first->svma, 0x100);
	assert_int_equal(find(table, 0x2000).first->svma, 0x200);
	assert_int_equal(find(table, 0x1080).first->start, 0x1080);
	assert_int_equal(find(table, 0x1080).first->end, 0x1180);
	assert_int_equal(jit_table_summary(table)->pieces, 3);
	assert_true(jit_table_summary(table)->no_times);
	jit_table_free(table);
}

/* The names of the wanted addresses are the same as without a limit, in one part or in several. */
static void test_only_wanted_addresses(void **state)
{
	static const uint64_t wanted[] = {0x0fff, 0x1010, 0x10ff, 0x3000, UINT64_MAX};
	static const char first[] = "1000 100 one\n1080 100 two\n2000 10 unwanted\nx\n";
	static const char second[] = "1000 40 three\n3000 1 four\n2fff 1 before\ny\n";
	JitTable *table = jit_table_new();

	(void)state;
	jit_table_limit(table, wanted, ARRAY_LEN(wanted));
	jit_table_add_perf_map(table, first, strlen(first));
	jit_table_add_perf_map(table, second, strlen(second));
	assert_found(table, 0x0fff, "");
	assert_found(table, 0x1010, "three@0");
	assert_found(table, 0x10ff, "two@0");
	assert_found(table, 0x3000, "four@0");
	assert_found(table, 0x2000, "");
	assert_found(table, 0x2fff, "");
	assert_int_equal(jit_table_summary(table)->pieces, 4);
	assert_int_equal(jit_table_summary(table)->malformed, 2);
	jit_table_free(table);
}

/* Of a dump, code that was moved to a wanted address is kept, too, with its lines. */
static void test_only_wanted_code(void **state)
{
	static const uint64_t wanted[] = {0x1004, 0x3000};
	JitTable *table = jit_table_new();
	const char *source;
	uint32_t line;
	Dump dump = {};
	size_t place;

	(void)state;
	jit_table_limit(table, wanted, ARRAY_LEN(wanted));
	dump_header(&dump, 0);
	dump_load(&dump, 10, 0x1000, 8, 1, "wanted");
	place = dump_lines_begin(&dump, 0x2000, 1);
	dump_line(&dump, 0x2000, 7, "moved.js");
	dump_end(&dump, place);
	dump_load(&dump, 11, 0x2000, 8, 2, "moved");
	dump_load(&dump, 12, 0x4000, 8, 3, "unwanted");
	dump_move(&dump, 13, 0x4000, 0x5000, 8, 3);
	dump_move(&dump, 14, 0x2000, 0x3000, 8, 2);
	assert_int_equal(jit_table_add_jitdump(table, dump.items, dump.count), 0);
	assert_found(table, 0x1004, "wanted@10");
	assert_found(table, 0x3000, "moved@14");
	assert_true(jit_table_line(table, find(table, 0x3000).first, 0x3000, &source, &line));
	assert_int_equal(line, 7);
	assert_found(table, 0x4000, "");
	assert_found(table, 0x5000, "");
	assert_int_equal(jit_table_summary(table)->pieces, 3);
	assert_int_equal(jit_table_summary(table)->moves_unknown, 0);
	jit_table_free(table);
	vec_free(&dump);
}

static void test_said_twice_is_one(void **state)
{
	JitTable *table = from_map("1000 100 a\n1000 100 b\n1000 100 a\n1000 100 a\n2000 10 c\n");

	(void)state;
	assert_found(table, 0x1000, "a@0");
	assert_int_equal(find(table, 0x1000).first->svma, 0);
	assert_int_equal(find(table, 0x2000).first->svma, 0x200);
	assert_int_equal(jit_table_summary(table)->pieces, 3);
	jit_table_free(table);
}

static void test_names(void **state)
{
	_cleanup_free_ char *text = xcalloc(1, JIT_NAME_MAX + 100);
	JitTable *table;

	(void)state;
	strcpy(text, "1000 10 ");
	memset(text + 8, 'x', JIT_NAME_MAX + 1);
	strcat(text, "\n");
	table = from_map(text);
	assert_int_equal(strlen(find(table, 0x1000).first->name), JIT_NAME_MAX);
	assert_int_equal(jit_table_summary(table)->names_cut, 1);
	jit_table_free(table);

	table = jit_table_new();
	jit_table_add_perf_map(table, "1000 10 a\0b\n2000 10 \0\n3000 1", 28);
	assert_found(table, 0x1000, "a@0");
	assert_found(table, 0x2000, "@0");
	assert_int_equal(jit_table_summary(table)->torn_bytes, 6);
	jit_table_free(table);
}

/* Offsets have a maximum; what would pass it is dropped. */
static void test_no_room(void **state)
{
	JitTable *table = from_map("1000 8000000000000 half\n"
				   "10000000000000 8000000000001 too-much\n"
				   "20000000000000 8000000000000 other-half\n"
				   "1 1 one-more\n");

	(void)state;
	assert_found(table, 0x1000, "half@0");
	assert_found(table, 0x10000000000000, "");
	assert_found(table, 0x20000000000000, "other-half@0");
	assert_found(table, 1, "");
	assert_int_equal(jit_table_summary(table)->no_room, 2);
	jit_table_free(table);
}

static void test_dump_tells_times_apart(void **state)
{
	Dump dump = {};
	JitTable *table;

	(void)state;
	dump_header(&dump, 0);
	dump_load(&dump, 10, 0x1000, 32, 1, "first");
	dump_load(&dump, 20, 0x1010, 32, 2, "second");
	dump_load(&dump, 15, 0x1000, 4, 3, "between");
	table = from_dump(&dump);
	assert_found(table, 0x1000, "between@15 first@10");
	assert_found(table, 0x1004, "first@10");
	assert_found(table, 0x1010, "second@20 first@10");
	assert_found(table, 0x1020, "second@20");
	/* The code of the first: behind the headers and its name. */
	assert_int_equal(find(table, 0x1004).first->svma, 40 + 16 + 40 + 6);
	jit_table_free(table);

	dump_header(&dump, 1);
	dump_load(&dump, 10, 0x1000, 32, 1, "first");
	dump_load(&dump, 5, 0x1010, 32, 2, "second");
	table = from_dump(&dump);
	assert_true(jit_table_summary(table)->no_times);
	assert_found(table, 0x1010, "second@0");
	jit_table_free(table);
}

static void test_moves(void **state)
{
	const char *source;
	uint32_t line;
	Dump dump = {};
	JitTable *table;
	size_t place;

	(void)state;
	dump_header(&dump, 0);
	place = dump_lines_begin(&dump, 0x1000, 1);
	dump_line(&dump, 0x1004, 7, "a.js");
	dump_end(&dump, place);
	dump_load(&dump, 10, 0x1000, 32, 1, "f");
	dump_load(&dump, 11, 0x3000, 32, 2, "other");
	dump_move(&dump, 20, 0x1000, 0x3010, 64, 1);
	dump_move(&dump, 30, 0x9000, 0x4000, 32, 9);
	table = from_dump(&dump);
	assert_found(table, 0x1000, "f@10");
	assert_found(table, 0x300f, "other@11");
	assert_found(table, 0x3010, "f@20 other@11");
	assert_found(table, 0x302f, "f@20"); /* not longer than it was */
	assert_found(table, 0x3030, "");
	assert_found(table, 0x4000, "");
	assert_int_equal(find(table, 0x1000).first->svma, find(table, 0x3010).first->svma);
	assert_true(jit_table_line(table, find(table, 0x3014).first, 0x3014, &source, &line));
	assert_int_equal(line, 7);
	assert_false(jit_table_line(table, find(table, 0x3013).first, 0x3013, &source, &line));
	assert_int_equal(jit_table_summary(table)->moves_unknown, 1);
	jit_table_free(table);
}

static uint32_t line_at(JitTable *table, uint64_t avma)
{
	const char *source;
	uint32_t line = 0;

	if (!jit_table_line(table, find(table, avma).first, avma, &source, &line))
		return 0;
	assert_string_equal(source, line < 100 ? "a.js" : "b.js");
	return line;
}

/* A perf map has no lines. */
static void test_map_has_no_lines(void **state)
{
	JitTable *table = from_map("1000 100 one\n");

	(void)state;
	assert_int_equal(line_at(table, 0x1000), 0);
	assert_int_equal(line_at(table, 0x10ff), 0);
	jit_table_free(table);
}

static void test_lines(void **state)
{
	Dump dump = {};
	JitTable *table;
	size_t place;

	(void)state;
	dump_header(&dump, 0);
	/* Never loaded. */
	place = dump_lines_begin(&dump, 0x5000, 2);
	dump_line(&dump, 0x5000, 1, "a.js");
	dump_line(&dump, 0x5001, 1, "a.js");
	dump_end(&dump, place);
	/* Not in order; one of two of one address; one at the very end. */
	place = dump_lines_begin(&dump, 0x1000, 6);
	dump_line(&dump, 0x1010, 20, "a.js");
	dump_line(&dump, 0x1000, 10, "a.js");
	dump_line(&dump, 0x1008, 99, "a.js");
	dump_line(&dump, 0x1008, 100, "b.js");
	dump_line(&dump, 0x1020, 1, "a.js");
	dump_line(&dump, 0x1018, 0, "a.js");
	dump_end(&dump, place);
	dump_load(&dump, 10, 0x1000, 32, 1, "f");
	dump_load(&dump, 11, 0x2000, 32, 2, "without");
	/* One before the code, one behind it: all of that code are nonsense. */
	for (int i = 0; i < 2; i++) {
		place = dump_lines_begin(&dump, 0x4000, 2);
		dump_line(&dump, 0x4000, 40, "a.js");
		dump_line(&dump, i ? 0x3fff : 0x4021, 41, "a.js");
		dump_end(&dump, place);
		dump_load(&dump, 12 + i, 0x4000 + 0x20 * i, 32, 3 + i, "nonsense");
	}
	place = dump_lines_begin(&dump, 0x3000, 1);
	dump_line(&dump, 0x3000, 30, "a.js");
	dump_end(&dump, place);
	table = from_dump(&dump);
	assert_int_equal(line_at(table, 0x4000), 0);
	assert_int_equal(line_at(table, 0x1000), 10);
	assert_int_equal(line_at(table, 0x1007), 10);
	assert_int_equal(line_at(table, 0x1008), 100);
	assert_int_equal(line_at(table, 0x1010), 20);
	assert_int_equal(line_at(table, 0x1018), 0);
	assert_int_equal(line_at(table, 0x2000), 0);
	assert_int_equal(jit_table_summary(table)->lines_unused, 2 + 2 + 2 + 1);
	jit_table_free(table);
}

static void test_refused(void **state)
{
	JitTable *table = jit_table_new();

	(void)state;
	assert_int_equal(jit_table_add_jitdump(table, "JiTD", 4), -EBADMSG);
	assert_found(table, 0, "");
	jit_table_free(table);
}

/* ---- against the plain rules, by looking at everything ----------------------- */

enum { EVENTS = 300, SPAN = 64, NAMES = 6, BIG = 1 << 16 };

typedef struct Event {
	uint64_t ns, start, end;
	unsigned name;
} Event;

/* Functions are found in any order, and returned in the order of the file. */
static void test_all_found(void **state)
{
	JitTable *table = from_map("1000 100 one\n2000 10 never\n1080 100 two\n1090 8 three\n");
	Found found = {};

	(void)state;
	jit_table_all_found(table, note, &found);
	assert_string_equal(found.text, "");
	find(table, 0x1090);
	find(table, 0x1081);
	find(table, 0x1000);
	find(table, 0x1082);
	jit_table_all_found(table, note, &found);
	assert_string_equal(found.text, "one@0 two@0 three@0");
	jit_table_free(table);
}

typedef struct Check {
	const Event *events;
	uint64_t avma;
	unsigned count;
	char seen[EVENTS]; /* which events were visited */
	int *owner;	   /* by SVMA: name + 1 of whose it is */
	uint64_t last_ns;
} Check;

static void check_piece(void *user, const JitPiece *piece)
{
	Check *check = user;
	uint64_t svma = piece->svma + check->avma - piece->start;

	assert_true(piece->start <= check->avma && check->avma < piece->end);
	assert_true(check->count == 0 || piece->ns < check->last_ns);
	check->last_ns = piece->ns;
	check->count++;
	assert_uint_in_range(svma, 0, BIG - 1);
	/* An offset means one name, whenever and wherever. */
	if (check->owner[svma])
		assert_int_equal(check->owner[svma], piece->name[0]);
	check->owner[svma] = piece->name[0];
	for (int i = EVENTS - 1; i >= 0; i--) {
		const Event *event = &check->events[i];

		if (event->ns == piece->ns && event->start == piece->start &&
		    event->end == piece->end && (int)('a' + event->name) == piece->name[0])
			check->seen[i] = 1;
	}
}

/* Event i was the meaning of avma at some time: no later one of its time covers it. */
static bool is_meant(const Event *events, int i, uint64_t avma)
{
	if (avma < events[i].start || avma >= events[i].end)
		return false;
	for (int k = i + 1; k < EVENTS; k++)
		if (events[k].ns == events[i].ns && events[k].start <= avma && avma < events[k].end)
			return false;
	return true;
}

static void check_table(JitTable *table, const Event *events)
{
	_cleanup_free_ int *owner = xcalloc(BIG, sizeof(*owner));

	for (uint64_t avma = 0; avma < 2 * SPAN; avma++) {
		Check check = {.events = events, .avma = avma, .owner = owner};
		unsigned meant = 0;

		jit_table_find(table, avma, check_piece, &check);
		for (int i = 0; i < EVENTS; i++) {
			if (!is_meant(events, i, avma))
				continue;
			meant++;
			assert_true(check.seen[i]);
		}
		assert_int_equal(check.count, meant);
	}
}

static void make_events(Event *events, unsigned seed, unsigned times)
{
	unsigned random = seed;

	for (int i = 0; i < EVENTS; i++) {
		events[i].ns = times ? 1 + rand_r(&random) % times : 0;
		events[i].start = rand_r(&random) % SPAN;
		events[i].end = events[i].start + 1 + rand_r(&random) % (1 + seed % 16);
		events[i].name = rand_r(&random) % NAMES;
	}
}

static void test_random_maps(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 50; seed++) {
		char text[EVENTS * 64], *p = text;
		Event events[EVENTS];
		JitTable *table;

		make_events(events, seed, 0);
		for (int i = 0; i < EVENTS; i++)
			p += sprintf(p, "%jx %jx %c\n", (uintmax_t)events[i].start,
				     (uintmax_t)(events[i].end - events[i].start),
				     'a' + (int)events[i].name);
		table = from_map(text);
		check_table(table, events);
		jit_table_free(table);
	}
}

static void test_random_dumps(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 50; seed++) {
		Event events[EVENTS];
		JitTable *table;
		Dump dump = {};

		make_events(events, seed, EVENTS / 2);
		dump_header(&dump, 0);
		for (int i = 0; i < EVENTS; i++)
			dump_load(&dump, events[i].ns, events[i].start,
				  events[i].end - events[i].start, i,
				  (char[]){'a' + events[i].name, '\0'});
		table = from_dump(&dump);
		check_table(table, events);
		jit_table_free(table);
	}
}

static void count_piece(void *user, const JitPiece *piece)
{
	(void)piece;
	++*(uint64_t *)user;
}

/* All at one address, with times and without: anything quadratic would take minutes. */
static void test_many(void **state)
{
	enum { COUNT = 100000 };
	VEC(char) text = {};
	Dump dump = {};
	JitTable *table;
	uint64_t count = 0;

	(void)state;
	dump_header(&dump, 0);
	for (uint64_t i = 0; i < COUNT; i++) {
		char line[64];
		int length =
			sprintf(line, "1000 %jx f%ju\n", (uintmax_t)(1 + i % 999), (uintmax_t)i);

		for (int k = 0; k < length; k++)
			*vec_push(&text) = line[k];
		dump_load(&dump, i + 1, 0x1000 + i % 3, 4, i, "f");
	}
	table = jit_table_new();
	jit_table_add_perf_map(table, text.items, text.count);
	for (int i = 0; i < COUNT; i++)
		assert_found(table, 0x1000, "f99999@0");
	assert_int_equal(jit_table_summary(table)->pieces, COUNT);
	jit_table_free(table);
	vec_free(&text);
	table = from_dump(&dump);
	jit_table_find(table, 0x1002, count_piece, &count);
	assert_int_equal(count, COUNT);
	jit_table_free(table);
}

static void test_flipped_bits(void **state)
{
	uint64_t count = 0;
	Dump dump = {};
	size_t place;

	(void)state;
	dump_header(&dump, 0);
	place = dump_lines_begin(&dump, 0x1000, 2);
	dump_line(&dump, 0x1000, 1, "a");
	dump_line(&dump, 0x1008, 2, "\xff");
	dump_end(&dump, place);
	dump_load(&dump, 10, 0x1000, 32, 1, "f");
	dump_move(&dump, 20, 0x1000, 0x3000, 32, 1);
	dump_load(&dump, 30, 0x1000, 32, 1, "f");
	for (size_t bit = 0; bit < 8 * dump.count; bit++) {
		JitTable *table = jit_table_new();

		dump.items[bit / 8] ^= 1 << bit % 8;
		if (jit_table_add_jitdump(table, dump.items, dump.count) == 0)
			for (uint64_t avma = 0x1000; avma < 0x3020; avma += 0x10)
				jit_table_find(table, avma, count_piece, &count);
		jit_table_free(table);
		dump.items[bit / 8] ^= 1 << bit % 8;
	}
	assert_true(count > 0);
	vec_free(&dump);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map_the_last_holds),
		cmocka_unit_test(test_only_wanted_addresses),
		cmocka_unit_test(test_only_wanted_code),
		cmocka_unit_test(test_said_twice_is_one),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_dump_tells_times_apart),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_all_found),
		cmocka_unit_test(test_random_maps),
		cmocka_unit_test(test_random_dumps),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_map_has_no_lines),
		cmocka_unit_test(test_flipped_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
