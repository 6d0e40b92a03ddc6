/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_symbols.c - reads symbol tables, and chooses one of several symbols at one address.
 *
 * libelf keeps its reads inside the file; the values that it returns may still be anything, so
 * sizes are limited here and sums are checked before use.
 */
#include "elf_symbols.h"
#include "elf_file.h"
#include <elf.h>
#include <lzma.h>
#include <string.h>

/* The size limit of a section: those of the largest browsers have a third of that. */
#define SECTION_MAX	(1u << 30)
#define TABLES_MAX	8 /* symbol tables; two are usual */
#define UNDERSCORES_MAX 8
/* The number of symbols that a search goes back for one that contains others (nested labels). */
#define NESTED_MAX 16
/* The limit for variables that hold one of the addresses: no program waits for more. */
#define DATA_MAX 4096

/* Returns start + length, or UINT64_MAX if that overflows. */
static uint64_t end_of(uint64_t start, uint64_t length)
{
	return length > UINT64_MAX - start ? UINT64_MAX : start + length;
}

bool elf_section_data(Elf_Scn *section, Elf_Data **ret_data)
{
	GElf_Shdr header;

	if (!section || !gelf_getshdr(section, &header) || header.sh_size == 0 ||
	    header.sh_size > SECTION_MAX || header.sh_type == SHT_NOBITS)
		return false;
	*ret_data = elf_getdata(section, NULL);
	return *ret_data && (*ret_data)->d_buf && (*ret_data)->d_size > 0;
}

Elf_Scn *elf_section_by_name(Elf *elf, const char *name, GElf_Shdr *ret_header)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *found;

		if (!gelf_getshdr(section, ret_header))
			continue;
		found = elf_strptr(elf, names, ret_header->sh_name);
		if (found && !strcmp(found, name))
			return section;
	}
	return NULL;
}

/* ---- tables ---------------------------------------------------------------- */

static uint8_t leading_underscores(const char *name)
{
	uint8_t n = 0;

	while (n < UNDERSCORES_MAX && name[n] == '_')
		n++;
	return n;
}

static bool section_end(Elf *elf, uint16_t index, uint64_t *ret_end)
{
	Elf_Scn *section = index < SHN_LORESERVE ? elf_getscn(elf, index) : NULL;
	GElf_Shdr header;

	if (!section || !gelf_getshdr(section, &header) || header.sh_type == SHT_NULL)
		return false;
	*ret_end = end_of(header.sh_addr, header.sh_size);
	return true;
}

/*
 * Keeps the string table as a whole. This limits what a file can make wallprof copy; names that are
 * copied one by one could overlap. Returns its offset.
 */
static size_t keep_names(ElfSymbols *symbols, const Elf_Data *strings)
{
	size_t base = symbols->names.count;

	vec_reserve(&symbols->names, base + strings->d_size + 1);
	vec_append(&symbols->names, strings->d_buf, strings->d_size);
	*vec_push(&symbols->names) = '\0';
	return base;
}

/* Returns whether one of the requested addresses lies in the symbol. */
static bool holds_address(const ElfSymbols *symbols, const GElf_Sym *sym)
{
	size_t at = partition_point(middle, symbols->address_count,
				    symbols->addresses[middle] < sym->st_value);

	return at < symbols->address_count && symbols->addresses[at] - sym->st_value < sym->st_size;
}

/*
 * A symbol of a function in assembly may have no size (musl's memset). Where local symbols are
 * stripped, code far after it is another function, without a symbol. Where they are there, the
 * function reaches up to the next one, but no further than the largest that are written by hand:
 * what follows then is code without a symbol, as in a file of which strip(1) kept a few.
 */
#define SIZELESS_REACH	     256
#define SIZELESS_REACH_LOCAL (32u << 10)

static void add_function(Elf *elf, const GElf_Sym *sym, size_t name, ElfSymbols *symbols)
{
	uint64_t limit;

	if (!section_end(elf, sym->st_shndx, &limit))
		return;
	limit = MIN(limit, end_of(sym->st_value,
				  symbols->has_local ? SIZELESS_REACH_LOCAL : SIZELESS_REACH));
	*vec_push(&symbols->candidates) = (ElfCandidate){
		.symbol = {.start = sym->st_value, .size = sym->st_size, .name = name},
		.limit = limit,
		.source = GELF_ST_BIND(sym->st_info) == STB_LOCAL ? SYMBOL_LOCAL : SYMBOL_GLOBAL,
		.underscores = leading_underscores(symbols->names.items + name),
	};
}

