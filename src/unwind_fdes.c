/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_fdes.h"
#include <errno.h>

#define ADDRESSES (1ULL << 32)

typedef struct Reader {
	const CfiSection *section;
	const UnwindRanges *executable;
	UnwindCounts *counts;
	UnwindFdes *fdes;
	Map cies; /* offset -> index */
	/* Where the last one was found: neighbours are alike. */
	uint64_t last_offset;
	uint32_t last_cie;
	const UnwindRange *last_range;
} Reader;

/* A CIE that cannot be read is none; those that refer to it are counted. */
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

/* Returns UNWIND_DROPS if it counts. */
static enum unwind_drop add_fde(Reader *reader, const CfiEntry *entry)
{
	uint32_t cie = find_cie(reader, entry->cie);
	const UnwindRange *range;
	uint64_t pc;
	CfiFde fde;
	int r;

	if (cie == MAP_NONE)
		return UNWIND_DROP_NO_CIE;
	r = cfi_read_fde(entry, &reader->fdes->cies.items[cie].cie, &fde);
	if (r < 0)
		return r == -ENOTSUP ? UNWIND_DROP_ENCODING : UNWIND_DROP_BROKEN;
	if (fde.pc == 0)
		return UNWIND_DROP_DISCARDED;
	if (fde.size == 0)
		return UNWIND_DROP_EMPTY;
	if (fde.pc < reader->fdes->base_svma)
		return UNWIND_DROP_OUTSIDE;
	pc = fde.pc - reader->fdes->base_svma;
	if (pc >= ADDRESSES)
		return UNWIND_DROP_FAR;
	range = find_range(reader, pc);
	/* Also one that begins in a segment and leaves it: its length is as wrong as its address
	 * may be. */
	if (!range || fde.size > range->to - pc)
		return UNWIND_DROP_OUTSIDE;
	*vec_push(&reader->fdes->list) = (UnwindFde){
		.pc = pc,
		.size = MIN(fde.size, (uint64_t)UINT32_MAX),
		.cie = cie,
		.length = cfi_left(&fde.program),
		.program = fde.program.at,
	};
	return UNWIND_DROPS;
}

/* Returns how many bytes are behind what can be read. */
static uint64_t walk(Reader *reader, bool cies, bool fdes)
{
	const CfiSection *section = reader->section;
	uint64_t offset = 0;
	CfiEntry entry;
	int r;

	while ((r = cfi_next(section, &offset, &entry)) > 0) {
		enum unwind_drop drop;

		if (entry.is_cie && cies)
			add_cie(reader, &entry);
		if (entry.is_cie || !fdes)
			continue;
		reader->counts->fdes++;
		drop = add_fde(reader, &entry);
		if (drop < UNWIND_DROPS)
			reader->counts->drops[drop]++;
	}
	return r < 0 ? section->size - offset : 0;
}

static int compare_fdes(const void *a, const void *b)
{
	const UnwindFde *x = a, *y = b;

	if (x->pc != y->pc)
		return x->pc < y->pc ? -1 : 1;
	return x->program < y->program ? -1 : x->program > y->program;
}

/* Linkers leave them in the order of their input, which nearly always is that of the code. */
static void sort(UnwindFdes *fdes)
{
	const UnwindFde *list = fdes->list.items;

	for (size_t i = 1; i < fdes->list.count; i++)
		if (compare_fdes(&list[i - 1], &list[i]) > 0) {
			qsort(fdes->list.items, fdes->list.count, sizeof(*list), compare_fdes);
			return;
		}
}

void unwind_fdes_read(const CfiSection *section, const UnwindRanges *executable, uint64_t base_svma,
		      UnwindCounts *counts, UnwindFdes *ret_fdes)
{
	Reader reader = {
		.section = section,
		.executable = executable,
		.counts = counts,
		.fdes = ret_fdes,
		.last_cie = MAP_NONE,
	};

	*ret_fdes = (UnwindFdes){.base_svma = base_svma};
	if (section->size == 0)
		return;
	/* In .eh_frame a CIE comes before those that refer to it, in .debug_frame it need not. */
	if (!section->eh_frame)
		walk(&reader, /* cies= */ true, /* fdes= */ false);
	counts->unread += walk(&reader, /* cies= */ section->eh_frame, /* fdes= */ true);
	map_free(&reader.cies);
	sort(ret_fdes);
}

void unwind_fdes_free(UnwindFdes *fdes)
{
	vec_free(&fdes->cies);
	vec_free(&fdes->list);
}

void unwind_fde_run(const UnwindFdes *fdes, const UnwindFde *fde, CfiEmit emit, void *user)
{
	static const struct unwind_rule broken = {.cfa = CFA_NONE, .extra = NONE_BROKEN};
	const UnwindCie *cie = &fdes->cies.items[fde->cie];
	CfiFde run = {
		.pc = fdes->base_svma + fde->pc,
		.size = fde->size,
		.program = {.at = fde->program, .end = fde->program + fde->length},
	};

	if (cie->broken)
		emit(user, run.pc, run.pc + run.size, &broken);
	else
		cfi_program_run(&cie->cie, &cie->initial, &run, emit, user);
}
