/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_fdes.h"
#include "unwind_go.h"
#include <errno.h>

#define ADDRESSES (1ULL << 32)

typedef struct Reader {
	const CfiSection *section;
	const UnwindRanges *executable;
	UnwindCounts *counts;
	UnwindFdes *fdes;
	Map cies; /* offset -> index */
	/* Where the last one was found: neighbours often have the same one. */
	uint64_t last_offset;
	uint32_t last_cie;
	const UnwindRange *last_range;
} Reader;

/* A CIE that cannot be read is not added; FDEs that refer to it are counted. */
static void add_cie(Reader *reader, const CfiEntry *entry)
{
	UnwindCie cie = {};

	if (cfi_read_cie(reader->section, entry, &cie.cie) < 0)
		return;
	cie.broken = cfi_program_begin(&cie.cie, &cie.initial) < 0;
	map_set(&reader->cies, entry->offset, reader->fdes->cies.count);
	*vec_push(&reader->fdes->cies) = cie;
}

static uint32_t find_cie(Reader *reader, uint64_t offset)
{
	if (reader->last_cie == MAP_NONE || reader->last_offset != offset) {
		reader->last_cie = map_get(&reader->cies, offset);
		reader->last_offset = offset;
	}
	return reader->last_cie;
}

static const UnwindRange *find_range(Reader *reader, uint64_t pc)
{
	const UnwindRange *last = reader->last_range;

	if (!last || pc < last->from || pc >= last->to)
		reader->last_range = unwind_ranges_find(reader->executable, pc);
	return reader->last_range;
}

/*
 * Adds an FDE for [svma, svma + size). Returns UNWIND_DROPS if it is used; then the caller sets the
 * other fields.
 */
static enum unwind_drop add(Reader *reader, uint64_t svma, uint64_t size, UnwindFde **ret_fde)
{
	uint64_t pc = svma - reader->fdes->base_svma;
	const UnwindRange *range;

	if (svma == 0)
		return UNWIND_DROP_DISCARDED;
	if (size == 0)
		return UNWIND_DROP_EMPTY;
	if (svma < reader->fdes->base_svma)
		return UNWIND_DROP_OUTSIDE;
	if (pc >= ADDRESSES)
		return UNWIND_DROP_FAR;
	range = find_range(reader, pc);
	/*
	 * This also drops one that begins in a segment and exceeds it: its length is wrong, and its
	 * address may be.
	 */
	if (!range || size > range->to - pc)
		return UNWIND_DROP_OUTSIDE;
	*ret_fde = vec_push(&reader->fdes->list);
	**ret_fde = (UnwindFde){.pc = pc, .size = MIN(size, (uint64_t)UINT32_MAX)};
	return UNWIND_DROPS;
}

/* Returns UNWIND_DROPS if it is used. */
static enum unwind_drop add_fde(Reader *reader, const CfiEntry *entry)
{
	uint32_t cie = find_cie(reader, entry->cie);
	enum unwind_drop drop;
	UnwindFde *added;
	CfiFde fde;
	int r;

	if (cie == MAP_NONE)
		return UNWIND_DROP_NO_CIE;
	r = cfi_read_fde(entry, &reader->fdes->cies.items[cie].cie, &fde);
	if (r < 0)
		return r == -ENOTSUP ? UNWIND_DROP_ENCODING : UNWIND_DROP_BROKEN;
	drop = add(reader, fde.pc, fde.size, &added);
	if (drop < UNWIND_DROPS)
		return drop;
	added->cie = cie;
	added->length = fde.end - fde.program;
	added->program = fde.program;
	return UNWIND_DROPS;
}

static void count(Reader *reader, enum unwind_drop drop)
{
	reader->counts->fdes++;
	if (drop < UNWIND_DROPS)
		reader->counts->drops[drop]++;
}

