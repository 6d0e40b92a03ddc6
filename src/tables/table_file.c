/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "table_file.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define TEXT_OF(number) #number
#define MAGIC(version)	"wallprof table " TEXT_OF(version)

/* The rows are read in pieces that are still in the CPU's cache when they are checked. */
#define PIECE_ROWS (16u << 10)

/* It contains the version number; the rest is 0. */
static const char magic[sizeof(((struct table_file_header *)0)->magic)] =
	MAGIC(UNWIND_TABLE_VERSION);

_Static_assert(sizeof(TableKey) == 24 + 2 * sizeof(FileIdentity) + 8, "no padding");
_Static_assert(sizeof(struct table_file_header) % 8 == 0, "the checksum takes words");

/* ---- checksum --------------------------------------------------------------------------- */

/* There are four lanes, because each step must wait for the one before it in its lane. */
typedef struct Checksum {
	uint64_t a, b, c, d;
	uint64_t size;
} Checksum;

static uint64_t word_at(const void *data, size_t i)
{
	uint64_t word;

	memcpy(&word, (const char *)data + i * sizeof(word), sizeof(word));
	return word;
}

/* The step is invertible, so that no change of a single word goes unnoticed. */
static uint64_t stir(uint64_t lane, uint64_t word)
{
	lane = (lane ^ word) * 0x9e3779b97f4a7c15ULL;
	return lane ^ lane >> 32;
}

static Checksum checksum_begin(uint64_t seed)
{
	return (Checksum){.a = seed, .b = 1, .c = 2, .d = 3};
}

/* size is a multiple of 8, and of 32 in all pieces but the last. */
static void checksum_add(Checksum *sum, const void *data, size_t size)
{
	uint64_t a = sum->a, b = sum->b, c = sum->c, d = sum->d;
	size_t words = size / sizeof(uint64_t), i = 0;

	for (; i + 4 <= words; i += 4) {
		a = stir(a, word_at(data, i));
		b = stir(b, word_at(data, i + 1));
		c = stir(c, word_at(data, i + 2));
		d = stir(d, word_at(data, i + 3));
	}
	for (; i < words; i++)
		a = stir(a, word_at(data, i));
	*sum = (Checksum){a, b, c, d, sum->size + size};
}

static uint64_t checksum_end(const Checksum *sum)
{
	return hash_mix(hash_mix(hash_mix(hash_mix(sum->size, sum->a), sum->b), sum->c), sum->d);
}

static uint64_t checksum(uint64_t seed, const void *data, size_t size)
{
	Checksum sum = checksum_begin(seed);

	checksum_add(&sum, data, size);
	return checksum_end(&sum);
}

/* Returns the checksum of what precedes the rows. */
static uint64_t checksum_of_head(const struct table_file_header *header, const UnwindRules *rules)
{
	struct table_file_header copy;
	uint64_t sum;

	memcpy(&copy, header, sizeof(copy));
	copy.checksum = 0;
	sum = checksum(0, &copy, sizeof(copy));
	return checksum(sum, rules->items, rules->count * sizeof(struct unwind_rule));
}

uint64_t table_file_checksum(const struct table_file_header *header, const UnwindTable *table)
{
	return checksum(checksum_of_head(header, &table->rules), table->rows.items,
			table->rows.count * sizeof(struct unwind_row));
}

/* ---- header ------------------------------------------------------------------------------ */

/* The padding is set as well, because it is part of the checksum. */
static void begin_header(struct table_file_header *header, const TableKey *key)
{
	memset(header, 0, sizeof(*header));
	memcpy(header->magic, magic, sizeof(magic));
	strncpy(header->version, WALLPROF_VERSION, sizeof(header->version) - 1);
	header->key = *key;
	header->counts_size = sizeof(UnwindCounts);
}

