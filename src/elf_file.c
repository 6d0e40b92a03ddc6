/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_file.c - reads ELF files that may have been made to hurt us.
 *
 * libelf keeps its reads inside the file; what it returns may still be any
 * number, so sizes are bounded here and sums are checked before use. Files are
 * read, not mapped: one that shrinks meanwhile must not end us by SIGBUS.
 */
#include "elf_file.h"
#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <sys/stat.h>

#define PAGE_MASK_4K	0xfffULL
#define LOADS_MAX	256u
#define NOTES_MAX	(1u << 20)   /* bytes of a note segment */
#define SECTION_MAX	(256u << 20) /* bytes of a symbol or string table */
#define TABLES_MAX	8	     /* symbol tables; two are usual */
#define UNDERSCORES_MAX 8
/* How many symbols back a search looks for one that holds others (nested labels). */
#define NESTED_MAX 16

static void elf_endp(Elf **elf)
{
	elf_end(*elf);
}
#define _cleanup_elf_ __attribute__((cleanup(elf_endp)))

static int check_class(Elf *elf)
{
	const char *ident = elf ? elf_getident(elf, NULL) : NULL;
	GElf_Ehdr header;

	if (!ident || elf_kind(elf) != ELF_K_ELF || ident[EI_CLASS] != ELFCLASS64 ||
	    ident[EI_DATA] != ELFDATA2LSB || !gelf_getehdr(elf, &header) ||
	    header.e_machine != EM_X86_64)
		return -ENOEXEC;
	return 0;
}

/* Opens fd with libelf. Returns 0 or a negative errno; *ret_elf is to be ended either way. */
static int open_fd(int fd, Elf **ret_elf)
{
	struct stat st;

	*ret_elf = NULL;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	elf_version(EV_CURRENT);
	*ret_elf = elf_begin(fd, ELF_C_READ, NULL);
	return check_class(*ret_elf);
}

static int open_image(const void *image, size_t size, Elf **ret_elf)
{
	elf_version(EV_CURRENT);
	/* libelf's signature lacks the const; it does not write without ELF_C_WRITE. */
	*ret_elf = elf_memory((char *)image, size);
	return check_class(*ret_elf);
}

/* ---- identity ------------------------------------------------------------ */

static bool read_build_id(Elf *elf, const GElf_Phdr *segment, ElfIdentity *identity)
{
	Elf_Data *data;
	GElf_Nhdr note;
	size_t offset = 0, name, desc;

	if (segment->p_filesz > NOTES_MAX)
		return false;
	data = elf_getdata_rawchunk(elf, segment->p_offset, segment->p_filesz,
				    segment->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	while (data && (offset = gelf_getnote(data, offset, &note, &name, &desc)) > 0) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof(ELF_NOTE_GNU) ||
		    memcmp((char *)data->d_buf + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)))
			continue;
		identity->build_id_len = MIN(note.n_descsz, sizeof(identity->build_id));
		memcpy(identity->build_id, (char *)data->d_buf + desc, identity->build_id_len);
		return true;
	}
	return false;
}

static void add_load(const GElf_Phdr *segment, ElfIdentity *identity)
{
	uint64_t base = segment->p_vaddr & ~PAGE_MASK_4K;

	if (identity->loads.count == 0 || base < identity->base_svma)
		identity->base_svma = base;
	*vec_push(&identity->loads) = (ElfSegment){
		.vaddr = segment->p_vaddr,
		.offset = segment->p_offset,
		.file_size = segment->p_filesz,
		.exec = segment->p_flags & PF_X,
	};
}

static int identify(Elf *elf, ElfIdentity *ret_identity)
{
	ElfIdentity identity = {};
	size_t count;

	if (elf_getphdrnum(elf, &count) < 0)
		return -ENOEXEC;
	for (size_t i = 0; i < count && identity.loads.count < LOADS_MAX; i++) {
		GElf_Phdr segment;

		if (!gelf_getphdr(elf, i, &segment))
			break;
		if (segment.p_type == PT_LOAD)
			add_load(&segment, &identity);
		else if (segment.p_type == PT_NOTE && identity.build_id_len == 0)
			read_build_id(elf, &segment, &identity);
	}
	*ret_identity = identity;
	return 0;
}

