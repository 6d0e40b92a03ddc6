/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_table.c - puts FDEs, and what is between them, one after the other.
 *
 * FDEs are sorted, not rows, and the instructions of each run once: the time grows with the size of
 * the sections, whatever they contain. A rule is looked up by a hash when a row is made.
 */
#include "unwind_table.h"
#include "unwind_fdes.h"
#include "unwind_gaps.h"
#include "unwind_sections.h"
#include <errno.h>

#define ADDRESSES (1ULL << 32)

/* Addresses are relative to base_svma, except in emit_rule(). */
typedef struct Builder {
	UnwindTable *table;
	UnwindRuleIndex index;
	UnwindSections sections;
	UnwindFdes eh_frame, debug_frame; /* the latter includes functions of Go's own table */
	UnwindGaps gaps;
	/* The present piece: what others have left of an FDE. */
	uint64_t from, to;
	bool after_gap;	  /* no FDE covers the byte before it */
	uint64_t covered; /* the end of all pieces so far */
} Builder;

/* ---- rows ----------------------------------------------------------------------- */

static uint32_t number_of(Builder *builder, UnwindRuleWords rule)
{
	static const struct unwind_rule no_room = {.cfa = CFA_NONE, .extra = NONE_TOO_MANY_RULES};
	uint32_t number = unwind_rule_number(&builder->index, rule, UNWIND_RULES_MAX - 1);

	return number != UINT32_MAX
		       ? number
		       : unwind_rule_number(&builder->index, unwind_rule_words(&no_room),
					    UNWIND_RULES_MAX);
}

/* The row holds from pc on: it is appended to the last row, or replaces it if that begins at pc. */
static void put_row(Builder *builder, uint32_t pc, UnwindRuleWords rule)
{
	UnwindRows *rows = &builder->table->rows;
	uint32_t number = number_of(builder, rule);

	while (rows->count && rows->items[rows->count - 1].pc >= pc)
		rows->count--;
	if (rows->count == 0 || rows->items[rows->count - 1].rule != number)
		*vec_push(rows) = (struct unwind_row){.pc = pc, .rule = number};
}

/* An UnwindPut. */
static void put_gap(void *user, uint32_t pc, const struct unwind_rule *rule)
{
	put_row(user, pc, unwind_rule_words(rule));
}

static bool is_signal(UnwindRuleWords rule)
{
	struct unwind_rule fields;

	memcpy(&fields, &rule, sizeof(fields));
	return fields.cfa == CFA_SIGNAL;
}

/* A CfiEmit for the rule of an FDE in [from, to), as far as that lies in the piece. SVMA. */
static void emit_rule(void *user, uint64_t from, uint64_t to, UnwindRuleWords rule)
{
	Builder *builder = user;

	from -= builder->eh_frame.base_svma;
	to -= builder->eh_frame.base_svma;
	if (to <= builder->from || from >= builder->to)
		return;
	from = MAX(from, builder->from);
	/* The FDE of glibc begins one byte early; others do not. */
	if (is_signal(rule) && from == builder->from)
		from = unwind_signal_begin(&builder->sections, from, builder->after_gap);
	put_row(builder, from, rule);
}

/* ---- all FDEs --------------------------------------------------------------------- */

static uint64_t end_of(const UnwindFde *fde)
{
	return (uint64_t)fde->pc + fde->size;
}

static void put_fde(Builder *builder, const UnwindFdes *fdes, const UnwindFde *fde, uint64_t limit)
{
	builder->from = MAX(fde->pc, builder->covered);
	builder->to = MIN(end_of(fde), limit);
	builder->after_gap = builder->from > builder->covered;
	builder->table->counts.overlaps += builder->from > fde->pc || builder->to < end_of(fde);
	if (builder->after_gap)
		unwind_gap_put(&builder->gaps, builder->covered, builder->from,
			       /* followed= */ true);
	unwind_fde_run(fdes, fde, emit_rule, builder);
	builder->covered = builder->to;
}

/* Skips those of which nothing is left. Returns the next one, or NULL. */
static const UnwindFde *next_fde(const Builder *builder, const UnwindFdes *fdes, size_t *next,
				 uint64_t *drops)
{
	while (*next < fdes->list.count && end_of(&fdes->list.items[*next]) <= builder->covered) {
		(*next)++;
		(*drops)++;
	}
	return *next < fdes->list.count ? &fdes->list.items[*next] : NULL;
}

