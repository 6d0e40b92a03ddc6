/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_table.c - pieces of code, with the addresses and times at which they were in memory.
 *
 * Code has a name, an offset and lines; a piece is code at an address from a moment on. Code that
 * is moved, or written again without a change, is a new piece of the same code, so that its
 * addresses are named once.
 */
#include "jit_table.h"
#include "perf_map.h"
#include "range_history.h"
#include <string.h>

typedef struct Line {
	uint64_t offset; /* in the code */
	uint32_t line;
	uint32_t source; /* Strings */
	size_t order;	 /* in the dump: of two with one offset the later one counts */
} Line;

typedef struct Code {
	uint64_t svma, size;
	uint64_t start;	 /* its first address */
	uint32_t name;	 /* Strings */
	uint32_t latest; /* its latest piece */
	uint32_t next;	 /* the next one with the same hash, or MAP_NONE */
	size_t first_line, line_count;
} Code;

/* What is done in the next pass over a jitdump; without wanted addresses only the last one. */
enum pass { PASS_FIND, PASS_FIND_MOVED, PASS_ADD };

struct JitTable {
	VEC(JitPiece) pieces; /* in the order of the file */
	VEC(uint32_t) found;
	VEC(Code) codes;
	VEC(Line)
	lines; /* each code's, in order of offset; those from pending_line on belong to the next
		  code */
	Strings strings;
	Map same;	      /* hash of (start, size, name) -> codes */
	Map by_index;	      /* JitdumpLoad::index -> codes */
	RangeHistory history; /* value: piece */
	bool history_built;
	const uint64_t *wanted; /* sorted; NULL = all addresses are */
	size_t wanted_count;
	enum pass pass;
	Map moved;  /* JitdumpLoad::index of code that was moved to one of them */
	Map starts; /* JitdumpLoad::start of code that is kept */
	JitdumpVisitor visitor;
	uint64_t room; /* of a perf map: the next free SVMA */
	size_t pending_line;
	uint64_t pending_start; /* the code that the pending lines belong to */
	JitTableSummary summary;
};

JitTable *jit_table_new(void)
{
	return xcalloc(1, sizeof(JitTable));
}

void jit_table_free(JitTable *table)
{
	if (!table)
		return;
	vec_free(&table->pieces);
	vec_free(&table->found);
	vec_free(&table->codes);
	vec_free(&table->lines);
	strings_free(&table->strings);
	map_free(&table->same);
	map_free(&table->by_index);
	map_free(&table->moved);
	map_free(&table->starts);
	range_history_free(&table->history);
	free(table);
}

const JitTableSummary *jit_table_summary(const JitTable *table)
{
	return &table->summary;
}

/* ---- pieces --------------------------------------------------------------- */

/* size: the maximum length of the name, which may be terminated earlier. */
static uint32_t intern_name(JitTable *table, const char *name, size_t size)
{
	char text[JIT_NAME_MAX + 1];
	size_t length = strnlen(name, size);

	if (length > JIT_NAME_MAX) {
		table->summary.names_cut++;
		length = JIT_NAME_MAX;
	}
	memcpy(text, name, length);
	text[length] = '\0';
	return strings_intern(&table->strings, text);
}

static void add_piece(JitTable *table, uint32_t number, uint64_t ns, uint64_t start, uint64_t size)
{
	Code *code = &table->codes.items[number];

	if (code->latest != MAP_NONE) {
		JitPiece *latest = &table->pieces.items[code->latest];

		/* The new piece replaces this one at all times. */
		if (latest->ns == ns && latest->start == start && latest->end <= start + size) {
			latest->repeated = true;
			table->summary.pieces--;
		}
	}
	code->latest = table->pieces.count;
	*vec_push(&table->pieces) = (JitPiece){
		.ns = ns,
		.start = start,
		.end = start + size,
		.svma = code->svma,
		.name = strings_get(&table->strings, code->name),
		.code = number,
	};
	table->summary.pieces++;
}

static uint64_t code_key(uint64_t start, uint64_t size, uint32_t name)
{
	return hash_mix(hash_mix(start, size), name);
}

/* Returns code without lines that is equal to this one, or MAP_NONE. */
static uint32_t find_same(const JitTable *table, uint64_t start, uint64_t size, uint32_t name)
{
	uint32_t i = map_get(&table->same, code_key(start, size, name));

	while (i != MAP_NONE) {
		const Code *code = &table->codes.items[i];

		if (code->start == start && code->size == size && code->name == name)
			break;
		i = code->next;
	}
	return i;
}