static void add_symbol(Elf *elf, const GElf_Sym *sym, size_t name, ElfSymbols *symbols)
{
	switch (GELF_ST_TYPE(sym->st_info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		add_function(elf, sym, name, symbols);
		return;
	case STT_OBJECT:
		if (symbols->data.count < DATA_MAX && holds_address(symbols, sym))
			*vec_push(&symbols->data) = (ElfSymbol){
				.start = sym->st_value, .size = sym->st_size, .name = name};
	}
}

static void read_table(Elf *elf, Elf_Scn *section, size_t strings_index, ElfSymbols *symbols)
{
	Elf_Data *data, *strings;
	size_t base;
	GElf_Sym sym;

	if (!elf_section_data(section, &data) ||
	    !elf_section_data(elf_getscn(elf, strings_index), &strings) ||
	    symbols->names.count + strings->d_size >= INT32_MAX)
		return;
	base = keep_names(symbols, strings);
	for (int i = 0; gelf_getsym(data, i, &sym); i++) {
		if (sym.st_shndx != SHN_UNDEF && sym.st_name > 0 && sym.st_name < strings->d_size &&
		    symbols->names.items[base + sym.st_name])
			add_symbol(elf, &sym, base + sym.st_name, symbols);
	}
}

static bool has_symtab(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB)
			return true;
	return false;
}

void elf_symbols_add_tables(ElfSymbols *symbols, Elf *elf)
{
	Elf_Scn *section = NULL;
	int tables = 0;

	symbols->has_local = has_symtab(elf);
	while (tables < TABLES_MAX && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header) ||
		    (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
			continue;
		read_table(elf, section, header.sh_link, symbols);
		tables++;
	}
}

/* The table of a Go program is there even if strip(1) has removed its symbols. */
void elf_symbols_add_go(ElfSymbols *symbols, const Pclntab *table)
{
	size_t base = symbols->names.count;

	if (table->names.size >= INT32_MAX - base)
		return;
	vec_append(&symbols->names, (const char *)table->names.at, table->names.size);
	for (uint32_t i = 0; i < table->count; i++) {
		PclntabFunction function;

		if (!pclntab_function(table, i, &function) || !*pclntab_name(table, function.name))
			continue;
		*vec_push(&symbols->candidates) = (ElfCandidate){
			.symbol = {.start = function.start,
				   .size = function.end - function.start,
				   .name = base + function.name},
			.limit = function.end,
			.source = SYMBOL_GO,
		};
	}
}

/* ---- settling --------------------------------------------------------------- */

static int compare_candidates(const void *a, const void *b)
{
	const ElfCandidate *x = a, *y = b;

	if (x->symbol.start != y->symbol.start)
		return x->symbol.start < y->symbol.start ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->symbol.size != y->symbol.size)
		return x->symbol.size > y->symbol.size ? -1 : 1;
	if (x->underscores != y->underscores)
		return x->underscores - y->underscores;
	return x->symbol.name < y->symbol.name ? -1 : x->symbol.name > y->symbol.name;
}

/*
 * Chooses one symbol per start, and sets its size. If the unwind table has a function in several
 * pieces and a symbol covers them, they are one function; the symbol also has a better name than
 * the start-up code gives it. *covered is the end of what is named so far.
 */
static void finalize_start(ElfSymbols *symbols, const ElfCandidate *best, uint64_t next_start,
			   uint64_t *covered)
{
	ElfSymbol symbol = best->symbol;
	uint64_t end = MIN(best->limit, next_start);

	if (best->source >= SYMBOL_ENTRY && symbol.start < *covered)
		return;
	if (symbol.size == 0)
		symbol.size = end > symbol.start ? end - symbol.start : 1;
	if (!symbol.nameless)
		*covered = MAX(*covered, end_of(symbol.start, symbol.size));
	*vec_push(&symbols->list) = symbol;
}

void elf_symbols_finalize(ElfSymbols *symbols)
{
	const ElfCandidate *items = symbols->candidates.items;
	size_t count = symbols->candidates.count;
	uint64_t covered = 0;

	if (count == 0)
		return;
	qsort(symbols->candidates.items, count, sizeof(*items), compare_candidates);
	for (size_t i = 0, next; i < count; i = next) {
		ElfCandidate best = items[i];

		for (next = i; next < count; next++) {
			if (items[next].symbol.start != best.symbol.start)
				break;
			if (best.symbol.size == 0)
				best.symbol.size = items[next].symbol.size;
			best.symbol.has_fde |= items[next].source == SYMBOL_FDE;
			/* A debug file has more symbols than the stripped file. */
			if (items[next].source <= SYMBOL_LOCAL)
				best.limit = MAX(best.limit, items[next].limit);
		}
		finalize_start(symbols, &best, next < count ? items[next].symbol.start : UINT64_MAX,
			       &covered);
	}
	vec_free(&symbols->candidates);
}

bool elf_is_padding(const uint8_t *bytes, size_t size)
{
	static const uint8_t padding[] = {0x00, 0x90, 0xcc, 0x66, 0x2e, 0x0f,
					  0x1f, 0x40, 0x44, 0x80, 0x84};

	for (size_t i = 0; i < size; i++)
		if (!memchr(padding, bytes[i], sizeof(padding)))
			return false;
	return true;
}

const ElfSymbol *elf_symbols_find(const ElfSymbols *symbols, uint64_t svma)
{
	size_t next = partition_point(middle, symbols->list.count,
				      symbols->list.items[middle].start <= svma);

	for (size_t back = 0; back < MIN(next, (size_t)NESTED_MAX); back++) {
		const ElfSymbol *symbol = &symbols->list.items[next - 1 - back];

		if (svma - symbol->start < symbol->size)
			return symbol;
	}
	return NULL;
}