int elf_identify(int fd, ElfIdentity *ret_identity)
{
	_cleanup_elf_ Elf *elf = NULL;
	int r = open_fd(fd, &elf);

	return r < 0 ? r : identify(elf, ret_identity);
}

int elf_identify_image(const void *image, size_t size, ElfIdentity *ret_identity)
{
	_cleanup_elf_ Elf *elf = NULL;
	int r = open_image(image, size, &elf);

	return r < 0 ? r : identify(elf, ret_identity);
}

void elf_identity_free(ElfIdentity *identity)
{
	vec_free(&identity->loads);
}

static uint64_t end_of(uint64_t start, uint64_t length)
{
	return length > UINT64_MAX - start ? UINT64_MAX : start + length;
}

/* How well a segment fits a mapping: 0 = not at all. */
static uint64_t fit(const ElfSegment *load, uint64_t pgoff, uint64_t length)
{
	uint64_t from = MAX(load->offset, pgoff);
	uint64_t to = MIN(end_of(load->offset, load->file_size), end_of(pgoff, length));
	uint64_t score;

	if (from >= to)
		return 0;
	score = MIN(to - from, (1ULL << 61) - 1);
	if (load->exec)
		score |= 1ULL << 61;
	if ((load->offset & ~PAGE_MASK_4K) == pgoff)
		score |= 1ULL << 62;
	return score;
}

int elf_mapping_bias(const ElfIdentity *identity, uint64_t start, uint64_t length, uint64_t pgoff,
		     uint64_t *ret_bias)
{
	uint64_t best = 0;

	for (size_t i = 0; i < identity->loads.count; i++) {
		const ElfSegment *load = &identity->loads.items[i];
		uint64_t score = fit(load, pgoff, length);

		if (score <= best)
			continue;
		best = score;
		*ret_bias = start - pgoff + load->offset - load->vaddr;
	}
	return best ? 0 : -ENOENT;
}

/* ---- symbols ------------------------------------------------------------- */

/* A symbol on its way, with what decides which of several at one start is kept. */
typedef struct Candidate {
	ElfSymbol symbol;
	uint64_t limit; /* end of its section */
	bool local;
	uint8_t underscores;
} Candidate;

typedef VEC(Candidate) Candidates;

static uint8_t leading_underscores(const char *name)
{
	uint8_t n = 0;

	while (n < UNDERSCORES_MAX && name[n] == '_')
		n++;
	return n;
}