static uint32_t add_code(JitTable *table, const Code *wanted)
{
	uint64_t key = code_key(wanted->start, wanted->size, wanted->name);
	uint32_t number = table->codes.count;
	Code *code = vec_push(&table->codes);

	*code = *wanted;
	code->latest = code->next = MAP_NONE;
	if (code->line_count == 0) {
		code->next = map_get(&table->same, key);
		map_set(&table->same, key, number);
	}
	return number;
}

/* ---- from a perf map ------------------------------------------------------ */

void jit_table_limit(JitTable *table, const uint64_t *addresses, size_t count)
{
	table->wanted = addresses;
	table->wanted_count = count;
}

static bool is_wanted(const JitTable *table, uint64_t start, uint64_t size)
{
	size_t next;

	if (!table->wanted)
		return true;
	next = partition_point(middle, table->wanted_count, table->wanted[middle] < start);
	return next < table->wanted_count && table->wanted[next] - start < size;
}

static void add_map_piece(void *user, const PerfMapPiece *piece)
{
	JitTable *table = user;
	Code wanted = {.svma = table->room, .size = piece->size, .start = piece->start};
	uint32_t code;

	if (!is_wanted(table, piece->start, piece->size))
		return;
	wanted.name = intern_name(table, piece->name, piece->name_size);
	code = find_same(table, wanted.start, wanted.size, wanted.name);

	if (code == MAP_NONE) {
		if (wanted.size > JIT_SVMA_MAX - table->room) {
			table->summary.no_room++;
			return;
		}
		table->room += wanted.size;
		code = add_code(table, &wanted);
	}
	add_piece(table, code, 0, wanted.start, wanted.size);
}

void jit_table_add_perf_map(JitTable *table, const char *text, size_t size)
{
	PerfMapSummary summary;

	perf_map_parse(text, size, add_map_piece, table, &summary);
	table->summary.malformed += summary.malformed;
	table->summary.torn_bytes = summary.torn_bytes;
	table->summary.no_times = true;
}

/* ---- from a jitdump ------------------------------------------------------- */

static void find_load(void *user, const JitdumpLoad *load)
{
	JitTable *table = user;

	if (is_wanted(table, load->start, load->size) ||
	    map_get(&table->moved, load->index) != MAP_NONE)
		map_set(&table->starts, load->start, 0);
}

static void find_move(void *user, const JitdumpMove *move)
{
	JitTable *table = user;

	if (is_wanted(table, move->new_start, move->size))
		map_set(&table->moved, move->index, 0);
}

static void ignore_line(void *user, const JitdumpLine *line)
{
	(void)user;
	(void)line;
}

/* Whether code that begins there is kept. */
static bool is_kept(const JitTable *table, uint64_t start)
{
	return !table->wanted || map_get(&table->starts, start) != MAP_NONE;
}

static void drop_pending_lines(JitTable *table)
{
	table->summary.lines_unused += table->lines.count - table->pending_line;
	table->lines.count = table->pending_line;
}

static void add_line(void *user, const JitdumpLine *line)
{
	JitTable *table = user;
	size_t order;

	if (line->code_start != table->pending_start)
		drop_pending_lines(table);
	table->pending_start = line->code_start;
	if (!is_kept(table, line->code_start))
		return;
	order = table->lines.count;
	*vec_push(&table->lines) = (Line){
		.offset = line->address - line->code_start,
		.line = line->line,
		.source = intern_name(table, line->source, SIZE_MAX),
		.order = order,
	};
}

