/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file of the cache of unwind tables. What is read of it is a valid table, and its file could be
 * no other than this one: a bit that differs, a byte more or less, and it is refused.
 *
 * Blind changes would only break the checksum, so after most of them it is made to fit again, and
 * so are the numbers of rules and rows.
 */
#include "fuzz.h"
#include "seeds.h"
#include "table_file.h"

#define BLIND_ONE_IN 8 /* changes after which nothing is made to fit */

static const TableKey key = SEED_TABLE_KEY;
static char debuglink[TABLE_LINK_MAX]; /* of the file that was read last */

/* ---- what must hold ----------------------------------------------------------------------- */

/* size: what is said of it. */
static bool read_file(const void *data, size_t data_size, uint64_t size, UnwindTable *table)
{
	_cleanup_close_ int fd = fuzz_file(data, data_size);

	return table_file_read(fd, size, &key, table, debuglink);
}

/* The walk knows rbx (3), rbp (6) and rsp (7) elsewhere than the registers of an index. */
static bool has_valid_index(uint8_t index)
{
	return index != 3 && index != 6 && index != 7;
}

/* Checks what unwind_table.h and unwind_rows.h state, without the functions of the reader. */
static void expect_valid(const UnwindTable *table)
{
	const struct unwind_row *rows = table->rows.items;

	fuzz_require(table->rows.count > 0 && rows[0].pc == 0);
	for (size_t i = 0; i < table->rows.count; i++) {
		fuzz_require(rows[i].rule < table->rules.count);
		fuzz_require(i == 0 || rows[i].pc > rows[i - 1].pc);
		fuzz_require(i == 0 || rows[i].rule != rows[i - 1].rule);
	}
	for (size_t i = 0; i < table->rules.count; i++) {
		const struct unwind_rule *rule = &table->rules.items[i];

		fuzz_require(rule->cfa <= CFA_SIGNAL && rule->bx <= BX_LOST &&
			     rule->stack <= STACK_SAME_GUESS);
		fuzz_require(rule->ra == RA_AT_CFA || rule->ra >= RA_REG);
		fuzz_require(rule->ra < RA_REG + DWARF_REGS && rule->bp < BP_IN_REG + DWARF_REGS);
		fuzz_require(rule->bp <= BP_LOST || rule->bp >= BP_IN_REG);
		fuzz_require(rule->cfa != CFA_NONE || (uint16_t)rule->extra <= NONE_UNKNOWN_CODE);
		fuzz_require(rule->cfa != CFA_PLT || (uint16_t)rule->extra < 16);
		/* The upper bits of a CFA_DEREF are its index, which has a value of its own. */
		fuzz_require(rule->cfa != CFA_REG || rule->cfa_reg < DWARF_REGS);
		fuzz_require(rule->cfa != CFA_DEREF || has_valid_index(rule->cfa_reg / DWARF_REGS));
	}
}

static void expect_same_file(const UnwindTable *table, const uint8_t *data, size_t size)
{
	size_t rules = table->rules.count * sizeof(struct unwind_rule);
	size_t rows = table->rows.count * sizeof(struct unwind_row);
	struct table_file_header header;

	fuzz_require(table_file_header(&key, table, debuglink, &header) == 0);
	fuzz_require(size == sizeof(header) + rules + rows);
	fuzz_require(!memcmp(data, &header, sizeof(header)));
	fuzz_require(!rules || !memcmp(data + sizeof(header), table->rules.items, rules));
	fuzz_require(!memcmp(data + sizeof(header) + rules, table->rows.items, rows));
}

/* Into the memory of the table that was read before. */
static void expect_no_other(const uint8_t *data, size_t size, UnwindTable *table)
{
	uint8_t *longer = xmalloc(size + 8);
	size_t bit = hash_mix(size, table->rows.items[table->rows.count / 2].pc) % (8 * size);

	memcpy(longer, data, size);
	memset(longer + size, 0, 8);
	fuzz_require(!read_file(longer, size + 8, size + 8, table));
	fuzz_require(!read_file(longer, size - 1, size - 1, table));
	/* It was cut while it was read. */
	fuzz_require(!read_file(longer, size - 1, size, table));
	longer[bit / 8] ^= 1 << bit % 8;
	fuzz_require(!read_file(longer, size, size, table));
	free(longer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	UnwindTable table = {};

	if (read_file(data, size, size, &table)) {
		expect_valid(&table);
		expect_same_file(&table, data, size);
		expect_no_other(data, size, &table);
	}
	unwind_table_free(&table);
	return 0;
}

/* ---- changes -------------------------------------------------------------------------------- */

/* Makes as many rows and rules as there are bytes for, and their checksum. Returns the size. */
static size_t make_fit(uint8_t *data, size_t size)
{
	struct table_file_header header;
	UnwindTable table = {};
	size_t body = size - sizeof(header);

	memcpy(&header, data, sizeof(header));
	header.rules = MIN(header.rules, body / sizeof(struct unwind_rule));
	vec_append(&table.rules, (const struct unwind_rule *)(data + sizeof(header)), header.rules);
	body -= header.rules * sizeof(struct unwind_rule);
	header.rows = body / sizeof(struct unwind_row);
	vec_append(&table.rows, (const struct unwind_row *)(data + size - body), header.rows);
	header.checksum = table_file_checksum(&header, &table);
	memcpy(data, &header, sizeof(header));
	unwind_table_free(&table);
	return size - body % sizeof(struct unwind_row);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	size_t head = sizeof(struct table_file_header);

	/* Mostly behind the header, of which few words may be something else. */
	if (size > head && max_size > head && fuzz_random(&seed, 4))
		size = head + LLVMFuzzerMutate(data + head, size - head, max_size - head);
	else
		size = LLVMFuzzerMutate(data, size, max_size);
	return size > head && fuzz_random(&seed, BLIND_ONE_IN) ? make_fit(data, size) : size;
}