/*
 * A function from .debug_frame ends where .eh_frame has the next one, and the rest of it is
 * dropped: each FDE is used once.
 */
static void put_fdes(Builder *builder)
{
	uint64_t *drops = builder->table->counts.drops;
	size_t next = 0, next_debug = 0;

	for (;;) {
		const UnwindFde *fde =
			next_fde(builder, &builder->eh_frame, &next, &drops[UNWIND_DROP_OVERLAP]);
		const UnwindFde *debug = next_fde(builder, &builder->debug_frame, &next_debug,
						  &drops[UNWIND_DROP_KNOWN]);
		uint64_t limit = fde ? MAX(fde->pc, builder->covered) : ADDRESSES;

		if (debug && MAX(debug->pc, builder->covered) < limit) {
			put_fde(builder, &builder->debug_frame, debug, limit);
			next_debug++;
		} else if (fde) {
			put_fde(builder, &builder->eh_frame, fde, ADDRESSES);
			next++;
		} else if (!debug) {
			break;
		}
	}
	if (builder->covered < ADDRESSES)
		unwind_gap_put(&builder->gaps, builder->covered, ADDRESSES, /* followed= */ false);
}

/* ---- counting ----------------------------------------------------------------------- */

/*
 * Returns how many bytes of [from, to) lie in the ranges. *next: the first range that a later row
 * can touch.
 */
static uint64_t count_bytes(const UnwindRanges *ranges, uint64_t from, uint64_t to, size_t *next)
{
	uint64_t bytes = 0;

	while (*next < ranges->count && ranges->items[*next].to <= from)
		++*next;
	for (size_t i = *next; i < ranges->count && ranges->items[i].from < to; i++)
		bytes += MIN(to, ranges->items[i].to) - MAX(from, ranges->items[i].from);
	return bytes;
}

static bool is_gap(const struct unwind_rule *rule)
{
	return rule->cfa == CFA_NONE &&
	       (rule->extra == NONE_GAP || rule->extra == NONE_UNKNOWN_CODE);
}

/* There are millions of rows, but few that are gaps: only those are compared with code. */
static void count_gaps(const UnwindSections *sections, UnwindTable *table)
{
	_cleanup_free_ bool *gaps = xcalloc(table->rules.count, sizeof(*gaps));
	const struct unwind_row *rows = table->rows.items;
	UnwindCounts *counts = &table->counts;
	size_t next = 0;

	for (size_t i = 0; i < sections->code.count; i++)
		counts->code += sections->code.items[i].to - sections->code.items[i].from;
	for (size_t i = 0; i < table->rules.count; i++)
		gaps[i] = is_gap(&table->rules.items[i]);
	for (size_t i = 0; i < table->rows.count; i++)
		if (gaps[rows[i].rule])
			counts->code_gaps += count_bytes(
				&sections->code, rows[i].pc,
				i + 1 < table->rows.count ? rows[i + 1].pc : ADDRESSES, &next);
}

/* ---- the table ---------------------------------------------------------------------- */

/* Returns whether any code has a rule that leads to a caller. */
static bool has_callers(const UnwindRules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		if (rules->items[i].cfa == CFA_REG)
			return true;
	return false;
}

int unwind_table_build(ElfMap *file, ElfMap *debug, uint64_t base_svma, UnwindTable *ret_table)
{
	UnwindTable table = {};
	Builder builder = {.table = &table, .index = {.rules = &table.rules}};
	UnwindSections *sections = &builder.sections;
	int r = unwind_sections_find(file, debug, base_svma, sections);
	Pclntab go;
	bool is_go, has_cfi;

	if (r < 0)
		return r;
	is_go = pclntab_open(file->elf, &go) == 0;
	has_cfi = sections->eh_frame.size || sections->debug_frame.size || sections->unreadable ||
		  is_go;
	table.counts.unread = sections->unreadable;
	unwind_fdes_read(&sections->eh_frame, NULL, &sections->executable, base_svma, &table.counts,
			 &builder.eh_frame);
	unwind_fdes_read(&sections->debug_frame, is_go ? &go : NULL, &sections->executable,
			 base_svma, &table.counts, &builder.debug_frame);
	builder.gaps = (UnwindGaps){.sections = sections,
				    .no_cfi = !has_cfi,
				    .file = file,
				    .debug = debug,
				    .base_svma = base_svma,
				    .bytes_left = file->size,
				    .put = put_gap,
				    .user = &builder};
	unwind_functions_of_headers(sections, &builder.gaps.functions);
	put_fdes(&builder);
	count_gaps(sections, &table);
	table.counts.code_followed = builder.gaps.followed;
	unwind_fdes_free(&builder.eh_frame);
	unwind_fdes_free(&builder.debug_frame);
	vec_free(&builder.gaps.functions);
	unwind_sections_free(sections);
	unwind_rule_index_free(&builder.index);
	vec_shrink(&table.rows);
	if (!has_cfi && !has_callers(&table.rules)) {
		unwind_table_free(&table);
		return -ENODATA;
	}
	*ret_table = table;
	return 0;
}

