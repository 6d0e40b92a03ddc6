/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory of the tables against a model of what lies where, asked through the recorder's own
 * mapping of it and through the kernel's maps. Needs the right to make BPF maps.
 */
#include "table_memory.h"
#include "test_tools.h"
#include <bpf/bpf.h>
#include <errno.h>

#define LIMIT ((uint64_t)CHUNKS_MAX * CHUNK_CELLS) /* cells */

/* Returns NULL, and why, where the kernel refuses. */
static TableMemory *new_memory(uint64_t size)
{
	TableMemory *memory = NULL;
	int error = table_memory_new(size, &memory);

	if (!error)
		error = table_memory_ready(memory);
	if (!error)
		return memory;
	print_message("skipped: no BPF maps can be made: %s\n", strerror(-error));
	assert_true(error == -EPERM || error == -EACCES);
	return NULL;
}

#define begin() begin_with(TABLE_MEMORY_MAX)
#define begin_with(size)                                                                           \
	({                                                                                         \
		TableMemory *begun_ = new_memory(size);                                            \
                                                                                                   \
		if (!begun_)                                                                       \
			skip();                                                                    \
		begun_;                                                                            \
	})

/* Rules are distinguished by their offset. */
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

static TableHandle add_table(TableMemory *memory, size_t rows, uint32_t rules, int32_t first_rule)
{
	UnwindTable table = make_table(rows, rules, first_rule);
	TableHandle place;

	assert_int_equal(table_memory_add_table(memory, &table, &place), 0);
	unwind_table_free(&table);
	return place;
}

static bool find_rule(const TableMemory *memory, TableHandle place, uint32_t pc,
		      struct unwind_rule *ret_rule)
{
	struct unwind_mapping mapping = {.row = place.row, .table = place.table};

	return table_memory_find_rule(memory, &mapping, pc, ret_rule);
}

static int32_t rule_at(const TableMemory *memory, TableHandle place, uint32_t pc)
{
	struct unwind_rule rule;

	assert_true(find_rule(memory, place, pc, &rule));
	assert_int_equal(rule.cfa, CFA_REG);
	return rule.cfa_offset;
}

/* A cell as BPF programs see it. */
static union unwind_cell kernel_cell(const TableMemory *memory, uint32_t cell)
{
	uint32_t number = cell >> CHUNK_CELLS_SHIFT, key = cell & (CHUNK_CELLS - 1), id;
	_cleanup_close_ int fd = -1;
	union unwind_cell found;

	assert_int_equal(bpf_map_lookup_elem(table_memory_chunks_fd(memory), &number, &id), 0);
	fd = bpf_map_get_fd_by_id(id);
	assert_true(fd >= 0);
	assert_int_equal(bpf_map_lookup_elem(fd, &key, &found), 0);
	return found;
}

/* ---- random adds and removes --------------------------------------------------------------- */

typedef struct Piece {
	bool is_run;
	TableHandle table;
	RunHandle run;
	uint32_t cell, cells; /* its head, and with that */
	uint32_t count;	      /* rows or mappings */
	int32_t mark;	      /* its first rule, or its mappings' row */
} Piece;

typedef VEC(Piece) Pieces;

#define PIECE_RULES 7

static struct unwind_mapping mapping_of(int32_t mark, uint32_t i)
{
	return (struct unwind_mapping){.start = 4096 * i, .last = 4096 * i + 9, .row = mark};
}

static Piece add_piece(TableMemory *memory, int32_t mark)
{
	Piece piece = {.is_run = random_below(2), .mark = mark};

	if (piece.is_run) {
		VEC(struct unwind_mapping) run = {};

		piece.count = 1 + random_below(300);
		piece.cells = piece.count + 1;
		for (uint32_t i = 0; i < piece.count; i++)
			*vec_push(&run) = mapping_of(mark, i);
		assert_int_equal(table_memory_add_run(memory, run.items, piece.count, &piece.run),
				 0);
		vec_free(&run);
		piece.cell = piece.run.cell;
		return piece;
	}
	piece.count = 1 + random_below(random_below(4) ? 2000 : 200000);
	piece.cells = 1 + (piece.count + CELL_ROWS - 1) / CELL_ROWS;
	assert_int_equal(table_memory_cells(piece.count), piece.cells);
	piece.table = add_table(memory, piece.count, PIECE_RULES, mark);
	piece.cell = piece.table.row / CELL_ROWS - 1;
	return piece;
}

