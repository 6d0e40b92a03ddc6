/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory of the tables against a model of what lies where, asked through the recorder's own
 * mapping of it and through the kernel's maps. Needs the right to make BPF maps.
 */
#include "test_tools.h"
#include "unwind_memory.h"
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>

#define LIMIT ((uint64_t)CHUNKS_MAX * CHUNK_CELLS) /* cells */

/* Returns NULL, and why, where the kernel refuses. */
static UnwindMemory *new_memory(void)
{
	UnwindMemory *memory = NULL;
	int error = unwind_memory_new(&memory);

	if (!error)
		error = unwind_memory_ready(memory);
	if (!error)
		return memory;
	print_message("skipped: no BPF maps can be made: %s\n", strerror(-error));
	assert_true(error == -EPERM || error == -EACCES);
	return NULL;
}

#define begin()                                                                                    \
	({                                                                                         \
		UnwindMemory *begun_ = new_memory();                                               \
                                                                                                   \
		if (!begun_)                                                                       \
			skip();                                                                    \
		begun_;                                                                            \
	})

/* Rules are told apart by their offset. */
static struct unwind_rule rule_number(int32_t number)
{
	return (struct unwind_rule){.cfa = CFA_REG, .cfa_reg = DWARF_RSP, .cfa_offset = number};
}

/* Row i is at 2 * i and has rule (first_rule + i) % rules, in the table's own numbers: reversed. */
static UnwindTable make_table(size_t rows, uint32_t rules, int32_t first_rule)
{
	UnwindTable table = {};

	for (uint32_t i = 0; i < rules; i++)
		*vec_push(&table.rules) = rule_number(first_rule + (int32_t)(rules - 1 - i));
	vec_reserve(&table.rows, rows);
	for (size_t i = 0; i < rows; i++)
		*vec_push(&table.rows) =
			(struct unwind_row){.pc = 2 * i, .rule = rules - 1 - i % rules};
	return table;
}

static uint32_t add_table(UnwindMemory *memory, size_t rows, uint32_t rules, int32_t first_rule)
{
	UnwindTable table = make_table(rows, rules, first_rule);
	uint32_t row;

	assert_int_equal(unwind_memory_add_table(memory, &table, &row), 0);
	unwind_table_free(&table);
	return row;
}

static int32_t rule_at(const UnwindMemory *memory, uint32_t row, uint32_t rows, uint32_t pc)
{
	struct unwind_mapping mapping = {.row = row, .rows = rows};
	struct unwind_rule rule;

	assert_true(unwind_memory_find_rule(memory, &mapping, pc, &rule));
	assert_int_equal(rule.cfa, CFA_REG);
	return rule.cfa_offset;
}

/* A cell as BPF programs see it. */
static union unwind_cell kernel_cell(const UnwindMemory *memory, uint32_t cell)
{
	uint32_t number = cell >> CHUNK_CELLS_SHIFT, key = cell & (CHUNK_CELLS - 1), id;
	_cleanup_close_ int fd = -1;
	union unwind_cell found;

	assert_int_equal(bpf_map_lookup_elem(unwind_memory_chunks_fd(memory), &number, &id), 0);
	fd = bpf_map_get_fd_by_id(id);
	assert_true(fd >= 0);
	assert_int_equal(bpf_map_lookup_elem(fd, &key, &found), 0);
	return found;
}

/* ---- random adds and removes --------------------------------------------------------------- */

typedef struct Piece {
	bool is_run;
	uint32_t cell, cells;
	uint32_t count; /* rows or mappings */
	int32_t mark;	/* its first rule, or its mappings' row */
} Piece;

typedef VEC(Piece) Pieces;

#define PIECE_RULES 7

static struct unwind_mapping mapping_of(int32_t mark, uint32_t i)
{
	return (struct unwind_mapping){.start = 4096 * i, .last = 4096 * i + 9, .row = mark};
}

