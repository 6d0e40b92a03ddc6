/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_gaps.h"
#include "unwind_code.h"
#include "unwind_table.h"

/* Larger than any hole between what a compiler that writes tables makes. */
#define FOREIGN_MIN (64u << 10)
/* The first function, and the one that it goes on in: musl's take 60 bytes. */
#define ENTRY_SIZE 256

static const struct unwind_rule no_fde = {.cfa = CFA_NONE, .extra = NONE_GAP};
static const struct unwind_rule foreign = {.cfa = CFA_NONE, .extra = NONE_FOREIGN};
static const struct unwind_rule outermost = {.cfa = CFA_END};
static const struct unwind_rule signal_frame = {.cfa = CFA_SIGNAL};

/* A piece of a gap, in one range of code. */
typedef struct Piece {
	uint64_t from, to;
	const uint8_t *bytes;
	bool function_begins; /* with it */
	bool padding;
	bool unknown;			/* nothing was found in it */
	const struct unwind_rule *rule; /* of what is not known better */
} Piece;

uint64_t unwind_signal_begin(const UnwindSections *sections, uint64_t place, bool after_gap)
{
	const UnwindRange *code;

	if (place == 0)
		return place;
	if (after_gap)
		return place - 1;
	code = unwind_ranges_find(&sections->code, place - 1);
	if (!code || !code->bytes ||
	    unwind_code_may_be_frame(code->bytes, code->bytes + (place - code->from)))
		return place;
	return place - 1;
}

/* ---- a piece ------------------------------------------------------------------------ */

/*
 * A library that needs others leaves signals to them, unless it has a run-time system of its own
 * without tables (Go's). To look at all its gaps would be to read every page of its code.
 */
static bool may_return_from_signals(const UnwindSections *sections, const Piece *piece)
{
	return !sections->needs_others || sections->entry != UINT64_MAX || piece->rule == &foreign;
}

/* low: what is before is covered. */
static void put_signals(const UnwindGaps *gaps, Piece *piece, uint64_t low)
{
	const uint8_t *found;

	while (low < piece->to && (found = unwind_code_sigreturn(piece->bytes + (low - piece->from),
								 piece->to - low))) {
		uint64_t place = piece->from + (found - piece->bytes);

		gaps->put(gaps->user,
			  unwind_signal_begin(gaps->sections, place, /* after_gap= */ place > low),
			  &signal_frame);
		low = place + UNWIND_SIGRETURN_SIZE;
		piece->unknown = false;
		if (low < piece->to)
			gaps->put(gaps->user, low, piece->rule);
	}
}

/* Returns where what follows begins. */
static uint64_t put_known_code(const UnwindGaps *gaps, Piece *piece)
{
	UnwindCodeRows rows;

	if (piece->padding && !piece->function_begins)
		return piece->from;
	unwind_code_follow(piece->bytes, piece->to - piece->from, piece->from,
			   piece->function_begins, &rows);
	for (size_t i = 0; i < rows.count; i++)
		gaps->put(gaps->user, piece->from + rows.items[i].at, &rows.items[i].rule);
	if (rows.count)
		piece->unknown = false;
	if (rows.count && piece->from + rows.end < piece->to)
		gaps->put(gaps->user, piece->from + rows.end, piece->rule);
	return piece->from + rows.end;
}

static void put_piece(const UnwindGaps *gaps, Piece *piece)
{
	uint64_t size = piece->to - piece->from, low;

	if (size >= FOREIGN_MIN && !unwind_code_filling(piece->bytes, size)) {
		piece->rule = &foreign;
		gaps->put(gaps->user, piece->from, &foreign);
	}
	low = put_known_code(gaps, piece);
	if (may_return_from_signals(gaps->sections, piece))
		put_signals(gaps, piece, low);
}

/* ---- a gap ---------------------------------------------------------------------------- */

static bool is_start(const UnwindSections *sections, uint64_t address)
{
	return address == sections->init || address == sections->fini;
}

/* Passes ranges of code by that end before an address. */
static void pass_code(UnwindGaps *gaps, uint64_t address)
{
	const UnwindRanges *code = &gaps->sections->code;

	while (gaps->code < code->count && code->items[gaps->code].to <= address)
		gaps->code++;
}

/* The code of [from, to), which is a gap's part. */
static void put_part(UnwindGaps *gaps, uint64_t from, uint64_t to, bool padding)
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
		piece.function_begins =
			piece.from == range->from || is_start(gaps->sections, piece.from);
		put_piece(gaps, &piece);
		/* What is behind it is no code. */
		if (piece.to < to && !(padding && piece.unknown))
			gaps->put(gaps->user, piece.to, &no_fde);
	}
}

/* Where the part that begins at from ends: where something is that is known by its address.
 * entry: UINT64_MAX if it is not in the gap. */
static uint64_t part_end(const UnwindSections *sections, uint64_t entry, uint64_t from,
			 uint64_t end)
{
	const uint64_t cuts[] = {sections->init, sections->fini, entry,
				 entry == UINT64_MAX ? entry : entry + ENTRY_SIZE};

	for (size_t i = 0; i < ARRAY_LEN(cuts); i++)
		if (cuts[i] > from && cuts[i] < end)
			end = cuts[i];
	return end;
}

/*
 * Is it alignment in the midst of a range of code, where nothing is looked for? Nearly all gaps
 * are, and there are hundred thousands.
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
	uint64_t entry = sections->entry;
	bool has_entry = entry >= gap && entry < end;
	bool padding = followed && !has_entry && gap > 0 && end - gap < UNWIND_PADDING;

	if (padding && is_mere_padding(gaps, gap, end))
		return;
	for (uint64_t from = gap, to; from < end; from = to) {
		to = part_end(sections, has_entry ? entry : UINT64_MAX, from, end);
		/* C libraries leave their programs' first function without an FDE: nobody
		 * called it. */
		if (has_entry && from >= entry && from < entry + ENTRY_SIZE) {
			gaps->put(gaps->user, from, &outermost);
			continue;
		}
		if (!padding)
			gaps->put(gaps->user, from, &no_fde);
		put_part(gaps, from, to, padding);
	}
}
