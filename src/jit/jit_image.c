/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_image.h"
#include <dwarf.h>
#include <elf.h>

/* Bytes between two functions that only align the second one (UNWIND_PADDING). */
#define PADDING 16
/* The addresses of one file, because an unwind table has 32 bits for them. */
#define SPAN_MAX (1ULL << 31)
#define FILE_MAX (16u << 20)
#define ALIGN	 8
#define PAGE	 4096ULL

enum section {
	SECTION_NONE,
	SECTION_TEXT,
	SECTION_FRAME,
	SECTION_SYMBOLS,
	SECTION_NAMES,
	SECTIONS
};

typedef VEC(uint8_t) Buffer;

/* One of the files while it is made. */
typedef struct File {
	bool used, has_cfi;
	uint64_t low, high; /* AVMA of its code */
	Buffer frame, symbols, names;
	uint32_t last_cie; /* the index of the CIE that was written last, and its offset */
	uint64_t last_cie_at;
} File;

typedef struct Maker {
	const JitDump *dump;
	JitImage *image;
	JitCfi cfi;
	JitSymbols symbols; /* sorted by start */
	File files[JIT_FILES_MAX];
} Maker;

/* ---- writing ------------------------------------------------------------------------- */

static void put(Buffer *buffer, const void *data, size_t size)
{
	vec_append(buffer, (const uint8_t *)data, size);
}

static void put_number(Buffer *buffer, uint64_t value, size_t size)
{
	put(buffer, &value, size);
}

static void put_uleb(Buffer *buffer, uint64_t value)
{
	do
		*vec_push(buffer) = (value & 0x7f) | (value > 0x7f ? 0x80 : 0);
	while (value >>= 7);
}

static void put_sleb(Buffer *buffer, int64_t value)
{
	bool more = true;

	while (more) {
		uint8_t byte = value & 0x7f;

		value >>= 7;
		more = !((value == 0 && !(byte & 0x40)) || (value == -1 && byte & 0x40));
		*vec_push(buffer) = byte | (more ? 0x80 : 0);
	}
}

/* Fills the entry that begins at `at` up with nops (DW_CFA_nop is 0), and sets its length. */
static void end_entry(Buffer *buffer, size_t at)
{
	uint32_t length;

	while ((buffer->count - at) % ALIGN)
		*vec_push(buffer) = 0;
	length = buffer->count - at - sizeof(length);
	memcpy(buffer->items + at, &length, sizeof(length));
}

static void put_cie(Buffer *frame, const JitCie *cie)
{
	size_t at = frame->count;

	put_number(frame, 0, 4);
	put_number(frame, 0, 4); /* the id of a CIE */
	put_number(frame, 3, 1); /* version: the return register is a LEB128 */
	put(frame, cie->signal ? "zRS" : "zR", cie->signal ? 4 : 3);
	put_uleb(frame, cie->code_align);
	put_sleb(frame, cie->data_align);
	put_uleb(frame, cie->return_register);
	put_uleb(frame, 1); /* bytes of augmentation data */
	put_number(frame, DW_EH_PE_absptr, 1);
	put(frame, cie->program, cie->end - cie->program);
	end_entry(frame, at);
}

static void put_fde(File *file, const JitCfi *cfi, const JitFde *fde)
{
	Buffer *frame = &file->frame;
	size_t at;

	if (frame->count == 0 || file->last_cie != fde->cie) {
		file->last_cie = fde->cie;
		file->last_cie_at = frame->count;
		put_cie(frame, &cfi->cies.items[fde->cie]);
	}
	at = frame->count;
	put_number(frame, 0, 4);
	put_number(frame, at + 4 - file->last_cie_at, 4);
	put_number(frame, fde->pc, 8);
	put_number(frame, fde->size, 8);
	put_uleb(frame, 0); /* bytes of augmentation data */
	put(frame, fde->program, fde->end - fde->program);
	end_entry(frame, at);
}