static void remove_piece(TableMemory *memory, const Piece *piece)
{
	if (piece->is_run)
		table_memory_remove_run(memory, piece->run);
	else
		table_memory_remove_table(memory, piece->table);
}

/* The check of the BPF programs: is what was published still there? */
static bool has_mark(const TableMemory *memory, const Piece *piece)
{
	union unwind_cell head = kernel_cell(memory, piece->cell);

	return head.head.count == piece->count &&
	       head.head.cookie ==
		       (piece->is_run ? piece->run.mark : TABLE_COOKIE | piece->table.table);
}

/* What is there at its head, its first, its last, and a place between. */
static bool is_whole(const TableMemory *memory, const Piece *piece)
{
	uint32_t places[] = {0, random_below(piece->count), piece->count - 1};

	if (!has_mark(memory, piece))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		uint32_t place = places[i];
		union unwind_cell cell;

		if (piece->is_run) {
			struct unwind_mapping want = mapping_of(piece->mark, place);

			cell = kernel_cell(memory, piece->cell + 1 + place);
			if (memcmp(&cell.mapping, &want, sizeof(want)))
				return false;
			continue;
		}
		cell = kernel_cell(memory, piece->cell + 1 + place / CELL_ROWS);
		if (cell.rows[place % CELL_ROWS].pc != 2 * place ||
		    rule_at(memory, piece->table, 2 * place + 1) !=
			    piece->mark + (int32_t)(place % PIECE_RULES))
			return false;
	}
	return true;
}

