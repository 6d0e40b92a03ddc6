/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_cfi.h"
#include "cfi_program.h"
#include <dwarf.h>

/* Of one process. Julia's largest images have some ten thousand functions. */
#define FDES_MAX (1u << 17)
#define CIES_MAX (1u << 16)

/* The bytes of an entry before its augmentation: length, id, version. */
#define LENGTH_SIZE  4
#define ID_SIZE	     4
#define VERSION_SIZE 1
#define AUGMENTATION (LENGTH_SIZE + ID_SIZE + VERSION_SIZE)
#define CIE_SIZE_MAX 256

/* What x86-64 compilers write. */
#define CODE_ALIGN	1
#define DATA_ALIGN	(-8)
#define RETURN_REGISTER 16

bool jit_ranges_contain(const JitRanges *ranges, uint64_t start, uint64_t size)
{
	size_t next = partition_point(middle, ranges->count, ranges->items[middle].start <= start);

	return next > 0 && start < ranges->items[next - 1].end &&
	       size <= ranges->items[next - 1].end - start;
}

uint64_t jit_hash(uint64_t hash, const void *data, size_t size)
{
	const uint8_t *bytes = data;
	uint64_t word;

	hash = hash_mix(hash, size);
	for (; size >= sizeof(word); bytes += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		hash = hash_mix(hash, word);
	}
	word = 0;
	if (size)
		memcpy(&word, bytes, size);
	return hash_mix(hash, word);
}

/* ---- a section ----------------------------------------------------------------------- */

/* The section that is being read. */
typedef struct Reader {
	JitCfi *cfi;
	const CfiSection *section;
	Map cies; /* offset -> index in cfi->cies */
	bool shown;
} Reader;

/* The instructions of a CIE are run for each of its FDEs. */
static bool is_usual(const CfiCie *cie, const CfiEntry *entry)
{
	return cie->sized && entry->end - entry->at <= CIE_SIZE_MAX &&
	       cie->code_align == CODE_ALIGN && cie->data_align == DATA_ALIGN &&
	       cie->return_register == RETURN_REGISTER;
}

/* Returns false if it is none that is used. */
static bool add_cie(Reader *reader, const CfiEntry *entry)
{
	JitCfi *cfi = reader->cfi;
	CfiCie cie;
	JitCie added;

	if (cfi_read_cie(reader->section, entry, &cie) < 0 ||
	    (!reader->shown && !is_usual(&cie, entry)) || cfi->cies.count == CIES_MAX)
		return false;
	added = (JitCie){
		.code_align = cie.code_align,
		.data_align = cie.data_align,
		.return_register = cie.return_register,
		.signal = cie.signal,
		.program = cie.program.at,
		.end = cie.program.end,
	};
	added.hash = hash_mix(hash_mix(cie.code_align, cie.data_align),
			      hash_mix(cie.return_register, cie.signal));
	added.hash = jit_hash(added.hash, added.program, added.end - added.program);
	map_set(&reader->cies, entry->offset, cfi->cies.count);
	*vec_push(&cfi->cies) = added;
	return true;
}

/* A CfiEmit. */
static void see_rule(void *user, uint64_t from, uint64_t to, UnwindRuleWords rule)
{
	bool *broken = user;
	struct unwind_rule fields;

	(void)from;
	(void)to;
	memcpy(&fields, &rule, sizeof(fields));
	*broken |= fields.cfa == CFA_NONE && fields.extra == NONE_BROKEN;
}

/*
 * Returns whether its instructions can be read, and mean the same at another place: an address in
 * them may be relative to where it is, and no compiler writes one.
 */
static bool can_be_run(const CfiCie *cie, const CfiFde *fde)
{
	CfiCie placeless = *cie;
	CfiState initial;
	bool broken = false;

	placeless.encoding = DW_EH_PE_omit;
	if (cfi_program_begin(&placeless, &initial) < 0)
		return false;
	cfi_program_run(&placeless, &initial, fde, see_rule, &broken);
	return !broken;
}

/* Returns false if it is no FDE of this section. */
static bool add_fde(Reader *reader, const CfiEntry *entry)
{
	JitCfi *cfi = reader->cfi;
	uint32_t index = map_get(&reader->cies, entry->cie);
	CfiEntry cie_entry;
	uint64_t offset = entry->cie;
	JitFde added;
	CfiCie cie;
	CfiFde fde;

	if (index == MAP_NONE || cfi_next(reader->section, &offset, &cie_entry) <= 0 ||
	    cfi_read_cie(reader->section, &cie_entry, &cie) < 0 ||
	    cfi_read_fde(entry, &cie, &fde) < 0)
		return false;
	cfi->counts.fdes++;
	if (fde.size == 0 || !jit_ranges_contain(cfi->code, fde.pc, fde.size)) {
		cfi->counts.outside++;
		return true;
	}
	if (!can_be_run(&cie, &fde)) {
		cfi->counts.broken++;
		return true;
	}
	if (cfi->fdes.count == FDES_MAX) {
		cfi->counts.no_room++;
		return true;
	}
	added = (JitFde){
		.pc = fde.pc,
		.size = fde.size,
		.cie = index,
		.shown = reader->shown,
		.program = fde.program,
		.end = fde.end,
	};
	added.hash = hash_mix(hash_mix(fde.pc, fde.size), cfi->cies.items[index].hash);
	added.hash = jit_hash(added.hash, fde.program, fde.end - fde.program);
	*vec_push(&cfi->fdes) = added;
	return true;
}

/*
 * Reads entry by entry. Returns how many bytes were read; *ret_whole: up to the zero that ends the
 * section, or to the end of one whose size is known.
 */
