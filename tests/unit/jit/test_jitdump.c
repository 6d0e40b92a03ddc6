/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jitdump.h"
#include "jitdump_fixture.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct Seen {
	char text[4096]; /* what was visited, a line each */
	size_t size;	 /* of the dump: loads must lie inside */
	JitdumpSummary summary;
	int result;
} Seen;

static void note(Seen *seen, const char *format, ...)
{
	size_t used = strlen(seen->text);
	va_list args;

	va_start(args, format);
	vsnprintf(seen->text + used, sizeof(seen->text) - used, format, args);
	va_end(args);
}

static void see_load(void *user, const JitdumpLoad *load)
{
	Seen *seen = user;

	assert_true(load->size > 0 && load->offset <= seen->size &&
		    load->size <= seen->size - load->offset);
	note(seen, "load %s %jx+%jx #%ju at %ju\n", load->name, (uintmax_t)load->start,
	     (uintmax_t)load->size, (uintmax_t)load->index, (uintmax_t)load->ns);
}

static void see_move(void *user, const JitdumpMove *move)
{
	note(user, "move %jx->%jx+%jx #%ju at %ju\n", (uintmax_t)move->old_start,
	     (uintmax_t)move->new_start, (uintmax_t)move->size, (uintmax_t)move->index,
	     (uintmax_t)move->ns);
}

static void see_line(void *user, const JitdumpLine *line)
{
	note(user, "line %jx %jx %s:%u\n", (uintmax_t)line->code_start, (uintmax_t)line->address,
	     line->source, line->line);
}

/* A copy of just that size, so that ASan sees a step too far. */
static Seen *parse(const void *bytes, size_t size)
{
	_cleanup_free_ uint8_t *copy = xmalloc(size ? size : 1);
	Seen *seen = xcalloc(1, sizeof(*seen));
	const JitdumpVisitor visitor = {see_load, see_move, see_line, seen};

	memcpy(copy, bytes, size);
	seen->size = size;
	seen->result = jitdump_parse(copy, size, &visitor, &seen->summary);
	return seen;
}

/* One record of each kind, of odd lengths. */
static void make_sample(Dump *dump)
{
	size_t place;

	dump_header(dump, 0);
	place = dump_lines_begin(dump, 0x7000, 2);
	dump_line(dump, 0x7000, 10, "a.js");
	dump_line(dump, 0x7004, 11, "\xff");
	dump_end(dump, place);
	place = dump_begin(dump, 4, 2);
	dump_bytes(dump, "unwinding", 9);
	dump_end(dump, place);
	dump_load(dump, 100, 0x7000, 9, 1, "first one");
	dump_move(dump, 200, 0x7000, 0x8000, 9, 1);
	dump_load(dump, 300, 0x7000, 16, 2, "");
	dump_end(dump, dump_begin(dump, 3, 400));
}

#define SAMPLE_LINES                                                                               \
	"line 7000 7000 a.js:10\n"                                                                 \
	"line 7000 7004 a.js:11\n"
#define SAMPLE_FIRST  "load first one 7000+9 #1 at 100\n"
#define SAMPLE_MOVE   "move 7000->8000+9 #1 at 200\n"
#define SAMPLE_SECOND "load  7000+10 #2 at 300\n"

static void test_all_kinds(void **state)
{
	Dump dump = {};
	Seen *seen;

	(void)state;
	make_sample(&dump);
	seen = parse(dump.items, dump.count);
	assert_int_equal(seen->result, 0);
	assert_string_equal(seen->text, SAMPLE_LINES SAMPLE_FIRST SAMPLE_MOVE SAMPLE_SECOND);
	assert_int_equal(seen->summary.pid, 4711);
	assert_int_equal(seen->summary.loads, 2);
	assert_int_equal(seen->summary.moves, 1);
	assert_int_equal(seen->summary.lines, 2);
	assert_int_equal(seen->summary.malformed + seen->summary.unknown, 0);
	assert_int_equal(seen->summary.torn_bytes, 0);
	assert_false(seen->summary.no_times);
	free(seen);
	vec_free(&dump);
}

/* Parses a dump in parts of that size, as from a file. */
static Seen *parse_in_parts(const Dump *dump, size_t part)
{
	Seen *seen = xcalloc(1, sizeof(*seen));
	const JitdumpVisitor visitor = {see_load, see_move, see_line, seen};
	JitdumpParser parser = {.visitor = &visitor};

	seen->size = dump->count;
	for (;;) {
		size_t left = parser.offset < dump->count ? dump->count - parser.offset : 0, used;
		size_t got = MIN(left, part);
		_cleanup_free_ uint8_t *copy = xmalloc(got + 1);

		if (got)
			memcpy(copy, dump->items + parser.offset, got);
		assert_int_equal(jitdump_parse_part(&parser, copy, got, got == part, &used), 0);
		if (got == part && used)
			continue;
		jitdump_end(&parser, copy + used, got - used);
		seen->summary = parser.summary;
		return seen;
	}
}