static Piece add_piece(UnwindMemory *memory, int32_t mark)
{
	Piece piece = {.is_run = random_below(2), .mark = mark};

	if (piece.is_run) {
		VEC(struct unwind_mapping) run = {};

		piece.count = piece.cells = 1 + random_below(300);
		for (uint32_t i = 0; i < piece.count; i++)
			*vec_push(&run) = mapping_of(mark, i);
		assert_int_equal(unwind_memory_add_run(memory, run.items, piece.count, &piece.cell),
				 0);
		vec_free(&run);
		return piece;
	}
	piece.count = 1 + random_below(random_below(4) ? 2000 : 200000);
	piece.cells = (piece.count + CELL_ROWS - 1) / CELL_ROWS;
	piece.cell = add_table(memory, piece.count, PIECE_RULES, mark) / CELL_ROWS;
	return piece;
}

static void remove_piece(UnwindMemory *memory, const Piece *piece)
{
	if (piece->is_run)
		unwind_memory_remove_run(memory, piece->cell, piece->count);
	else
		unwind_memory_remove_table(memory, piece->cell * CELL_ROWS, piece->count);
}

/* What is there at its first, its last, and a place between. */
static bool is_whole(const UnwindMemory *memory, const Piece *piece)
{
	uint32_t places[] = {0, random_below(piece->count), piece->count - 1};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		uint32_t place = places[i], row = piece->cell * CELL_ROWS;
		union unwind_cell cell;

		if (piece->is_run) {
			struct unwind_mapping want = mapping_of(piece->mark, place);

			cell = kernel_cell(memory, piece->cell + place);
			if (memcmp(&cell.mapping, &want, sizeof(want)))
				return false;
			continue;
		}
		cell = kernel_cell(memory, piece->cell + place / CELL_ROWS);
		if (cell.rows[place % CELL_ROWS].pc != 2 * place ||
		    rule_at(memory, row, piece->count, 2 * place + 1) !=
			    piece->mark + (int32_t)(place % PIECE_RULES))
			return false;
	}
	return true;
}

static void check_pieces(const UnwindMemory *memory, const Pieces *pieces)
{
	UnwindMemoryCounts counts = unwind_memory_counts(memory);
	uint64_t cells = 0;

	for (size_t i = 0; i < pieces->count; i++) {
		const Piece *piece = &pieces->items[i];

		cells += piece->cells;
		assert_true(piece->cell + piece->cells <= counts.cells);
		assert_true(is_whole(memory, piece));
		for (size_t j = 0; j < i; j++)
			assert_true(piece->cell >= pieces->items[j].cell + pieces->items[j].cells ||
				    pieces->items[j].cell >= piece->cell + piece->cells);
	}
	assert_int_equal(counts.cells_used, cells);
}

static void test_random(void **state)
{
	UnwindMemory *memory = begin();
	UnwindMemoryCounts counts;
	Pieces pieces = {};
	Piece altered;

	(void)state;
	for (int32_t step = 0; step < 600; step++) {
		size_t number = random_below(60);

		if (number < pieces.count) {
			remove_piece(memory, &pieces.items[number]);
			pieces.items[number] = pieces.items[--pieces.count];
		} else {
			*vec_push(&pieces) = add_piece(memory, 10 * (step % 100));
		}
		if (step % 20 == 0)
			check_pieces(memory, &pieces);
	}
	check_pieces(memory, &pieces);
	altered = pieces.items[0];
	altered.mark++;
	assert_false(is_whole(memory, &altered));
	while (pieces.count > 0)
		remove_piece(memory, &pieces.items[--pieces.count]);
	/* All holes have become one: it takes as much as there is, without another chunk. */
	counts = unwind_memory_counts(memory);
	assert_int_equal(counts.cells_used, 0);
	assert_int_equal(add_table(memory, counts.cells * CELL_ROWS, 3, 0), 0);
	assert_int_equal(unwind_memory_counts(memory).chunks, counts.chunks);
	assert_int_equal(unwind_memory_counts(memory).cells_used, counts.cells);
	vec_free(&pieces);
	unwind_memory_free(memory);
}

/* ---- growth -------------------------------------------------------------------------------- */