static void put_symbol(File *file, const JitSymbol *symbol)
{
	Elf64_Sym written = {
		.st_name = file->names.count,
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		.st_shndx = SECTION_TEXT,
		.st_value = symbol->start,
		.st_size = symbol->size,
	};

	put(&file->symbols, &written, sizeof(written));
	put(&file->names, symbol->name, strlen(symbol->name) + 1);
}

/* ---- pieces of code ------------------------------------------------------------------ */

static size_t first_symbol(const Maker *maker, uint64_t address)
{
	return partition_point(middle, maker->symbols.count,
			       maker->symbols.items[middle].start < address);
}

static uint64_t hash_symbols(const Maker *maker, uint64_t start, uint64_t end, uint64_t hash)
{
	for (size_t i = first_symbol(maker, start);
	     i < maker->symbols.count && maker->symbols.items[i].start < end; i++) {
		const JitSymbol *symbol = &maker->symbols.items[i];

		hash = hash_mix(hash, hash_mix(symbol->start, symbol->size));
		hash = jit_hash(hash, symbol->name, strlen(symbol->name));
	}
	return hash;
}

static uint64_t end_of(const JitFde *fde)
{
	return fde->pc + fde->size;
}

/* Finds the FDEs of one piece: those of a known one, or as many as follow each other closely. */
static size_t last_of_piece(const Maker *maker, size_t first)
{
	const JitFde *fdes = maker->cfi.fdes.items;
	size_t last = first;

	while (last + 1 < maker->cfi.fdes.count &&
	       fdes[last + 1].pc - end_of(&fdes[last]) < PADDING &&
	       end_of(&fdes[last + 1]) - fdes[first].pc < SPAN_MAX)
		last++;
	return last;
}

static const JitCode *known_at(const JitDump *dump, uint64_t start)
{
	size_t at =
		partition_point(middle, dump->known.count, dump->known.items[middle].start < start);

	return at < dump->known.count && dump->known.items[at].start == start
		       ? &dump->known.items[at]
		       : NULL;
}

static JitCode describe(const Maker *maker, size_t first, size_t last)
{
	const JitFde *fdes = maker->cfi.fdes.items;
	JitCode code = {.start = fdes[first].pc, .end = end_of(&fdes[last])};

	for (size_t i = first; i <= last; i++)
		code.hash = hash_mix(code.hash, fdes[i].hash);
	code.hash = hash_symbols(maker, code.start, code.end, code.hash);
	return code;
}

/*
 * Returns whether what was known from the first FDE on is still the same. So a piece stays what it
 * is when more code is made behind it.
 */
static bool find_known(const Maker *maker, size_t first, size_t *ret_last)
{
	const JitFde *fdes = maker->cfi.fdes.items;
	const JitCode *known = known_at(maker->dump, fdes[first].pc);
	JitCode code;

	if (!known)
		return false;
	*ret_last = first;
	while (end_of(&fdes[*ret_last]) < known->end && *ret_last + 1 < maker->cfi.fdes.count)
		++*ret_last;
	code = describe(maker, first, *ret_last);
	return code.end == known->end && code.hash == known->hash;
}

/* Returns the index of a file for the code, or JIT_FILES_MAX. */
static uint32_t file_for(Maker *maker, const JitCode *code, bool has_cfi)
{
	for (uint32_t i = 0; i < JIT_FILES_MAX; i++) {
		File *file = &maker->files[i];
		uint64_t low = file->used ? MIN(file->low, code->start) : code->start;
		uint64_t high = file->used ? MAX(file->high, code->end) : code->end;

		if ((file->used && file->has_cfi != has_cfi) || high - low > SPAN_MAX ||
		    file->frame.count + file->symbols.count + file->names.count > FILE_MAX)
			continue;
		file->used = true;
		file->has_cfi = has_cfi;
		file->low = low;
		file->high = high;
		return i;
	}
	return JIT_FILES_MAX;
}