/* What is visited does not depend on the size of the parts; a record that is larger is skipped. */
static void test_parts(void **state)
{
	Dump dump = {};

	(void)state;
	make_sample(&dump);
	for (size_t part = 100; part < dump.count + 20; part++) {
		Seen *seen = parse_in_parts(&dump, part);

		assert_string_equal(seen->text,
				    SAMPLE_LINES SAMPLE_FIRST SAMPLE_MOVE SAMPLE_SECOND);
		assert_int_equal(seen->summary.malformed + seen->summary.torn_bytes, 0);
		free(seen);
	}
	dump_load(&dump, 500, 0x9000, 300, 3, "large");
	dump_load(&dump, 600, 0xa000, 3, 4, "small");
	for (size_t part = 100; part < 300; part++) {
		Seen *seen = parse_in_parts(&dump, part);

		assert_string_equal(seen->text, SAMPLE_LINES SAMPLE_FIRST SAMPLE_MOVE SAMPLE_SECOND
				    "load small a000+3 #4 at 600\n");
		assert_int_equal(seen->summary.malformed, 1);
		assert_int_equal(seen->summary.torn_bytes, 0);
		free(seen);
	}
	vec_free(&dump);
}

/* The first record is where the header says, and times of another clock are none. */
static void test_header(void **state)
{
	Dump dump = {};
	Seen *seen;

	(void)state;
	dump_header(&dump, 1);
	dump.items[8] = 48;
	dump_u64(&dump, 0xdead);
	dump_load(&dump, 100, 0x7000, 9, 1, "f");
	seen = parse(dump.items, dump.count);
	assert_int_equal(seen->result, 0);
	assert_string_equal(seen->text, "load f 7000+9 #1 at 0\n");
	assert_true(seen->summary.no_times);
	free(seen);
	vec_free(&dump);
}

/* V8's addresses of lines are too high by 0x40. */
static void test_v8_lines(void **state)
{
	Dump dump = {};
	size_t place;
	Seen *seen;

	(void)state;
	dump_header(&dump, 0);
	memcpy(dump.items + 16, "\xef\xbe\xad\xde", 4);
	place = dump_lines_begin(&dump, 0x7000, 2);
	dump_line(&dump, 0x7040, 1, "a.js");
	dump_line(&dump, 0x7045, 2, "a.js");
	dump_end(&dump, place);
	seen = parse(dump.items, dump.count);
	assert_string_equal(seen->text, "line 7000 7000 a.js:1\nline 7000 7005 a.js:2\n");
	free(seen);
	vec_free(&dump);
}

static void check_refused(size_t place, uint8_t value, int expected)
{
	Dump dump = {};
	Seen *seen;

	make_sample(&dump);
	dump.items[place] = value;
	seen = parse(dump.items, dump.count);
	assert_int_equal(seen->result, expected);
	assert_string_equal(seen->text, "");
	free(seen);
	vec_free(&dump);
}

static void test_refused(void **state)
{
	static const uint8_t other_order[64] = {0x4a, 0x69, 0x54, 0x44, 0, 0, 0, 1};
	Seen *seen = parse(other_order, sizeof(other_order));

	(void)state;
	assert_int_equal(seen->result, -EPROTONOSUPPORT);
	free(seen);
	check_refused(0, 'x', -EBADMSG);
	check_refused(4, 2, -EPROTONOSUPPORT);
	check_refused(8, 39, -EBADMSG);
	check_refused(11, 1, -EBADMSG); /* a header of 16 MiB */
}

static void test_torn_at_every_byte(void **state)
{
	static const char whole[] = SAMPLE_LINES SAMPLE_FIRST SAMPLE_MOVE SAMPLE_SECOND;
	Dump dump = {};

	(void)state;
	make_sample(&dump);
	for (size_t size = 0; size < dump.count; size++) {
		Seen *seen = parse(dump.items, size);

		assert_int_equal(seen->result, size < 40 ? -EBADMSG : 0);
		assert_memory_equal(seen->text, whole, strlen(seen->text));
		if (size == dump.count - 1) {
			assert_string_equal(seen->text, whole);
			assert_int_equal(seen->summary.torn_bytes, 15);
		}
		assert_int_equal(seen->summary.malformed + seen->summary.unknown, 0);
		free(seen);
	}
	vec_free(&dump);
}

static void test_flipped_bits(void **state)
{
	Dump dump = {};

	(void)state;
	make_sample(&dump);
	for (size_t bit = 0; bit < 8 * dump.count; bit++) {
		Seen *seen;

		dump.items[bit / 8] ^= 1 << bit % 8;
		seen = parse(dump.items, dump.count);
		if (bit / 8 >= 40)
			assert_int_equal(seen->result, 0);
		free(seen);
		dump.items[bit / 8] ^= 1 << bit % 8;
	}
	vec_free(&dump);
}