static void check_pieces(const TableMemory *memory, const Pieces *pieces)
{
	TableMemoryCounts counts = table_memory_counts(memory);
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

/* Whatever has come in their places, none that is gone is taken for there. */
static void check_gone(const TableMemory *memory, const Pieces *gone)
{
	struct unwind_rule rule;

	for (size_t i = 0; i < gone->count; i++) {
		const Piece *piece = &gone->items[i];

		assert_false(has_mark(memory, piece));
		assert_false(!piece->is_run && find_rule(memory, piece->table, 0, &rule));
	}
}

static void test_random(void **state)
{
	TableMemory *memory = begin();
	TableMemoryCounts counts;
	Pieces pieces = {}, gone = {};
	Piece altered;
	TableHandle place;

	(void)state;
	for (int32_t step = 0; step < 600; step++) {
		size_t number = random_below(60);

		if (number < pieces.count) {
			remove_piece(memory, &pieces.items[number]);
			*vec_push(&gone) = pieces.items[number];
			pieces.items[number] = pieces.items[--pieces.count];
		} else {
			*vec_push(&pieces) = add_piece(memory, 10 * (step % 100));
		}
		if (step % 20 == 0)
			check_pieces(memory, &pieces);
	}
	check_pieces(memory, &pieces);
	assert_true(gone.count > 50);
	check_gone(memory, &gone);
	vec_free(&gone);
	altered = pieces.items[0];
	altered.mark++;
	assert_false(is_whole(memory, &altered));
	while (pieces.count > 0)
		remove_piece(memory, &pieces.items[--pieces.count]);
	/* All holes have become one: it takes as much as there is, without another chunk. */
	counts = table_memory_counts(memory);
	assert_int_equal(counts.cells_used, 0);
	place = add_table(memory, (counts.cells - 1) * CELL_ROWS, 3, 0);
	assert_int_equal(place.row, CELL_ROWS);
	assert_int_equal(table_memory_counts(memory).chunks, counts.chunks);
	assert_int_equal(table_memory_counts(memory).cells_used, counts.cells);
	vec_free(&pieces);
	table_memory_free(memory, false);
}

/* ---- growth -------------------------------------------------------------------------------- */

static bool has_chunk(int chunks_fd, uint32_t number)
{
	uint32_t id;

	return !bpf_map_lookup_elem(chunks_fd, &number, &id);
}

static void test_across_chunks(void **state)
{
	TableMemory *memory = begin();
	uint32_t rows = CHUNK_CELLS * CELL_ROWS, edge = rows - 48;
	TableHandle place;
	int chunks_fd;

	(void)state;
	assert_int_equal(table_memory_counts(memory).chunks, 0);
	assert_int_equal(add_table(memory, 40, 1, 0).row, CELL_ROWS);
	place = add_table(memory, rows, 5, 100); /* all but the first cells, and some of the next */
	assert_int_equal(place.row, 48);
	assert_int_equal(table_memory_counts(memory).chunks, 1);
	assert_int_equal(table_memory_counts(memory).cells, 2 * CHUNK_CELLS);
	for (uint32_t i = edge - 10; i < edge + 10; i++) {
		uint32_t cell = (place.row + i) / CELL_ROWS;

		assert_int_equal(rule_at(memory, place, 2 * i), 100 + i % 5);
		assert_int_equal(kernel_cell(memory, cell).rows[(place.row + i) % CELL_ROWS].pc,
				 2 * i);
	}
	chunks_fd = dup(table_memory_chunks_fd(memory));
	assert_true(has_chunk(chunks_fd, 0) && has_chunk(chunks_fd, 1));
	table_memory_free(memory, true);
	assert_false(has_chunk(chunks_fd, 0) || has_chunk(chunks_fd, 1));
	close(chunks_fd);
}

/* A mapping that names a table which is not there, as a torn one could, or an old one. */
static void test_no_such_table(void **state)
{
	TableMemory *memory = begin();
	TableHandle place, other;
	struct unwind_rule rule;

	(void)state;
	place = add_table(memory, 100, 3, 0);
	assert_true(find_rule(memory, place, 0, &rule));
	other = place;
	other.table++;
	assert_false(find_rule(memory, other, 0, &rule));
	other.table = 0;
	assert_false(find_rule(memory, other, 0, &rule));
	for (uint32_t row = 0; row < 3 * CELL_ROWS; row++) {
		other = (TableHandle){.row = row, .table = place.table};
		assert_int_equal(find_rule(memory, other, 0, &rule), row / CELL_ROWS == 1);
	}
	other = (TableHandle){.row = UINT32_MAX, .table = place.table};
	assert_false(find_rule(memory, other, 0, &rule));
	table_memory_remove_table(memory, (TableHandle){}); /* lies nowhere */
	table_memory_remove_table(memory, place);
	assert_false(find_rule(memory, place, 0, &rule));
	other = add_table(memory, 100, 3, 50); /* in its place */
	assert_int_equal(other.row, place.row);
	assert_false(find_rule(memory, place, 0, &rule));
	assert_int_equal(rule_at(memory, other, 0), 50);
	/* What is gone already takes nothing else with it. */
	table_memory_remove_table(memory, place);
	assert_int_equal(rule_at(memory, other, 0), 50);
	table_memory_free(memory, false);
}

/* What can't be had even with all chunks makes none. */
static void test_too_large(void **state)
{
	TableMemory *memory = begin();
	struct unwind_mapping one = {.start = 1};
	RunHandle place;

	(void)state;
	assert_int_equal(table_memory_add_run(memory, &one, 1, &place), 0);
	assert_int_equal(table_memory_add_run(memory, &one, LIMIT, &place), -ENOSPC);
	assert_int_equal(table_memory_counts(memory).chunks, 0);
	assert_int_equal(table_memory_counts(memory).cells_used, 2);
	table_memory_free(memory, false);
}

/* All of it: tables but for a sixteenth, which is left to mappings, and not a cell more. */
static void test_full(void **state)
{
	static const uint32_t chunks[] = {1, 3};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(chunks); i++) {
		TableMemory *memory = begin_with(chunks[i] * TABLE_MEMORY_MIN + 4096);
		uint64_t limit = chunks[i] * CHUNK_CELLS, spare = limit - limit / 16;
		VEC(struct unwind_mapping) run = {};
		TableHandle first, again;
		RunHandle place;
		UnwindTable table;

		assert_int_equal(table_memory_spare(memory), spare);
		first = add_table(memory, (spare / 2 - 1) * CELL_ROWS, 3, 0);
		table = make_table((spare / 2 - 1) * CELL_ROWS + 1, 3, 0);
		assert_int_equal(table_memory_add_table(memory, &table, &again), -ENOSPC);
		unwind_table_free(&table);
		add_table(memory, (spare / 2 - 1) * CELL_ROWS, 3, 0);
		assert_int_equal(table_memory_spare(memory), 0);
		for (uint64_t j = 0; j < limit / 16; j++)
			*vec_push(&run) = mapping_of(1, j);
		assert_int_equal(table_memory_add_run(memory, run.items, run.count, &place),
				 -ENOSPC);
		assert_int_equal(table_memory_add_run(memory, run.items, run.count - 1, &place), 0);
		assert_int_equal(table_memory_counts(memory).cells_used, limit);
		assert_int_equal(table_memory_counts(memory).chunks, chunks[i] - 1);
		assert_int_equal(table_memory_spare(memory), 0);
		table_memory_remove_table(memory, first);
		again = add_table(memory, (spare / 2 - limit / 16 - 1) * CELL_ROWS, 3, 0);
		assert_int_equal(again.row, first.row);
		assert_int_equal(table_memory_spare(memory), 0); /* the run is in its share */
		vec_free(&run);
		table_memory_free(memory, false);
	}
}