/* Adds the piece, and its symbols. Returns its file, or NULL if it needs none or has no room. */
static File *add_code(Maker *maker, JitCode *code, bool known, bool has_cfi)
{
	uint32_t index = known ? 0 : file_for(maker, code, has_cfi);

	if (index == JIT_FILES_MAX || maker->image->code.count == JIT_CODE_MAX) {
		maker->image->counts.no_room++;
		return NULL;
	}
	code->file = known ? JIT_KNOWN : index;
	*vec_push(&maker->image->code) = *code;
	if (known)
		return NULL;
	for (size_t i = first_symbol(maker, code->start);
	     i < maker->symbols.count && maker->symbols.items[i].start < code->end; i++)
		put_symbol(&maker->files[index], &maker->symbols.items[i]);
	return &maker->files[index];
}

static void add_pieces(Maker *maker)
{
	for (size_t first = 0, last; first < maker->cfi.fdes.count; first = last + 1) {
		bool known = find_known(maker, first, &last);
		JitCode code;
		File *file;

		if (!known)
			last = last_of_piece(maker, first);
		code = describe(maker, first, last);
		file = add_code(maker, &code, known, /* has_cfi= */ true);
		for (size_t i = first; file && i <= last; i++)
			put_fde(file, &maker->cfi, &maker->cfi.fdes.items[i]);
	}
}

/* ---- code that has names only -------------------------------------------------------- */

static int compare_code(const void *a, const void *b)
{
	const JitCode *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Returns whether nothing of the symbol's function is in one of the first pieces, all with CFI. */
static bool is_apart(const Maker *maker, const JitSymbol *symbol, size_t pieces)
{
	const JitCode *code = maker->image->code.items;
	size_t next = partition_point(middle, pieces, code[middle].end <= symbol->start);

	return next == pieces || code[next].start >= symbol->start + symbol->size;
}

static void add_named(Maker *maker)
{
	size_t pieces = maker->image->code.count;
	uint64_t end = 0;

	for (size_t i = 0; i < maker->symbols.count; i++) {
		const JitSymbol *symbol = &maker->symbols.items[i];
		JitCode code = {.start = symbol->start, .end = symbol->start + symbol->size};
		const JitCode *known;

		if (code.start < end || !is_apart(maker, symbol, pieces))
			continue;
		end = code.end;
		code.hash = hash_symbols(maker, code.start, code.end, /* hash= */ 0);
		known = known_at(maker->dump, code.start);
		add_code(maker, &code, known && known->end == code.end && known->hash == code.hash,
			 /* has_cfi= */ false);
	}
	if (maker->image->code.count > 1)
		qsort(maker->image->code.items, maker->image->code.count, sizeof(JitCode),
		      compare_code);
}

/* ---- files --------------------------------------------------------------------------- */

static const char section_names[] = "\0.text\0.eh_frame\0.symtab\0.strtab";
#define NAME_OF_TEXT	1
#define NAME_OF_FRAME	7
#define NAME_OF_SYMBOLS 17
#define NAME_OF_NAMES	25

/* Appends the bytes of a section, and returns where they begin. */
static uint64_t append(Buffer *elf, const Buffer *section)
{
	uint64_t at;

	while (elf->count % ALIGN)
		*vec_push(elf) = 0;
	at = elf->count;
	put(elf, section->items, section->count);
	return at;
}

/*
 * The segment names the code's addresses. Its bytes are not in the file: they are not read for
 * tables of memory, because the process may change them.
 */
static void write_file(const File *file, Buffer *elf)
{
	uint64_t low = file->low & ~(PAGE - 1);
	Elf64_Phdr segment = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_vaddr = low,
		.p_filesz = file->high - low,
		.p_memsz = file->high - low,
		.p_align = PAGE,
	};
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(header),
		.e_phoff = sizeof(header),
		.e_phentsize = sizeof(segment),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = SECTION_NAMES,
	};
	Elf64_Shdr sections[SECTIONS] = {
		[SECTION_TEXT] = {.sh_name = NAME_OF_TEXT,
				  .sh_type = SHT_NOBITS,
				  .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				  .sh_addr = low,
				  .sh_size = file->high - low},
		[SECTION_FRAME] = {.sh_name = NAME_OF_FRAME,
				   .sh_type = SHT_PROGBITS,
				   .sh_flags = SHF_ALLOC,
				   .sh_size = file->frame.count,
				   .sh_addralign = ALIGN},
		[SECTION_SYMBOLS] = {.sh_name = NAME_OF_SYMBOLS,
				     .sh_type = SHT_SYMTAB,
				     .sh_link = SECTION_NAMES,
				     .sh_info = 1,
				     .sh_entsize = sizeof(Elf64_Sym),
				     .sh_size = file->symbols.count,
				     .sh_addralign = ALIGN},
		[SECTION_NAMES] = {.sh_name = NAME_OF_NAMES,
				   .sh_type = SHT_STRTAB,
				   .sh_size = file->names.count,
				   .sh_addralign = 1},
	};

	put(elf, &header, sizeof(header));
	put(elf, &segment, sizeof(segment));
	if (file->frame.count)
		sections[SECTION_FRAME].sh_offset = append(elf, &file->frame);
	else
		sections[SECTION_FRAME].sh_type = SHT_NULL;
	sections[SECTION_SYMBOLS].sh_offset = append(elf, &file->symbols);
	sections[SECTION_NAMES].sh_offset = append(elf, &file->names);
	while (elf->count % ALIGN)
		*vec_push(elf) = 0;
	header.e_shoff = elf->count;
	/* Behind the end of the file, and on a page as its address is. */
	segment.p_offset = (elf->count + sizeof(sections) + PAGE) & ~(PAGE - 1);
	sections[SECTION_TEXT].sh_offset = segment.p_offset;
	put(elf, sections, sizeof(sections));
	memcpy(elf->items, &header, sizeof(header));
	memcpy(elf->items + sizeof(header), &segment, sizeof(segment));
}