static size_t read_section(Reader *reader, bool *ret_whole)
{
	const CfiSection *section = reader->section;
	uint64_t offset = 0, before = 0;
	CfiEntry entry;
	int r;

	while ((r = cfi_next(section, &offset, &entry)) > 0) {
		bool known = entry.is_cie ? add_cie(reader, &entry) : add_fde(reader, &entry);

		/* In a section that is shown, what cannot be read is passed over. */
		if (!known && !reader->shown) {
			r = -1;
			break;
		}
		before = offset;
	}
	*ret_whole = r == 0 && (!section->open_ended || section->size - before >= LENGTH_SIZE);
	map_free(&reader->cies);
	return before;
}

void jit_cfi_add_section(JitCfi *cfi, const CfiSection *section)
{
	Reader reader = {.cfi = cfi, .section = section, .shown = true};
	bool whole;

	read_section(&reader, &whole);
}

/* ---- searching ----------------------------------------------------------------------- */

static uint32_t word_at(const uint8_t *data)
{
	uint32_t word;

	memcpy(&word, data, sizeof(word));
	return word;
}

/* Returns whether a CIE may begin there, of which the first AUGMENTATION bytes and one are there.
 */
static bool may_be_cie(const uint8_t *data)
{
	uint32_t length = word_at(data);
	uint8_t version = data[LENGTH_SIZE + ID_SIZE];

	return length >= ID_SIZE + VERSION_SIZE + sizeof("zR") && length <= CIE_SIZE_MAX &&
	       word_at(data + LENGTH_SIZE) == 0 && (version == 1 || version == 3 || version == 4) &&
	       data[AUGMENTATION] == 'z';
}

/* Returns the first place behind `from` at which a section may begin, or the size. */
static size_t find_cie(const JitMemory *memory, size_t from)
{
	size_t letter = from + AUGMENTATION;

	while (letter < memory->size) {
		const uint8_t *found = memchr(memory->data + letter, 'z', memory->size - letter);

		if (!found)
			break;
		letter = found - memory->data;
		if (may_be_cie(found - AUGMENTATION))
			return letter - AUGMENTATION;
		letter++;
	}
	return memory->size;
}

/*
 * A section that turns out not to be one is passed over as far as it was read, so no byte is read
 * as a part of two sections. An FDE takes the time for its own bytes and for those of its CIE,
 * which are few.
 */
void jit_cfi_search(JitCfi *cfi, const JitMemory *memory)
{
	for (size_t at = find_cie(memory, 0); at < memory->size; at = find_cie(memory, at)) {
		CfiSection section = {
			.data = memory->data + at,
			.size = memory->size - at,
			.address = memory->address + at,
			.eh_frame = true,
			.open_ended = true,
		};
		Reader reader = {.cfi = cfi, .section = &section};
		size_t fdes = cfi->fdes.count, cies = cfi->cies.count, read;
		JitCfiCounts counts = cfi->counts;
		bool whole;

		read = read_section(&reader, &whole);
		if (!whole) {
			cfi->fdes.count = fdes;
			cfi->cies.count = cies;
			cfi->counts = counts;
		}
		at += MAX(read, (size_t)1);
	}
}

/* ---- all ----------------------------------------------------------------------------- */

static int compare_fdes(const void *a, const void *b)
{
	const JitFde *x = a, *y = b;

	if (x->pc != y->pc)
		return x->pc < y->pc ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	if (x->shown != y->shown)
		return x->shown ? -1 : 1;
	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static bool overlap(const JitFde *before, const JitFde *after)
{
	return after->pc - before->pc < before->size;
}

/* Two overlap and are not the same. */
static void decide(JitFde *before, JitFde *after)
{
	if (before->shown == after->shown)
		before->disputed = after->disputed = true;
	else
		(before->shown ? after : before)->overruled = true;
}

static void remove_same(JitCfi *cfi)
{
	JitFde *fdes = cfi->fdes.items;
	size_t kept = 1;

	for (size_t i = 1; i < cfi->fdes.count; i++) {
		const JitFde *before = &fdes[kept - 1];

		if (fdes[i].pc != before->pc || fdes[i].size != before->size ||
		    fdes[i].hash != before->hash)
			fdes[kept++] = fdes[i];
	}
	cfi->fdes.count = kept;
}

static void remove_decided(JitCfi *cfi)
{
	size_t kept = 0;

	for (size_t i = 0; i < cfi->fdes.count; i++) {
		const JitFde *fde = &cfi->fdes.items[i];

		cfi->counts.disputed += fde->disputed && !fde->overruled;
		if (!fde->disputed && !fde->overruled)
			cfi->fdes.items[kept++] = *fde;
	}
	cfi->fdes.count = kept;
}

void jit_cfi_finalize(JitCfi *cfi)
{
	JitFde *fdes = cfi->fdes.items;
	JitFde *last[2] = {}; /* the one that reaches farthest, of those not shown and shown */

	if (cfi->fdes.count == 0)
		return;
	qsort(fdes, cfi->fdes.count, sizeof(*fdes), compare_fdes);
	remove_same(cfi);
	for (size_t i = 0; i < cfi->fdes.count; i++) {
		JitFde **same = &last[fdes[i].shown];

		for (size_t shown = 0; shown < ARRAY_LEN(last); shown++)
			if (last[shown] && overlap(last[shown], &fdes[i]))
				decide(last[shown], &fdes[i]);
		if (!*same || fdes[i].pc + fdes[i].size > (*same)->pc + (*same)->size)
			*same = &fdes[i];
	}
	remove_decided(cfi);
}

void jit_cfi_free(JitCfi *cfi)
{
	vec_free(&cfi->cies);
	vec_free(&cfi->fdes);
}
