/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_functions.h"
#include "elf_symbols.h"
#include "unwind_instruction.h"

#define TABLES_MAX 8	       /* symbol tables; two are usual */
#define SWEEP_MAX  (16u << 20) /* bytes of code, which take about 0.1 s to decode */

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void sort(UnwindFunctions *functions)
{
	size_t kept = 0;

	if (functions->count == 0)
		return;
	qsort(functions->items, functions->count, sizeof(*functions->items), compare);
	for (size_t i = 1; i < functions->count; i++)
		if (functions->items[i] != functions->items[kept])
			functions->items[++kept] = functions->items[i];
	functions->count = kept + 1;
}

uint8_t unwind_padding_length(const uint8_t *bytes, size_t size)
{
	Instruction instruction;

	if (*bytes == 0 || *bytes == 0xcc)
		return 1;
	instruction = unwind_instruction(bytes, size);
	return instruction.does == DOES_NOP ? instruction.length : 0;
}

/* ---- symbols -------------------------------------------------------------------------- */

/* gcc moves unlikely parts of a function elsewhere. They are jumped to, with the stack of that
 * function. */
static bool is_cold_part(const char *name)
{
	return name && strstr(name, ".cold");
}

static void add_symbols(const ElfMap *file, uint64_t base_svma, const UnwindSections *sections,
			UnwindFunctions *functions)
{
	Elf_Scn *section = NULL;
	size_t tables = 0;

	while ((section = elf_nextscn(file->elf, section)) && tables < TABLES_MAX) {
		GElf_Shdr header;
		Elf_Data *data;
		Elf64_Sym symbol;

		if (!gelf_getshdr(section, &header) ||
		    (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) ||
		    !elf_section_data(section, &data))
			continue;
		tables++;
		for (size_t at = 0; at + sizeof(symbol) <= data->d_size; at += sizeof(symbol)) {
			uint8_t type;

			memcpy(&symbol, (const uint8_t *)data->d_buf + at, sizeof(symbol));
			type = ELF64_ST_TYPE(symbol.st_info);
			if ((type == STT_FUNC || type == STT_GNU_IFUNC) &&
			    unwind_ranges_find(&sections->code, symbol.st_value - base_svma) &&
			    !is_cold_part(elf_strptr(file->elf, header.sh_link, symbol.st_name)))
				*vec_push(functions) = symbol.st_value - base_svma;
		}
	}
}

void unwind_functions_of_headers(const UnwindSections *sections, UnwindFunctions *ret_functions)
{
	const uint64_t known[] = {sections->entry, sections->init, sections->fini};

	*ret_functions = (UnwindFunctions){};
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (unwind_ranges_find(&sections->code, known[i]))
			*vec_push(ret_functions) = known[i];
	sort(ret_functions);
}

/* ---- code ----------------------------------------------------------------------------- */

/* The linear decoding of one range of code. Positions are offsets in it. */
typedef struct Sweep {
	const uint8_t *bytes;
	uint32_t size;
	uint64_t from;
	const uint32_t *known; /* the next known functions, from UnwindFunctions */
	size_t known_count;
	uint8_t *begins;    /* a bit for each byte: an instruction begins there */
	uint8_t *after_end; /* likewise: the instruction before it does not fall through */
	VEC(uint32_t) called, named;
} Sweep;

static bool is_set(const uint8_t *bits, uint32_t offset)
{
	return bits[offset / 8] >> offset % 8 & 1;
}

static void set_bit(uint8_t *bits, uint32_t offset)
{
	bits[offset / 8] |= 1 << offset % 8;
}

static bool ends(const Instruction *instruction)
{
	return instruction->does == DOES_JUMP || instruction->does == DOES_JUMP_SOMEWHERE ||
	       instruction->does == DOES_RETURN || instruction->does == DOES_STOP;
}

static uint64_t align_up(uint64_t address)
{
	return (address + UNWIND_ALIGNMENT - 1) / UNWIND_ALIGNMENT * UNWIND_ALIGNMENT;
}