/* All behind the name is 0, so that no two files hold the same. */
static bool link_fits(const struct table_file_header *header)
{
	size_t size = sizeof(header->debuglink);
	size_t length = strnlen(header->debuglink, size);

	for (size_t i = length; i < size; i++)
		if (header->debuglink[i])
			return false;
	return length < size;
}

static bool header_fits(const struct table_file_header *header, const TableKey *key, uint64_t size)
{
	struct table_file_header wanted;

	begin_header(&wanted, key);
	return !memcmp(header, &wanted, offsetof(struct table_file_header, rows)) &&
	       header->counts_size == wanted.counts_size && header->rows > 0 &&
	       header->rows <= TABLE_FILE_ROWS_MAX && header->rules <= TABLE_FILE_RULES_MAX &&
	       link_fits(header) &&
	       size == sizeof(*header) + header->rules * sizeof(struct unwind_rule) +
			       header->rows * sizeof(struct unwind_row);
}

int table_file_header(const TableKey *key, const UnwindTable *table, const char *debuglink,
		      struct table_file_header *ret_header)
{
	if (table->rows.count > TABLE_FILE_ROWS_MAX || table->rules.count > TABLE_FILE_RULES_MAX)
		return -EFBIG;
	begin_header(ret_header, key);
	ret_header->rows = table->rows.count;
	ret_header->rules = table->rules.count;
	memcpy(&ret_header->counts, &table->counts, sizeof(ret_header->counts));
	if (debuglink)
		strncpy(ret_header->debuglink, debuglink, sizeof(ret_header->debuglink) - 1);
	ret_header->checksum = table_file_checksum(ret_header, table);
	return 0;
}

/* ---- reading ------------------------------------------------------------------------------- */

static bool read_at(int fd, void *data, size_t size, uint64_t offset)
{
	return pread(fd, data, size, offset) == (ssize_t)size;
}

static bool read_rules(int fd, const struct table_file_header *header, UnwindRules *rules)
{
	vec_reserve(rules, header->rules);
	rules->count = header->rules;
	return read_at(fd, rules->items, rules->count * sizeof(struct unwind_rule),
		       sizeof(*header)) &&
	       unwind_rules_valid(rules);
}

/* Appends the next rows to those that are there. */
static bool read_piece(int fd, uint64_t offset, size_t count, Checksum *sum, UnwindTable *table)
{
	size_t from = table->rows.count, size = count * sizeof(struct unwind_row);
	struct unwind_row *rows = table->rows.items + from;

	if (!read_at(fd, rows, size, offset + from * sizeof(struct unwind_row)))
		return false;
	table->rows.count += count;
	checksum_add(sum, rows, size);
	return unwind_rows_valid(table, from);
}

static bool read_rows(int fd, const struct table_file_header *header, UnwindTable *table)
{
	uint64_t offset = sizeof(*header) + header->rules * sizeof(struct unwind_rule);
	Checksum sum = checksum_begin(checksum_of_head(header, &table->rules));

	if (table->rows.capacity < header->rows) {
		vec_reserve(&table->rows, header->rows);
		touch_memory_large(table->rows.items, header->rows * sizeof(struct unwind_row));
	}
	table->rows.count = 0;
	while (table->rows.count < header->rows) {
		size_t left = header->rows - table->rows.count;

		if (!read_piece(fd, offset, MIN(left, (size_t)PIECE_ROWS), &sum, table))
			return false;
	}
	return checksum_end(&sum) == header->checksum;
}

bool table_file_read(int fd, uint64_t size, const TableKey *key, UnwindTable *table,
		     char *ret_debuglink)
{
	struct table_file_header header;

	if (!read_at(fd, &header, sizeof(header), 0) || !header_fits(&header, key, size) ||
	    !read_rules(fd, &header, &table->rules) || !read_rows(fd, &header, table))
		return false;
	table->counts = header.counts;
	memcpy(ret_debuglink, header.debuglink, sizeof(header.debuglink));
	return true;
}