void unwind_table_free(UnwindTable *table)
{
	vec_free(&table->rows);
	vec_free(&table->rules);
}

/* Returns the bytes of [from, to) in ranges; `range` is the first one that does not end before. */
static uint64_t bytes_within(const UnwindRanges *ranges, size_t range, uint64_t from, uint64_t to)
{
	uint64_t bytes = 0;

	for (size_t i = range; i < ranges->count && ranges->items[i].from < to; i++)
		bytes += MIN(to, ranges->items[i].to) - MAX(from, ranges->items[i].from);
	return bytes;
}

UnwindCoverage unwind_table_coverage(const UnwindTable *table, const ElfIdentity *identity)
{
	const struct unwind_row *rows = table->rows.items;
	UnwindCoverage coverage = {};
	UnwindRanges executable;
	size_t range = 0;

	unwind_executable_find(NULL, identity, identity->base_svma, &executable);
	for (size_t i = 0; i < table->rows.count; i++) {
		const struct unwind_rule *rule = &table->rules.items[rows[i].rule];
		uint64_t to = i + 1 < table->rows.count ? rows[i + 1].pc : ADDRESSES, bytes;

		while (range < executable.count && executable.items[range].to <= rows[i].pc)
			range++;
		bytes = bytes_within(&executable, range, rows[i].pc, to);
		coverage.rows[rule->cfa]++;
		coverage.bytes[rule->cfa] += bytes;
		if (rule->cfa == CFA_NONE)
			coverage.none_bytes[rule->extra] += bytes;
	}
	vec_free(&executable);
	return coverage;
}

/* Two rows: pc and rule of each. */
typedef uint32_t RowPair __attribute__((vector_size(2 * sizeof(struct unwind_row))));

static RowPair load_pair(const struct unwind_row *rows)
{
	RowPair pair;

	memcpy(&pair, rows, sizeof(pair));
	return pair;
}

static bool any(RowPair pair)
{
	return pair[0] | pair[1] | pair[2] | pair[3];
}

static bool follows(const struct unwind_row *row, size_t rules)
{
	return row->pc > row[-1].pc && row->rule != row[-1].rule && row->rule < rules;
}

/*
 * Checks two rows at a time, and evaluates the result at the end: it is nearly never an error, and
 * a recording waits for this check of all tables.
 */
bool unwind_rows_valid(const UnwindTable *table, size_t from)
{
	const struct unwind_row *row = table->rows.items + from;
	const struct unwind_row *end = table->rows.items + table->rows.count;
	const uint32_t rules = MIN(table->rules.count, (size_t)UINT32_MAX);
	const RowPair pcs = {UINT32_MAX, 0, UINT32_MAX, 0};
	const RowPair last = {UINT32_MAX, rules - 1, UINT32_MAX, rules - 1};
	RowPair wrong = {};

	if (row == end || rules == 0)
		return row == end;
	if (from == 0 && (row->pc != 0 || row->rule >= rules))
		return false;
	for (row += from == 0; row + 2 <= end; row += 2) {
		RowPair before = load_pair(row - 1), now = load_pair(row);

		wrong |= (RowPair)(now == before) | ((RowPair)(now < before) & pcs) |
			 (RowPair)(now > last);
	}
	return !any(wrong) && (row == end || follows(row, rules));
}

bool unwind_table_valid(const UnwindTable *table)
{
	return table->rows.count > 0 && unwind_rules_valid(&table->rules) &&
	       unwind_rows_valid(table, 0);
}

const struct unwind_row *unwind_table_find(const UnwindTable *table, uint32_t pc)
{
	size_t next =
		partition_point(middle, table->rows.count, table->rows.items[middle].pc <= pc);

	return &table->rows.items[next - 1];
}