static int compare_candidates(const void *a, const void *b)
{
	const Candidate *x = a, *y = b;

	if (x->symbol.start != y->symbol.start)
		return x->symbol.start < y->symbol.start ? -1 : 1;
	if (x->local != y->local)
		return x->local - y->local;
	if (x->symbol.size != y->symbol.size)
		return x->symbol.size > y->symbol.size ? -1 : 1;
	if (x->underscores != y->underscores)
		return x->underscores - y->underscores;
	return x->symbol.name < y->symbol.name ? -1 : x->symbol.name > y->symbol.name;
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

static bool bounded_data(Elf_Scn *section, Elf_Data **ret_data)
{
	GElf_Shdr header;

	if (!section || !gelf_getshdr(section, &header) || header.sh_size == 0 ||
	    header.sh_size > SECTION_MAX || header.sh_type == SHT_NOBITS)
		return false;
	*ret_data = elf_getdata(section, NULL);
	return *ret_data && (*ret_data)->d_buf && (*ret_data)->d_size > 0;
}

/*
 * Keeps the string table as a whole: its size bounds what a file can make us
 * copy, where names copied one by one could overlap. Returns its place.
 */
static size_t keep_names(ElfSymbols *symbols, const Elf_Data *strings)
{
	size_t base = symbols->names.count;

	symbols->names.count += strings->d_size + 1;
	symbols->names.capacity = symbols->names.count;
	symbols->names.items = xrealloc(symbols->names.items, symbols->names.capacity);
	memcpy(symbols->names.items + base, strings->d_buf, strings->d_size);
	symbols->names.items[base + strings->d_size] = '\0';
	return base;
}

static void read_table(Elf *elf, Elf_Scn *section, size_t strings_index, ElfSymbols *symbols,
		       Candidates *candidates)
{
	Elf_Data *data, *strings;
	size_t base;
	GElf_Sym sym;

	if (!bounded_data(section, &data) ||
	    !bounded_data(elf_getscn(elf, strings_index), &strings) || strings->d_size >= INT32_MAX)
		return;
	base = keep_names(symbols, strings);
	for (int i = 0; gelf_getsym(data, i, &sym); i++) {
		int type = GELF_ST_TYPE(sym.st_info);
		uint64_t limit;

		if ((type != STT_FUNC && type != STT_GNU_IFUNC) || sym.st_shndx == SHN_UNDEF ||
		    sym.st_name == 0 || sym.st_name >= strings->d_size ||
		    !section_end(elf, sym.st_shndx, &limit))
			continue;
		const char *name = symbols->names.items + base + sym.st_name;

		if (!*name)
			continue;
		*vec_push(candidates) = (Candidate){
			.symbol = {.start = sym.st_value,
				   .size = sym.st_size,
				   .name = base + sym.st_name},
			.limit = limit,
			.local = GELF_ST_BIND(sym.st_info) == STB_LOCAL,
			.underscores = leading_underscores(name),
		};
	}
}

/* One symbol per start, each with a size. */
static void settle(Candidates *candidates, ElfSymbols *symbols)
{
	const Candidate *items = candidates->items;

	if (candidates->count == 0)
		return;
	qsort(candidates->items, candidates->count, sizeof(*items), compare_candidates);
	for (size_t i = 0, next; i < candidates->count; i = next) {
		ElfSymbol symbol = items[i].symbol;
		uint64_t end = items[i].limit;

		for (next = i + 1; next < candidates->count; next++)
			if (items[next].symbol.start != symbol.start)
				break;
		if (next < candidates->count)
			end = MIN(end, items[next].symbol.start);
		if (symbol.size == 0)
			symbol.size = end > symbol.start ? end - symbol.start : 1;
		*vec_push(&symbols->list) = symbol;
	}
}

static void read_symbols(Elf *elf, ElfSymbols *ret_symbols)
{
	ElfSymbols symbols = {};
	Candidates candidates = {};
	Elf_Scn *section = NULL;
	int tables = 0;

	while (tables < TABLES_MAX && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header) ||
		    (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
			continue;
		read_table(elf, section, header.sh_link, &symbols, &candidates);
		tables++;
	}
	settle(&candidates, &symbols);
	vec_free(&candidates);
	*ret_symbols = symbols;
}

int elf_symbols_read(int fd, ElfSymbols *ret_symbols)
{
	_cleanup_elf_ Elf *elf = NULL;
	int r = open_fd(fd, &elf);

	if (r == 0)
		read_symbols(elf, ret_symbols);
	return r;
}

int elf_symbols_read_image(const void *image, size_t size, ElfSymbols *ret_symbols)
{
	_cleanup_elf_ Elf *elf = NULL;
	int r = open_image(image, size, &elf);

	if (r == 0)
		read_symbols(elf, ret_symbols);
	return r;
}

const ElfSymbol *elf_symbols_find(const ElfSymbols *symbols, uint64_t svma)
{
	size_t low = 0, high = symbols->list.count; /* those before low start at or before svma */

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->list.items[middle].start <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t back = 0; back < MIN(low, (size_t)NESTED_MAX); back++) {
		const ElfSymbol *symbol = &symbols->list.items[low - 1 - back];

		if (svma - symbol->start < symbol->size)
			return symbol;
	}
	return NULL;
}

void elf_symbols_free(ElfSymbols *symbols)
{
	vec_free(&symbols->list);
	vec_free(&symbols->names);
}