static void begin_files(Maker *maker)
{
	static const Elf64_Sym first_symbol_of_all;

	for (uint32_t i = 0; i < JIT_FILES_MAX; i++) {
		put(&maker->files[i].names, section_names, sizeof(section_names));
		put(&maker->files[i].symbols, &first_symbol_of_all, sizeof(first_symbol_of_all));
	}
}

static void end_files(Maker *maker)
{
	for (uint32_t i = 0; i < JIT_FILES_MAX; i++) {
		File *file = &maker->files[i];
		Buffer elf = {};

		if (file->used)
			write_file(file, &elf);
		maker->image->files[i].elf.items = elf.items;
		maker->image->files[i].elf.count = elf.count;
		maker->image->files[i].elf.capacity = elf.capacity;
		vec_free(&file->frame);
		vec_free(&file->symbols);
		vec_free(&file->names);
	}
}

/* ---- all ----------------------------------------------------------------------------- */

static int compare_symbols(const void *a, const void *b)
{
	const JitSymbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return strcmp(x->name, y->name);
}

void jit_image_make(const JitDump *dump, JitImage *ret_image)
{
	Maker maker = {.dump = dump, .image = ret_image, .cfi = {.code = &dump->code}};

	*ret_image = (JitImage){};
	for (size_t i = 0; i < dump->objects.count; i++)
		jit_object_read(&dump->objects.items[i], &dump->memory, &maker.cfi, &maker.symbols);
	for (size_t i = 0; i < dump->memory.count; i++)
		jit_cfi_search(&maker.cfi, &dump->memory.items[i]);
	jit_cfi_finalize(&maker.cfi);
	if (maker.symbols.count > 1)
		qsort(maker.symbols.items, maker.symbols.count, sizeof(JitSymbol), compare_symbols);
	begin_files(&maker);
	add_pieces(&maker);
	add_named(&maker);
	end_files(&maker);
	ret_image->counts.fdes = maker.cfi.counts.fdes;
	ret_image->counts.outside = maker.cfi.counts.outside;
	ret_image->counts.broken = maker.cfi.counts.broken;
	ret_image->counts.disputed = maker.cfi.counts.disputed;
	ret_image->counts.no_room += maker.cfi.counts.no_room;
	ret_image->symbols = maker.symbols.count;
	jit_cfi_free(&maker.cfi);
	vec_free(&maker.symbols);
}

void jit_image_free(JitImage *image)
{
	vec_free(&image->code);
	for (uint32_t i = 0; i < JIT_FILES_MAX; i++)
		vec_free(&image->files[i].elf);
}