/* A sample whose record `change` has made malformed, with a good load behind it. */
static void check_malformed(void (*add)(Dump *dump), const char *expected, uint64_t malformed,
			    uint64_t unknown)
{
	Dump dump = {};
	_cleanup_free_ char *text = xasprintf("%sload good 1+1 #1 at 1\n", expected);
	Seen *seen;

	dump_header(&dump, 0);
	add(&dump);
	dump_load(&dump, 1, 1, 1, 1, "good");
	seen = parse(dump.items, dump.count);
	assert_int_equal(seen->result, 0);
	assert_string_equal(seen->text, text);
	assert_int_equal(seen->summary.malformed, malformed);
	assert_int_equal(seen->summary.unknown, unknown);
	free(seen);
	vec_free(&dump);
}

static void add_unknown(Dump *dump)
{
	dump_end(dump, dump_begin(dump, 77, 1));
}

static void add_short_load(Dump *dump)
{
	dump_end(dump, dump_begin(dump, 0, 1));
}

static void add_load_of_nothing(Dump *dump)
{
	dump_load(dump, 1, 0x7000, 0, 1, "f");
}

static void add_load_that_wraps(Dump *dump)
{
	dump_load(dump, 1, UINT64_MAX, 2, 1, "f");
}

static void add_load_without_code(Dump *dump)
{
	size_t place = dump->count;
	uint64_t size = 5;

	dump_load(dump, 1, 0x7000, 4, 1, "f");
	memcpy(dump->items + place + 40, &size, sizeof(size));
}

static void add_load_without_name_end(Dump *dump)
{
	dump_load(dump, 1, 0x7000, 1, 1, "f");
	dump->items[dump->count - 2] = 'x';
}

static void add_move_of_nothing(Dump *dump)
{
	dump_move(dump, 1, 1, 2, 0, 1);
}

static void add_too_few_lines(Dump *dump)
{
	size_t place = dump_lines_begin(dump, 0x7000, UINT64_MAX);

	dump_line(dump, 0x7000, 1, "a");
	dump_end(dump, place);
}

static void add_filled_lines(Dump *dump)
{
	size_t place = dump_lines_begin(dump, 0x7000, 1);

	dump_line(dump, 0x7000, 1, "a");
	dump_bytes(dump, "1234567", 7);
	dump_end(dump, place);
}

static void add_too_many_lines(Dump *dump)
{
	size_t place = dump_lines_begin(dump, 0x7000, 1);

	dump_line(dump, 0x7000, 1, "a");
	dump_bytes(dump, "12345678", 8);
	dump_end(dump, place);
}

static void add_same_source_as_none(Dump *dump)
{
	size_t place = dump_lines_begin(dump, 0x7000, 1);

	dump_line(dump, 0x7000, 1, "\xff");
	dump_end(dump, place);
}

static void test_malformed(void **state)
{
	(void)state;
	check_malformed(add_unknown, "", 0, 1);
	check_malformed(add_short_load, "", 1, 0);
	check_malformed(add_load_of_nothing, "", 1, 0);
	check_malformed(add_load_that_wraps, "", 1, 0);
	check_malformed(add_load_without_code, "", 1, 0);
	check_malformed(add_load_without_name_end, "", 1, 0);
	check_malformed(add_move_of_nothing, "", 1, 0);
	check_malformed(add_too_few_lines, "", 1, 0);
	check_malformed(add_too_many_lines, "", 1, 0);
	check_malformed(add_filled_lines, "line 7000 7000 a:1\n", 0, 0);
	check_malformed(add_same_source_as_none, "", 1, 0);
}

/* Nothing can be found behind a record whose length can't be. */
static void test_impossible_length(void **state)
{
	Dump dump = {};
	Seen *seen;

	(void)state;
	dump_header(&dump, 0);
	dump_load(&dump, 1, 0x7000, 1, 1, "f");
	dump_u32(&dump, 0);
	dump_u32(&dump, 15);
	dump_u64(&dump, 0);
	dump_load(&dump, 1, 0x7000, 1, 1, "g");
	seen = parse(dump.items, dump.count);
	assert_string_equal(seen->text, "load f 7000+1 #1 at 1\n");
	assert_int_equal(seen->summary.malformed, 1);
	assert_int_equal(seen->summary.torn_bytes, 16 + 16 + 40 + 2 + 1);
	free(seen);
	vec_free(&dump);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_all_kinds),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_v8_lines),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_torn_at_every_byte),
		cmocka_unit_test(test_flipped_bits),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_impossible_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