/* Returns the bytes of the file from the first executable one to the last one. */
static uint64_t bytes_of_code(const UnwindRanges *executable)
{
	const uint8_t *begin = NULL, *end = NULL;

	for (size_t i = 0; i < executable->count; i++) {
		const UnwindRange *range = &executable->items[i];

		if (!range->bytes)
			continue;
		begin = !begin || range->bytes < begin ? range->bytes : begin;
		end = MAX(end, range->bytes + (range->to - range->from));
	}
	return begin ? end - begin : 0;
}

/* The limits for functions that may still be added. */
typedef struct Room {
	uint64_t from; /* SVMA: the end of the previous ones */
	uint64_t left; /* in bytes */
} Room;

/*
 * Functions do not overlap, and together they have no more bytes than the file; segments may show
 * the same part of it several times. So the time does not grow with what a file only states.
 */
static enum unwind_drop add_function(Reader *reader, uint32_t i, const PclntabFunction *function,
				     Room *room)
{
	uint64_t size = function->end - function->start;
	enum unwind_drop drop;
	UnwindFde *added;

	if (function->start < room->from || size > room->left)
		return UNWIND_DROP_OVERLAP;
	drop = add(reader, function->start, size, &added);
	if (drop < UNWIND_DROPS)
		return drop;
	if (!reader->last_range->bytes) {
		reader->fdes->list.count--;
		return UNWIND_DROP_OUTSIDE;
	}
	added->cie = UNWIND_GO;
	added->length = i;
	*room = (Room){.from = function->end, .left = room->left - size};
	return UNWIND_DROPS;
}

static void add_go(Reader *reader, const Pclntab *go)
{
	Room room = {.left = bytes_of_code(reader->executable)};

	for (uint32_t i = 0; i < go->count; i++) {
		PclntabFunction function;

		if (!pclntab_function(go, i, &function))
			count(reader, UNWIND_DROP_BROKEN);
		/* A function without depths was compiled from C, and only linked by Go. */
		else if (pclntab_has_stack(&function))
			count(reader, add_function(reader, i, &function, &room));
	}
}

/* Returns the number of bytes after the last entry that can be read. */
static uint64_t walk(Reader *reader, bool cies, bool fdes)
{
	const CfiSection *section = reader->section;
	uint64_t offset = 0;
	CfiEntry entry;
	int r;

	while ((r = cfi_next(section, &offset, &entry)) > 0) {
		if (entry.is_cie && cies)
			add_cie(reader, &entry);
		if (!entry.is_cie && fdes)
			count(reader, add_fde(reader, &entry));
	}
	return r < 0 ? section->size - offset : 0;
}

/* ---- sorting ---------------------------------------------------------------------- */

#define DIGIT_BITS 11
#define DIGITS	   3 /* of a pc */
#define DIGIT_SIZE (1u << DIGIT_BITS)

/* A pc and, in the lower bits, the index of the FDE in the list. */
typedef VEC(uint64_t) SortKeys;

static unsigned digit_of(uint64_t key, unsigned digit)
{
	return key >> (32 + DIGIT_BITS * digit) & (DIGIT_SIZE - 1);
}

/* FDEs with the same digit keep their order. */
static void sort_by_digit(const uint64_t *keys, size_t count, unsigned digit, uint64_t *ret_keys)
{
	size_t next[DIGIT_SIZE] = {}, sum = 0;

	for (size_t i = 0; i < count; i++)
		next[digit_of(keys[i], digit)]++;
	for (size_t i = 0; i < DIGIT_SIZE; i++) {
		size_t these = next[i];

		next[i] = sum;
		sum += these;
	}
	for (size_t i = 0; i < count; i++)
		ret_keys[next[digit_of(keys[i], digit)]++] = keys[i];
}

static bool is_sorted(const UnwindFdes *fdes)
{
	for (size_t i = 1; i < fdes->list.count; i++)
		if (fdes->list.items[i - 1].pc > fdes->list.items[i].pc)
			return false;
	return true;
}

