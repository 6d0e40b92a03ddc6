/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_gaps.h"
#include "unwind_code.h"
#include "unwind_follow.h"
#include "unwind_table.h"

/* Larger than any gap inside of a file whose compiler writes tables. */
#define NO_CFI_MIN (64u << 10)

static const struct unwind_rule no_fde = {.cfa = CFA_NONE, .extra = NONE_GAP};
static const struct unwind_rule without_cfi = {.cfa = CFA_NONE, .extra = NONE_UNKNOWN_CODE};
static const struct unwind_rule signal_frame = {.cfa = CFA_SIGNAL};

/* A piece of a gap, in one range of code. */
typedef struct Piece {
	uint64_t from, to;
	const uint8_t *bytes;
	bool function_begins; /* at the start of the piece */
	bool padding;
	bool unknown;			/* no row was made for it */
	const struct unwind_rule *rule; /* the rule for code that is not understood */
} Piece;

uint64_t unwind_signal_begin(const UnwindSections *sections, uint64_t address, bool after_gap)
{
	const UnwindRange *code;

	if (address == 0)
		return address;
	if (after_gap)
		return address - 1;
	code = unwind_ranges_find(&sections->code, address - 1);
	if (!code || !code->bytes ||
	    unwind_code_may_be_frame(code->bytes, code->bytes + (address - code->from)))
		return address;
	return address - 1;
}

/* ---- a piece ------------------------------------------------------------------------ */

/*
 * A library that needs others leaves signals to them, unless it has its own run-time system without
 * tables (as Go has). To search all its gaps would be to read every page of its code.
 */
static bool may_return_from_signals(const UnwindSections *sections, const Piece *piece)
{
	return !sections->needs_others || sections->entry != UINT64_MAX ||
	       piece->rule == &without_cfi;
}

/* A piece with so many bytes is more than start-up code, so its functions are searched for. */
#define FUNCTIONS_FROM 512

static bool has_entry(const UnwindSections *sections, uint64_t from, uint64_t to)
{
	return sections->entry >= from && sections->entry < to;
}

/*
 * Returns the functions of the file. For a small piece, such as start-up code, those that the
 * headers name are enough. The exception is the entry point: code that is mistaken for a part of it
 * would become the outermost frame.
 */
static const UnwindFunctions *functions_of(UnwindGaps *gaps, const Piece *piece)
{
	if (!gaps->functions_found && (piece->to - piece->from >= FUNCTIONS_FROM ||
				       has_entry(gaps->sections, piece->from, piece->to))) {
		vec_free(&gaps->functions);
		unwind_functions_find(gaps->file, gaps->debug, gaps->base_svma, gaps->sections,
				      &gaps->functions);
		gaps->functions_found = true;
	}
	return &gaps->functions;
}

/* Returns the functions in the first bytes of the piece, as offsets in it. */
static void find_starts(UnwindGaps *gaps, const Piece *piece, uint32_t size,
			UnwindOffsets *ret_starts)
{
	const UnwindFunctions *functions = functions_of(gaps, piece);
	size_t i =
		partition_point(middle, functions->count, functions->items[middle] < piece->from);

	*ret_starts = (UnwindOffsets){};
	for (; i < functions->count && functions->items[i] - piece->from < size; i++)
		*vec_push(ret_starts) = functions->items[i] - piece->from;
}

/* Emits the rows up to an address. *next: the first row that is not emitted yet. */
static void put_rows_to(const UnwindGaps *gaps, Piece *piece, const UnwindCodeRows *rows,
			size_t *next, uint64_t to)
{
	for (; *next < rows->count && piece->from + rows->items[*next].at < to; ++*next) {
		gaps->put(gaps->user, piece->from + rows->items[*next].at,
			  &rows->items[*next].rule);
		piece->unknown = false;
	}
}

/* Emits the rows of signal restorers, and the rows of other code up to each of them. */
static void put_signals(const UnwindGaps *gaps, Piece *piece, const UnwindCodeRows *rows,
			size_t *next)
{
	const struct unwind_rule *rule = piece->rule;
	const uint8_t *found;

	for (uint64_t low = piece->from;
	     low < piece->to && (found = unwind_code_sigreturn(piece->bytes + (low - piece->from),
							       piece->to - low));) {
		uint64_t address = piece->from + (found - piece->bytes);
		uint64_t begin =
			unwind_signal_begin(gaps->sections, address,
					    /* after_gap= */ rows->count == 0 && address > low);

		put_rows_to(gaps, piece, rows, next, begin);
		gaps->put(gaps->user, begin, &signal_frame);
		low = address + UNWIND_SIGRETURN_SIZE;
		piece->unknown = false;
		while (*next < rows->count && piece->from + rows->items[*next].at <= low)
			++*next;
		if (*next > 0)
			rule = &rows->items[*next - 1].rule;
		if (low < piece->to)
			gaps->put(gaps->user, low, rule);
	}
}