/* Returns the next known function after offset, or the end of the range. */
static uint32_t next_known(Sweep *sweep, uint32_t offset)
{
	while (sweep->known_count > 0 && sweep->known[0] <= sweep->from + offset) {
		sweep->known++;
		sweep->known_count--;
	}
	return sweep->known_count > 0 ? MIN(sweep->known[0] - sweep->from, (uint64_t)sweep->size)
				      : sweep->size;
}

static void note_targets(Sweep *sweep, const Instruction *instruction, uint32_t after)
{
	int64_t target = (int64_t)after + instruction->number;

	if (target < 0 || target >= sweep->size)
		return;
	if (instruction->does == DOES_CALL)
		*vec_push(&sweep->called) = target;
	else if (instruction->does == DOES_ADDRESS)
		*vec_push(&sweep->named) = target;
}

/* Decodes linearly, and starts over at each known function. */
static void decode(Sweep *sweep)
{
	bool ended = true;

	for (uint32_t offset = 0; offset < sweep->size;) {
		uint32_t known = next_known(sweep, offset), after;
		Instruction instruction;

		if (ended && sweep->bytes[offset] == 0) {
			offset++;
			continue;
		}
		instruction = unwind_instruction(sweep->bytes + offset, sweep->size - offset);
		if (instruction.does == DOES_UNKNOWN) {
			uint64_t aligned = align_up(sweep->from + offset + 1);

			offset = MIN((uint64_t)known, aligned - sweep->from);
			ended = true;
			continue;
		}
		after = offset + instruction.length;
		set_bit(sweep->begins, offset);
		if (ended)
			set_bit(sweep->after_end, offset);
		note_targets(sweep, &instruction, after);
		/*
		 * Nops up to an aligned address may be padding after a call that does not return.
		 */
		if (instruction.does != DOES_NOP || (sweep->from + after) % UNWIND_ALIGNMENT == 0)
			ended = instruction.does == DOES_NOP || ends(&instruction);
		offset = MIN(after, known);
	}
}

/*
 * The target of a call counts as a function if an instruction begins there. An address that code
 * takes counts only if the instruction before it does not fall through: it may be data.
 */
static void add_targets(const Sweep *sweep, UnwindFunctions *functions)
{
	for (size_t i = 0; i < sweep->called.count; i++)
		if (is_set(sweep->begins, sweep->called.items[i]))
			*vec_push(functions) = sweep->from + sweep->called.items[i];
	for (size_t i = 0; i < sweep->named.count; i++)
		if (is_set(sweep->after_end, sweep->named.items[i]))
			*vec_push(functions) = sweep->from + sweep->named.items[i];
}

/* sorted: the number of functions at the front of the list that are sorted. */
static void add_code(const UnwindRange *range, size_t sorted, UnwindFunctions *functions)
{
	uint32_t size = range->to - range->from;
	size_t first = partition_point(middle, sorted, functions->items[middle] < range->from);
	Sweep sweep = {.bytes = range->bytes,
		       .size = size,
		       .from = range->from,
		       .known = functions->count > 0 ? functions->items + first : NULL,
		       .known_count = sorted - first,
		       .begins = xcalloc(size / 8 + 1, 1),
		       .after_end = xcalloc(size / 8 + 1, 1)};

	decode(&sweep);
	add_targets(&sweep, functions);
	free(sweep.begins);
	free(sweep.after_end);
	vec_free(&sweep.called);
	vec_free(&sweep.named);
}

void unwind_functions_find(const ElfMap *file, const ElfMap *debug, uint64_t base_svma,
			   const UnwindSections *sections, UnwindFunctions *ret_functions)
{
	uint64_t size = 0;
	size_t sorted;

	unwind_functions_of_headers(sections, ret_functions);
	add_symbols(file, base_svma, sections, ret_functions);
	if (debug && debug->elf)
		add_symbols(debug, base_svma, sections, ret_functions);
	sort(ret_functions);
	for (size_t i = 0; i < sections->code.count; i++)
		size += sections->code.items[i].to - sections->code.items[i].from;
	sorted = ret_functions->count;
	for (size_t i = 0; size <= SWEEP_MAX && i < sections->code.count; i++)
		if (sections->code.items[i].bytes)
			add_code(&sections->code.items[i], sorted, ret_functions);
	sort(ret_functions);
}