static void test_across_chunks(void **state)
{
	UnwindMemory *memory = begin();
	uint32_t rows = CHUNK_CELLS * CELL_ROWS, row, edge = rows - 40;

	(void)state;
	assert_int_equal(unwind_memory_counts(memory).chunks, 0);
	assert_int_equal(add_table(memory, 40, 1, 0), 0);
	row = add_table(memory, rows, 5, 100); /* all but the first cells, and some of the next */
	assert_int_equal(row, 40);
	assert_int_equal(unwind_memory_counts(memory).chunks, 1);
	assert_int_equal(unwind_memory_counts(memory).cells, 2 * CHUNK_CELLS);
	for (uint32_t i = edge - 10; i < edge + 10; i++) {
		uint32_t cell = (row + i) / CELL_ROWS;

		assert_int_equal(rule_at(memory, row, rows, 2 * i), 100 + i % 5);
		assert_int_equal(kernel_cell(memory, cell).rows[(row + i) % CELL_ROWS].pc, 2 * i);
	}
	unwind_memory_free(memory);
}

/* A mapping that names rows which are not there, as a torn one could. */
static void test_no_such_table(void **state)
{
	UnwindMemory *memory = begin();
	struct unwind_mapping mapping = {.row = CHUNK_CELLS * CELL_ROWS - 1, .rows = 1};
	struct unwind_rule rule;

	(void)state;
	assert_true(unwind_memory_find_rule(memory, &mapping, 0, &rule));
	mapping.rows = 2;
	assert_false(unwind_memory_find_rule(memory, &mapping, 0, &rule));
	mapping = (struct unwind_mapping){.row = UINT32_MAX, .rows = UINT32_MAX};
	assert_false(unwind_memory_find_rule(memory, &mapping, 0, &rule));
	mapping = (struct unwind_mapping){};
	assert_false(unwind_memory_find_rule(memory, &mapping, 0, &rule));
	unwind_memory_free(memory);
}

/* What can't be had even with all chunks makes none. */
static void test_too_large(void **state)
{
	UnwindMemory *memory = begin();
	struct unwind_mapping one = {.start = 1};
	uint32_t cell;

	(void)state;
	assert_int_equal(unwind_memory_add_run(memory, &one, 1, &cell), 0);
	assert_int_equal(unwind_memory_add_run(memory, &one, LIMIT, &cell), -ENOSPC);
	assert_int_equal(unwind_memory_counts(memory).chunks, 0);
	assert_int_equal(unwind_memory_counts(memory).cells_used, 1);
	unwind_memory_free(memory);
}

static uint64_t available_mb(void)
{
	_cleanup_free_ char *text = output_of("awk '/MemAvailable/ { print $2 }' /proc/meminfo");

	return strtoull(text, NULL, 10) >> 10;
}

/* All of it: three tables of a quarter less one cell, and exactly the rest, not a cell more. */
static void test_full(void **state)
{
	UnwindMemory *memory;
	struct unwind_mapping mapping = {};
	UnwindTable table;
	uint32_t rows = (LIMIT / 4 - 1) * CELL_ROWS, rest = (LIMIT / 4 + 3) * CELL_ROWS, row, cell;

	(void)state;
	if (available_mb() < 2048)
		skip_because("less than 2 GB of memory to be had");
	memory = begin();
	table = make_table(rest + 1, 3, 0);
	table.rows.count = rows;
	for (int i = 0; i < 3; i++)
		assert_int_equal(unwind_memory_add_table(memory, &table, &row), 0);
	table.rows.count = rest + 1;
	assert_int_equal(unwind_memory_add_table(memory, &table, &row), -ENOSPC);
	assert_int_equal(unwind_memory_counts(memory).chunks, CHUNKS_MAX * 3 / 4 - 1);
	table.rows.count = rest;
	assert_int_equal(unwind_memory_add_table(memory, &table, &row), 0);
	assert_int_equal(row, 3 * rows);
	assert_int_equal(unwind_memory_counts(memory).chunks, CHUNKS_MAX - 1);
	assert_int_equal(unwind_memory_counts(memory).cells_used, LIMIT);
	assert_int_equal(unwind_memory_add_run(memory, &mapping, 1, &cell), -ENOSPC);
	unwind_memory_remove_table(memory, rows, rows);
	table.rows.count = rows;
	assert_int_equal(unwind_memory_add_table(memory, &table, &row), 0);
	assert_int_equal(row, rows);
	unwind_table_free(&table);
	unwind_memory_free(memory);
}