static bool is_within(uint64_t svma, uint64_t start, uint64_t size, ElfExtent *ret_extent)
{
	*ret_extent = (ElfExtent){start, end_of(start, size)};
	return svma >= start && svma < ret_extent->end;
}

/* Finds the code section that contains svma. */
static bool find_code_section(Elf *elf, uint64_t svma, ElfExtent *ret_extent)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type != SHT_NOBITS &&
		    header.sh_flags & SHF_ALLOC && header.sh_flags & SHF_EXECINSTR &&
		    is_within(svma, header.sh_addr, header.sh_size, ret_extent))
			return true;
	return false;
}

static bool find_code_segment(Elf *elf, uint64_t svma, ElfExtent *ret_extent)
{
	GElf_Phdr segment;

	for (unsigned i = 0; i < ELF_LOADS_MAX && gelf_getphdr(elf, i, &segment); i++)
		if (segment.p_type == PT_LOAD && segment.p_flags & PF_X &&
		    is_within(svma, segment.p_vaddr, segment.p_filesz, ret_extent))
			return true;
	return false;
}

bool elf_symbols_find_gap(const ElfSymbols *symbols, Elf *elf, uint64_t svma, ElfExtent *ret_gap)
{
	size_t next = partition_point(middle, symbols->list.count,
				      symbols->list.items[middle].start <= svma);

	if (!find_code_section(elf, svma, ret_gap) && !find_code_segment(elf, svma, ret_gap))
		return false;
	for (size_t back = 0; back < MIN(next, (size_t)NESTED_MAX); back++) {
		const ElfSymbol *symbol = &symbols->list.items[next - 1 - back];

		ret_gap->start = MAX(ret_gap->start, end_of(symbol->start, symbol->size));
	}
	if (next < symbols->list.count)
		ret_gap->end = MIN(ret_gap->end, symbols->list.items[next].start);
	return true;
}

/*
 * Prefers the smallest variable; at one address the public name to an internal one of the library.
 */
static bool is_better(const ElfSymbols *symbols, const ElfSymbol *a, const ElfSymbol *b)
{
	if (!b || a->size != b->size)
		return !b || a->size < b->size;
	return leading_underscores(symbols->names.items + a->name) <
	       leading_underscores(symbols->names.items + b->name);
}

const ElfSymbol *elf_symbols_find_data(const ElfSymbols *symbols, uint64_t svma)
{
	const ElfSymbol *best = NULL;

	for (size_t i = 0; i < symbols->data.count; i++) {
		const ElfSymbol *symbol = &symbols->data.items[i];

		if (svma - symbol->start < symbol->size && is_better(symbols, symbol, best))
			best = symbol;
	}
	return best;
}

void elf_symbols_free(ElfSymbols *symbols)
{
	vec_free(&symbols->list);
	vec_free(&symbols->data);
	vec_free(&symbols->names);
	vec_free(&symbols->candidates);
}

/* ---- .gnu_debugdata ----------------------------------------------------------------- */

#define MEMORY_MAX (64u << 20)
#define IMAGE_MAX  (256u << 20)
#define IMAGE_STEP (1u << 20)

/* Decompresses into an image that grows. Returns its size, or 0. */
static size_t decompress(lzma_stream *stream, uint8_t **ret_image)
{
	size_t capacity = IMAGE_STEP;
	uint8_t *image = xmalloc(capacity);
	lzma_ret r;

	stream->next_out = image;
	stream->avail_out = capacity;
	while ((r = lzma_code(stream, LZMA_FINISH)) == LZMA_OK && capacity < IMAGE_MAX) {
		if (stream->avail_out > 0)
			continue;
		image = xrealloc(image, capacity * 2);
		stream->next_out = image + capacity;
		stream->avail_out = capacity;
		capacity *= 2;
	}
	*ret_image = image;
	return r == LZMA_STREAM_END ? stream->total_out : 0;
}

void elf_debugdata_open(ElfDebugdata *mini, Elf *elf)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_section_by_name(elf, ".gnu_debugdata", &header);
	lzma_stream stream = LZMA_STREAM_INIT;
	Elf_Data *data;
	size_t size;

	*mini = (ElfDebugdata){};
	if (!elf_section_data(section, &data) ||
	    lzma_stream_decoder(&stream, MEMORY_MAX, 0) != LZMA_OK)
		return;
	stream.next_in = data->d_buf;
	stream.avail_in = data->d_size;
	size = decompress(&stream, &mini->image);
	lzma_end(&stream);
	if (size > 0 && elf_file_open_image(mini->image, size, &mini->elf) == 0)
		return;
	elf_end(mini->elf);
	mini->elf = NULL;
}

void elf_debugdata_close(ElfDebugdata *mini)
{
	elf_end(mini->elf);
	free(mini->image);
	*mini = (ElfDebugdata){};
}
