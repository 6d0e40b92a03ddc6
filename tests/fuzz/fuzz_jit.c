/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What programs write about code that they make: a perf map, and a jitdump; and the table of the
 * code that they describe.
 */
#include "fuzz.h"
#include "jit_table.h"
#include "jitdump.h"
#include "perf_map.h"

#define ASKED_MAX 64

typedef struct Seen {
	const uint8_t *data;
	size_t size;
	uint64_t pieces, loads, moves, lines;
	uint64_t asked[ASKED_MAX]; /* addresses */
	size_t asked_count;
	VEC(PerfMapPiece) map;
} Seen;

/* The borders of a piece of code. */
static void ask(Seen *seen, uint64_t start, uint64_t size)
{
	if (seen->asked_count + 3 > ASKED_MAX)
		return;
	seen->asked[seen->asked_count++] = start - 1;
	seen->asked[seen->asked_count++] = start;
	seen->asked[seen->asked_count++] = start + size - 1;
}

static void visit_piece(void *user, const PerfMapPiece *piece)
{
	Seen *seen = user;
	const uint8_t *name = (const uint8_t *)piece->name;

	fuzz_require(piece->size > 0 && piece->start + piece->size > piece->start);
	fuzz_require(name > seen->data && piece->name_size > 0 &&
		     piece->name_size <= (size_t)(seen->data + seen->size - name));
	fuzz_require(!memchr(piece->name, '\n', piece->name_size));
	seen->pieces++;
	ask(seen, piece->start, piece->size);
	*vec_push(&seen->map) = *piece;
}

static void expect_text(const Seen *seen, const char *text)
{
	fuzz_require((const uint8_t *)text + strlen(text) < seen->data + seen->size);
}

static void visit_load(void *user, const JitdumpLoad *load)
{
	Seen *seen = user;

	fuzz_require(load->size > 0 && load->start + load->size > load->start);
	fuzz_require(load->offset <= seen->size && load->size <= seen->size - load->offset);
	expect_text(seen, load->name);
	seen->loads++;
	ask(seen, load->start, load->size);
}

static void visit_move(void *user, const JitdumpMove *move)
{
	Seen *seen = user;

	fuzz_require(move->size > 0 && move->new_start + move->size > move->new_start);
	seen->moves++;
	ask(seen, move->new_start, move->size);
}

static void visit_line(void *user, const JitdumpLine *line)
{
	Seen *seen = user;

	expect_text(seen, line->source);
	seen->lines++;
}

typedef struct Question {
	const JitTable *table;
	const JitPiece *youngest;
	uint64_t avma;
} Question;

static void expect_piece(void *user, const JitPiece *piece)
{
	Question *question = user;
	const char *source;
	uint32_t line;

	fuzz_require(piece->start <= question->avma && question->avma < piece->end);
	fuzz_require(piece->found && strlen(piece->name) <= JIT_NAME_MAX);
	if (question->youngest)
		fuzz_require(piece->ns < question->youngest->ns);
	else
		question->youngest = piece;
	if (jit_table_line(question->table, piece, question->avma, &source, &line))
		fuzz_require(line > 0 && strlen(source) <= JIT_NAME_MAX);
}

static void count_piece(void *user, const JitPiece *piece)
{
	size_t *count = user;

	fuzz_require(piece->found);
	++*count;
}

/* In a perf map the last line that holds an address is the one that counts. */
static void compare_with_last(const Seen *seen, const Question *question)
{
	const PerfMapPiece *last = NULL;

	for (size_t i = 0; i < seen->map.count; i++)
		if (question->avma - seen->map.items[i].start < seen->map.items[i].size)
			last = &seen->map.items[i];
	fuzz_require(!last == !question->youngest);
	if (last)
		fuzz_require(!strncmp(question->youngest->name, last->name,
				      strlen(question->youngest->name)));
}

static void ask_table(JitTable *table, const Seen *seen, bool is_map)
{
	bool whole = is_map && jit_table_summary(table)->no_room == 0;
	size_t found = 0;

	for (size_t i = 0; i < seen->asked_count; i++) {
		Question question = {.table = table, .avma = seen->asked[i]};

		jit_table_find(table, question.avma, expect_piece, &question);
		if (whole)
			compare_with_last(seen, &question);
	}
	jit_table_all_found(table, count_piece, &found);
	fuzz_require(found <= jit_table_summary(table)->pieces);
	jit_table_free(table);
}

static void read_map(Seen *seen)
{
	JitTable *table = jit_table_new();
	PerfMapSummary map;

	perf_map_parse((const char *)seen->data, seen->size, visit_piece, seen, &map);
	fuzz_require(map.pieces == seen->pieces && map.torn_bytes <= seen->size);
	jit_table_add_perf_map(table, (const char *)seen->data, seen->size);
	ask_table(table, seen, /* is_map= */ true);
}

static void take_youngest(void *user, const JitPiece *piece)
{
	const JitPiece **youngest = user;

	if (!*youngest)
		*youngest = piece;
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* A table that keeps only what has one of the addresses says the same of them. */
static void compare_with_limited(JitTable *table, Seen *seen)
{
	JitTable *limited = jit_table_new();

	qsort(seen->asked, seen->asked_count, sizeof(*seen->asked), compare_addresses);
	jit_table_limit(limited, seen->asked, seen->asked_count);
	jit_table_add_jitdump(limited, seen->data, seen->size);
	for (size_t i = 0; i < seen->asked_count; i++) {
		const JitPiece *all = NULL, *few = NULL;

		jit_table_find(table, seen->asked[i], take_youngest, &all);
		jit_table_find(limited, seen->asked[i], take_youngest, &few);
		fuzz_require(!all == !few);
		if (all)
			fuzz_require(all->ns == few->ns && all->start == few->start &&
				     all->svma == few->svma && !strcmp(all->name, few->name));
	}
	jit_table_free(limited);
}

static void read_dump(Seen *seen)
{
	JitdumpVisitor visitor = {visit_load, visit_move, visit_line, seen};
	JitTable *table = jit_table_new();
	JitdumpSummary dump;
	int r = jitdump_parse(seen->data, seen->size, &visitor, &dump);

	if (r == 0) {
		fuzz_require(dump.loads == seen->loads && dump.moves == seen->moves);
		fuzz_require(dump.lines == seen->lines && dump.torn_bytes <= seen->size);
	} else {
		fuzz_require(seen->loads + seen->moves + seen->lines == 0);
	}
	fuzz_require(jit_table_add_jitdump(table, seen->data, seen->size) == r);
	compare_with_limited(table, seen);
	ask_table(table, seen, /* is_map= */ false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *copy = fuzz_copy(data, size);
	Seen map = {.data = copy, .size = size}, dump = {.data = copy, .size = size};

	read_map(&map);
	read_dump(&dump);
	vec_free(&map.map);
	return 0;
}