static int compare_lines(const void *a, const void *b)
{
	const Line *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Assigns the pending lines to code at [start, start + size). Returns how many there are. */
static size_t adopt_pending_lines(JitTable *table, uint64_t start, uint64_t size)
{
	size_t first = table->pending_line, count;

	if (table->pending_start != start)
		drop_pending_lines(table);
	/* A line outside of the code shows that all of them are wrong. */
	for (size_t i = first; i < table->lines.count; i++)
		if (table->lines.items[i].offset > size)
			drop_pending_lines(table);
	count = table->lines.count - first;
	if (count > 0)
		qsort(table->lines.items + first, count, sizeof(Line), compare_lines);
	table->pending_line = table->lines.count;
	return count;
}

static void add_load(void *user, const JitdumpLoad *load)
{
	JitTable *table = user;
	Code wanted = {
		.svma = load->offset,
		.size = load->size,
		.start = load->start,
		.first_line = table->pending_line,
	};
	uint32_t code = MAP_NONE;

	if (!is_kept(table, load->start)) {
		drop_pending_lines(table);
		return;
	}
	wanted.name = intern_name(table, load->name, SIZE_MAX);
	wanted.line_count = adopt_pending_lines(table, load->start, load->size);
	if (wanted.line_count == 0)
		code = find_same(table, wanted.start, wanted.size, wanted.name);
	if (code == MAP_NONE)
		code = add_code(table, &wanted);
	map_set(&table->by_index, load->index, code);
	add_piece(table, code, load->ns, wanted.start, wanted.size);
}

static void add_move(void *user, const JitdumpMove *move)
{
	JitTable *table = user;
	uint32_t code = map_get(&table->by_index, move->index);

	if (!is_wanted(table, move->new_start, move->size))
		return;
	if (code == MAP_NONE) {
		table->summary.moves_unknown++;
		return;
	}
	add_piece(table, code, move->ns, move->new_start,
		  MIN(move->size, table->codes.items[code].size));
}

void jit_table_begin_pass(JitTable *table, JitdumpParser *parser)
{
	if (!table->wanted)
		table->pass = PASS_ADD;
	table->visitor = table->pass == PASS_ADD
				 ? (JitdumpVisitor){add_load, add_move, add_line, table}
				 : (JitdumpVisitor){find_load, find_move, ignore_line, table};
	*parser = (JitdumpParser){.visitor = &table->visitor};
}

bool jit_table_end_pass(JitTable *table, const JitdumpParser *parser)
{
	if (table->pass != PASS_ADD) {
		bool moved = table->pass == PASS_FIND && table->moved.count > 0;

		table->pass = moved ? PASS_FIND_MOVED : PASS_ADD;
		return true;
	}
	table->pass = PASS_FIND;
	drop_pending_lines(table);
	table->summary.malformed = parser->summary.malformed;
	table->summary.unknown = parser->summary.unknown;
	table->summary.torn_bytes = parser->summary.torn_bytes;
	table->summary.no_times = parser->summary.no_times;
	return false;
}

int jit_table_add_jitdump(JitTable *table, const void *data, size_t size)
{
	JitdumpParser parser;
	size_t used;

	do {
		int r;

		jit_table_begin_pass(table, &parser);
		r = jitdump_parse_part(&parser, data, size, /* skip= */ false, &used);
		if (r < 0)
			return r;
		jitdump_end(&parser, (const uint8_t *)data + used, size - used);
	} while (jit_table_end_pass(table, &parser));
	return 0;
}

/* ---- questions ------------------------------------------------------------ */

static void build_history(JitTable *table)
{
	if (table->history_built)
		return;
	table->history_built = true;
	for (size_t i = 0; i < table->pieces.count; i++) {
		const JitPiece *piece = &table->pieces.items[i];

		if (piece->repeated)
			continue;
		range_history_add(&table->history, &(TimedRange){
							   .from_ns = piece->ns,
							   .start = piece->start,
							   .end = piece->end,
							   .value = i,
						   });
	}
}

static void find_piece(JitTable *table, uint32_t number,
		       void (*visit)(void *user, const JitPiece *piece), void *user)
{
	JitPiece *piece = &table->pieces.items[number];

	if (!piece->found)
		*vec_push(&table->found) = number;
	piece->found = true;
	visit(user, piece);
}

void jit_table_find(JitTable *table, uint64_t avma,
		    void (*visit)(void *user, const JitPiece *piece), void *user)
{
	const TimedRange *range;
	uint64_t ns = UINT64_MAX;

	build_history(table);
	/* A piece with the same time as a younger one was never valid. */
	while ((range = range_history_find(&table->history, ns, avma))) {
		find_piece(table, range->value, visit, user);
		if (range->from_ns == 0)
			break;
		ns = range->from_ns - 1;
	}
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

void jit_table_all_found(JitTable *table, void (*visit)(void *user, const JitPiece *piece),
			 void *user)
{
	if (table->found.count > 0)
		qsort(table->found.items, table->found.count, sizeof(uint32_t), compare_numbers);
	for (size_t i = 0; i < table->found.count; i++)
		visit(user, &table->pieces.items[table->found.items[i]]);
}

bool jit_table_line(const JitTable *table, const JitPiece *piece, uint64_t avma,
		    const char **ret_source, uint32_t *ret_line)
{
	const Code *code = &table->codes.items[piece->code];
	uint64_t offset = avma - piece->start;
	const Line *lines;
	size_t next;

	if (code->line_count == 0)
		return false;
	lines = table->lines.items + code->first_line;
	next = partition_point(middle, code->line_count, lines[middle].offset <= offset);
	if (next == 0 || lines[next - 1].line == 0)
		return false;
	*ret_source = strings_get(&table->strings, lines[next - 1].source);
	*ret_line = lines[next - 1].line;
	return true;
}