static uint64_t followed_bytes(const Piece *piece, const UnwindCodeRows *rows)
{
	uint64_t bytes = 0, size = piece->to - piece->from;

	if (size < FUNCTIONS_FROM)
		return 0;
	for (size_t i = 0; i < rows->count; i++)
		if (rows->items[i].rule.cfa != CFA_NONE)
			bytes += (i + 1 < rows->count ? rows->items[i + 1].at : size) -
				 rows->items[i].at;
	return bytes;
}

/* Returns the value of UnwindCode::entry. */
static uint32_t entry_in(const UnwindSections *sections, const Piece *piece)
{
	return has_entry(sections, piece->from, piece->to) ? sections->entry - piece->from
							   : UINT32_MAX;
}

/* Returns false if the budget does not allow to follow so many bytes. */
static bool spend(UnwindGaps *gaps, uint32_t size)
{
	if (size > gaps->bytes_left)
		return false;
	gaps->bytes_left -= size;
	return true;
}

static void put_known_code(UnwindGaps *gaps, Piece *piece)
{
	uint32_t size = MIN(piece->to - piece->from, (uint64_t)UINT32_MAX);
	UnwindCodeRows rows = {};
	UnwindOffsets starts;
	size_t next = 0;

	find_starts(gaps, piece, size, &starts);
	if ((!piece->padding || piece->function_begins || starts.count > 0) && spend(gaps, size))
		unwind_follow_code(&(UnwindCode){.bytes = piece->bytes,
						 .size = size,
						 .address = piece->from,
						 .function_begins = piece->function_begins,
						 .starts = starts.items,
						 .start_count = starts.count,
						 .entry = entry_in(gaps->sections, piece),
						 .unknown = *piece->rule},
				   &rows);
	gaps->followed += followed_bytes(piece, &rows);
	if (may_return_from_signals(gaps->sections, piece))
		put_signals(gaps, piece, &rows, &next);
	put_rows_to(gaps, piece, &rows, &next, piece->to);
	vec_free(&rows);
	vec_free(&starts);
}

static void put_piece(UnwindGaps *gaps, Piece *piece)
{
	uint64_t size = piece->to - piece->from;

	if ((size >= NO_CFI_MIN || gaps->no_cfi) && !unwind_code_filling(piece->bytes, size)) {
		piece->rule = &without_cfi;
		gaps->put(gaps->user, piece->from, &without_cfi);
	}
	put_known_code(gaps, piece);
}

/* ---- a gap ---------------------------------------------------------------------------- */

/* Passes ranges of code by that end before an address. */
static void pass_code(UnwindGaps *gaps, uint64_t address)
{
	const UnwindRanges *code = &gaps->sections->code;

	while (gaps->code < code->count && code->items[gaps->code].to <= address)
		gaps->code++;
}

/* Handles the code of the gap. */
static void put_code(UnwindGaps *gaps, uint64_t from, uint64_t to, bool padding)
{
	const UnwindRanges *code = &gaps->sections->code;

	pass_code(gaps, from);
	for (size_t i = gaps->code; i < code->count && code->items[i].from < to; i++) {
		const UnwindRange *range = &code->items[i];
		Piece piece = {.from = MAX(from, range->from),
			       .to = MIN(to, range->to),
			       .padding = padding,
			       .unknown = true,
			       .rule = &no_fde};

		if (!range->bytes)
			continue;
		piece.bytes = range->bytes + (piece.from - range->from);
		piece.function_begins = piece.from == range->from;
		put_piece(gaps, &piece);
		/* Bytes after the code are not code. */
		if (piece.to < to && !(padding && piece.unknown))
			gaps->put(gaps->user, piece.to, &no_fde);
	}
}

/*
 * Returns whether the gap is alignment inside of a range of code, where nothing is searched for.
 * Nearly all gaps are, and there are hundreds of thousands.
 */
static bool is_mere_padding(UnwindGaps *gaps, uint64_t gap, uint64_t end)
{
	const UnwindSections *sections = gaps->sections;
	const UnwindRange *range;

	pass_code(gaps, gap);
	if (gaps->code == sections->code.count)
		return false;
	range = &sections->code.items[gaps->code];
	return gap > range->from && end <= range->to && sections->needs_others &&
	       sections->entry == UINT64_MAX && (sections->init < gap || sections->init >= end) &&
	       (sections->fini < gap || sections->fini >= end);
}

void unwind_gap_put(UnwindGaps *gaps, uint64_t gap, uint64_t end, bool followed)
{
	const UnwindSections *sections = gaps->sections;
	bool padding =
		followed && !has_entry(sections, gap, end) && gap > 0 && end - gap < UNWIND_PADDING;

	if (padding && is_mere_padding(gaps, gap, end))
		return;
	if (!padding)
		gaps->put(gaps->user, gap, &no_fde);
	put_code(gaps, gap, end, padding);
}