/* ---- rules --------------------------------------------------------------------------------- */

static void test_rules_shared(void **state)
{
	UnwindMemory *memory = begin();
	uint32_t before = unwind_memory_counts(memory).rules, first, second;

	(void)state;
	first = add_table(memory, 20, 10, 100);
	assert_int_equal(unwind_memory_counts(memory).rules, before + 10);
	second = add_table(memory, 20, 10, 105); /* half of them are known */
	assert_int_equal(unwind_memory_counts(memory).rules, before + 15);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(rule_at(memory, first, 20, 2 * i), 100 + i % 10);
		assert_int_equal(rule_at(memory, second, 20, 2 * i), 105 + i % 10);
	}
	assert_int_equal(unwind_memory_counts(memory).rows_without_rule, 0);
	unwind_memory_free(memory);
}

static void test_too_many_rules(void **state)
{
	UnwindMemory *memory = begin();
	uint32_t room = RULES_MAX - unwind_memory_counts(memory).rules, row;
	struct unwind_mapping mapping = {.rows = 2 * room};
	struct unwind_rule rule;

	(void)state;
	mapping.row = add_table(memory, 2 * room, room, 0);
	assert_int_equal(unwind_memory_counts(memory).rules, RULES_MAX);
	assert_int_equal(unwind_memory_counts(memory).rows_without_rule, 0);
	/* Three of the next table's five are known. */
	row = add_table(memory, 10, 5, room - 3);
	assert_int_equal(unwind_memory_counts(memory).rules, RULES_MAX);
	assert_int_equal(unwind_memory_counts(memory).rows_without_rule, 4);
	for (uint32_t i = 0; i < 10; i++) {
		struct unwind_mapping second = {.row = row, .rows = 10};

		assert_true(unwind_memory_find_rule(memory, &second, 2 * i, &rule));
		if (i % 5 < 3) {
			assert_int_equal(rule.cfa_offset, room - 3 + i % 5);
		} else {
			assert_int_equal(rule.cfa, CFA_NONE);
			assert_int_equal(rule.extra, NONE_NO_ROOM);
		}
	}
	assert_int_equal(rule_at(memory, mapping.row, 2 * room, 2 * (room + 7)), 7);
	unwind_memory_free(memory);
}

/* ---- the end ------------------------------------------------------------------------------- */

static size_t open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* Of BPF maps and of address space that is kept free, in this process. */
static size_t special_mappings(void)
{
	_cleanup_free_ char *text = output_of(
		"grep -c -e bpf-map -e '---p 00000000 00:00 0 *$' /proc/%d/maps || true", getpid());

	return strtoul(text, NULL, 10);
}

static void test_nothing_left(void **state)
{
	UnwindMemory *memory = begin();
	size_t descriptors, mappings;

	(void)state;
	unwind_memory_free(memory); /* what the C library keeps for good is there now */
	descriptors = open_descriptors();
	mappings = special_mappings();
	memory = begin();
	add_table(memory, 2 * CHUNK_CELLS * CELL_ROWS, 3, 0);
	assert_true(open_descriptors() > descriptors);
	assert_true(special_mappings() >= mappings + 4);
	unwind_memory_free(memory);
	assert_int_equal(open_descriptors(), descriptors);
	assert_int_equal(special_mappings(), mappings);
	unwind_memory_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),	       cmocka_unit_test(test_across_chunks),
		cmocka_unit_test(test_no_such_table),  cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_full),	       cmocka_unit_test(test_rules_shared),
		cmocka_unit_test(test_too_many_rules), cmocka_unit_test(test_nothing_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