/* ---- rules --------------------------------------------------------------------------------- */

static void test_rules_shared(void **state)
{
	TableMemory *memory = begin();
	uint32_t before = table_memory_counts(memory).rules;
	TableHandle first, second;

	(void)state;
	first = add_table(memory, 20, 10, 100);
	assert_int_equal(table_memory_counts(memory).rules, before + 10);
	second = add_table(memory, 20, 10, 105); /* half of them are known */
	assert_int_equal(table_memory_counts(memory).rules, before + 15);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(rule_at(memory, first, 2 * i), 100 + i % 10);
		assert_int_equal(rule_at(memory, second, 2 * i), 105 + i % 10);
	}
	assert_int_equal(table_memory_counts(memory).rows_without_rule, 0);
	table_memory_free(memory, false);
}

static void test_too_many_rules(void **state)
{
	TableMemory *memory = begin();
	uint32_t room = RULES_MAX - table_memory_counts(memory).rules;
	TableHandle first, second;
	struct unwind_rule rule;

	(void)state;
	first = add_table(memory, 2 * room, room, 0);
	assert_int_equal(table_memory_counts(memory).rules, RULES_MAX);
	assert_int_equal(table_memory_counts(memory).rows_without_rule, 0);
	/* Three of the next table's five are known. */
	second = add_table(memory, 10, 5, room - 3);
	assert_int_equal(table_memory_counts(memory).rules, RULES_MAX);
	assert_int_equal(table_memory_counts(memory).rows_without_rule, 4);
	for (uint32_t i = 0; i < 10; i++) {
		assert_true(find_rule(memory, second, 2 * i, &rule));
		if (i % 5 < 3) {
			assert_int_equal(rule.cfa_offset, room - 3 + i % 5);
		} else {
			assert_int_equal(rule.cfa, CFA_NONE);
			assert_int_equal(rule.extra, NONE_TOO_MANY_RULES);
		}
	}
	assert_int_equal(rule_at(memory, first, 2 * (room + 7)), 7);
	table_memory_free(memory, false);
}

/* ---- the end ------------------------------------------------------------------------------- */

/* Of BPF maps and of address space that is kept free, in this process. */
static size_t special_mappings(void)
{
	_cleanup_free_ char *text = output_of(
		"grep -c -e bpf-map -e '---p 00000000 00:00 0 *$' /proc/%d/maps || true", getpid());

	return strtoul(text, NULL, 10);
}

static void test_nothing_left(void **state)
{
	TableMemory *memory = begin();
	size_t descriptors, mappings;

	(void)state;
	table_memory_free(memory, false); /* what the C library keeps for good is there now */
	descriptors = count_descriptors();
	mappings = special_mappings();
	memory = begin();
	add_table(memory, 2 * CHUNK_CELLS * CELL_ROWS, 3, 0);
	assert_true(count_descriptors() > descriptors);
	assert_true(special_mappings() >= mappings + 4);
	table_memory_free(memory, false);
	assert_int_equal(count_descriptors(), descriptors);
	assert_int_equal(special_mappings(), mappings);
	table_memory_free(NULL, false);
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