/*
 * Sorts by pc; FDEs with one pc keep the order of the section. Linkers leave FDEs in the order of
 * their input, which is that of the code, except for functions that they or the compiler have moved
 * (hot and cold ones, templates). These form runs of all lengths, so a comparison sort would take a
 * seventh of the time.
 */
static void sort(UnwindFdes *fdes)
{
	size_t count = fdes->list.count;
	SortKeys keys = {}, other = {};
	UnwindFde *sorted;

	if (is_sorted(fdes))
		return;
	vec_reserve(&keys, count);
	vec_reserve(&other, count);
	for (size_t i = 0; i < count; i++)
		*vec_push(&keys) = (uint64_t)fdes->list.items[i].pc << 32 | i;
	for (unsigned digit = 0; digit < DIGITS; digit++) {
		SortKeys sorted_so_far = other;

		sort_by_digit(keys.items, count, digit, other.items);
		other = keys;
		keys = sorted_so_far;
	}
	sorted = xmalloc(count * sizeof(*sorted));
	for (size_t i = 0; i < count; i++)
		sorted[i] = fdes->list.items[(uint32_t)keys.items[i]];
	vec_free(&fdes->list);
	fdes->list.items = sorted;
	fdes->list.count = fdes->list.capacity = count;
	vec_free(&keys);
	vec_free(&other);
}

/* ---- all of a section ---------------------------------------------------------------- */

static void read_section(Reader *reader)
{
	const CfiSection *section = reader->section;

	/*
	 * In .eh_frame a CIE comes before the FDEs that refer to it, in .debug_frame it need not.
	 */
	if (!section->eh_frame)
		walk(reader, /* cies= */ true, /* fdes= */ false);
	reader->counts->unread += walk(reader, /* cies= */ section->eh_frame, /* fdes= */ true);
	map_free(&reader->cies);
}

void unwind_fdes_read(const CfiSection *section, const Pclntab *go, const UnwindRanges *executable,
		      uint64_t base_svma, UnwindCounts *counts, UnwindFdes *ret_fdes)
{
	Reader reader = {
		.section = section,
		.executable = executable,
		.counts = counts,
		.fdes = ret_fdes,
		.last_cie = MAP_NONE,
	};

	*ret_fdes = (UnwindFdes){.base_svma = base_svma, .go = go, .executable = executable};
	if (go)
		add_go(&reader, go);
	if (section->size > 0)
		read_section(&reader);
	sort(ret_fdes);
}

void unwind_fdes_free(UnwindFdes *fdes)
{
	vec_free(&fdes->cies);
	vec_free(&fdes->list);
}

static const struct unwind_rule broken = {.cfa = CFA_NONE, .extra = NONE_BROKEN};

static void run_go(const UnwindFdes *fdes, const UnwindFde *fde, CfiEmit emit, void *user)
{
	const UnwindRange *range = unwind_ranges_find(fdes->executable, fde->pc);
	PclntabFunction function;

	if (pclntab_function(fdes->go, fde->length, &function))
		unwind_go_run(fdes->go, &function, range->bytes + (fde->pc - range->from), emit,
			      user);
}

static void run_program(const UnwindFdes *fdes, const UnwindFde *fde, CfiEmit emit, void *user)
{
	const UnwindCie *cie = &fdes->cies.items[fde->cie];
	CfiFde run = {
		.pc = fdes->base_svma + fde->pc,
		.size = fde->size,
		.program = fde->program,
		.end = fde->program + fde->length,
	};

	if (cie->broken)
		emit(user, run.pc, run.pc + run.size, unwind_rule_words(&broken));
	else
		cfi_program_run(&cie->cie, &cie->initial, &run, emit, user);
}

void unwind_fde_run(const UnwindFdes *fdes, const UnwindFde *fde, CfiEmit emit, void *user)
{
	if (fde->cie == UNWIND_GO)
		run_go(fdes, fde, emit, user);
	else
		run_program(fdes, fde, emit, user);
}
