/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "object_names.h"
#include "demangle.h"
#include "elf_decompress.h"
#include "elf_symbols.h"
#include "pclntab.h"
#include "symbol_record.h"
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct Object {
	const ObjectRequest *request;
	const ObjectHost *host;
	ElfMap main, debug, dwz;
	int debug_fd, dwz_fd; /* those that were received; else -1 */
	ElfDebugdata mini;
	Pclntab go; /* if is_go */
	bool is_go;
	ElfSymbols symbols;
	SymbolRecord record;
} Object;

/* ---- which files ------------------------------------------------------------ */

static int check_main(const Object *object)
{
	ElfIdentity identity;
	bool same;

	if (elf_file_identify(object->main.elf, &identity))
		return -ENOEXEC;
	same = identity.base_svma == object->request->base_svma;
	elf_identity_free(&identity);
	return same && debug_link_same_build_id(object->main.elf, object->request->build_id,
						object->request->build_id_len)
		       ? 0
		       : -ESTALE;
}

/* A debug file also has the section headers of its object, but without contents (NOBITS). */
static bool has_dwarf(Elf *elf)
{
	GElf_Shdr header;

	return elf && elf_section_by_name(elf, ".debug_info", &header) &&
	       header.sh_type != SHT_NOBITS;
}

/* fd may be negative: there is no file. */
static bool open_debug_fd(Object *object, int fd)
{
	if (elf_map_open(fd, &object->debug) == 0 &&
	    debug_link_check(object->main.elf, object->debug.elf, fd, INT64_MAX) == 0)
		return true;
	elf_map_close(&object->debug);
	return false;
}

static void open_debug(Object *object)
{
	_cleanup_free_ Companion *companion = NULL;

	if (open_debug_fd(object, object->request->debug_fd) || has_dwarf(object->main.elf))
		return;
	companion = xcalloc(1, sizeof(*companion));
	if (!debug_link_read(object->main.elf, companion))
		return;
	for (unsigned i = 0; i < COMPANION_CANDIDATES; i++) {
		companion->candidate = i;
		object->debug_fd = object->host->find(object->host->user, companion);
		if (open_debug_fd(object, object->debug_fd))
			return;
		closep(&object->debug_fd);
	}
}

static void open_dwz(Object *object, Elf *elf)
{
	_cleanup_free_ Companion *companion = xcalloc(1, sizeof(*companion));

	if (!debug_link_read_dwz(elf, companion))
		return;
	for (unsigned i = 0; i < COMPANION_CANDIDATES; i++) {
		companion->candidate = i;
		object->dwz_fd = object->host->find(object->host->user, companion);
		if (elf_map_open(object->dwz_fd, &object->dwz) == 0 &&
		    debug_link_same_build_id(object->dwz.elf, companion->build_id,
					     companion->build_id_len))
			return;
		elf_map_close(&object->dwz);
		closep(&object->dwz_fd);
	}
}

/* ---- what symbol tables know -------------------------------------------------- */

static void read_symbols(Object *object)
{
	object->symbols.addresses = object->request->addresses;
	object->symbols.address_count = object->request->count;
	elf_decompress_tables(&object->main);
	elf_decompress_tables(&object->debug);
	elf_symbols_add_tables(&object->symbols, object->main.elf);
	if (object->debug.elf)
		elf_symbols_add_tables(&object->symbols, object->debug.elf);
	elf_debugdata_open(&object->mini, object->main.elf);
	if (object->mini.elf)
		elf_symbols_add_tables(&object->symbols, object->mini.elf);
	object->is_go = pclntab_open(object->main.elf, &object->go) == 0;
	if (object->is_go)
		elf_symbols_add_go(&object->symbols, &object->go);
	elf_symbols_add_plt(&object->symbols, object->main.elf);
	elf_symbols_add_fdes(&object->symbols, object->main.elf);
	elf_symbols_add_entry(&object->symbols, object->main.elf);
	elf_symbols_finalize(&object->symbols);
}

static const char *raw_name(const Object *object, const ElfSymbol *symbol)
{
	return object->symbols.names.items + symbol->name;
}

/* Returns the demangled name, allocated. A function without a name is called by its address. */
static char *symbol_name(const Object *object, const ElfSymbol *symbol, bool is_ada)
{
	static const char plt[] = "@plt";
	const char *raw;
	size_t length;
	char *stem, *readable, *name;

	if (symbol->nameless)
		return xasprintf("fun_%" PRIx64, symbol->start - object->request->base_svma);
	raw = raw_name(object, symbol);
	length = strlen(raw);
	if (length < sizeof(plt) || strcmp(raw + length - (sizeof(plt) - 1), plt)) {
		readable = is_ada ? demangle_ada(raw) : demangle(raw);
		return readable ? readable : xstrdup(raw);
	}
	stem = xstrdup(raw);
	stem[length - (sizeof(plt) - 1)] = '\0';
	readable = demangle(stem);
	name = xasprintf("%s%s", readable ? readable : stem, plt);
	free(readable);
	free(stem);
	return name;
}

static int emit(Object *object, const ElfSymbol *symbol, uint64_t function, uint64_t size)
{
	struct rec_symbol *record = symbol_record_finish(&object->record, NULL);

	record->function = symbol ? symbol->start : function;
	record->function_size = symbol_record_size(symbol ? symbol->size : size);
	if (symbol && symbol->nameless)
		record->h.flags |= SYMBOL_NAMELESS;
	return object->host->emit(object->host->user, record);
}

/*
 * Assembly often has neither symbols nor unwind tables. One name for such a piece of code is more
 * useful than a name for each address.
 */
static int emit_gap(Object *object, uint64_t address)
{
	uint64_t base = object->request->base_svma;
	_cleanup_free_ char *name = NULL;
	struct rec_symbol *record;
	ElfExtent gap;

	if (!elf_symbols_find_gap(&object->symbols, object->main.elf, address, &gap))
		return 0;
	name = xasprintf(SYMBOL_GAP_PREFIX "0x%" PRIx64 "-0x%" PRIx64 "]", gap.start - base,
			 gap.end - base);
	symbol_record_begin(&object->record, address);
	symbol_record_add(&object->record, name, "", 0);
	record = symbol_record_finish(&object->record, NULL);
	record->h.flags |= SYMBOL_NAMELESS;
	record->function = gap.start;
	record->function_size = symbol_record_size(gap.end - gap.start);
	return object->host->emit(object->host->user, record);
}

static int emit_variable(Object *object, const ElfSymbol *symbol, uint64_t address)
{
	_cleanup_free_ char *name = symbol_name(object, symbol, /* is_ada= */ false);
	struct rec_symbol *record;

	symbol_record_begin(&object->record, address);
	symbol_record_add(&object->record, name, "", 0);
	record = symbol_record_finish(&object->record, NULL);
	record->h.flags |= SYMBOL_DATA;
	record->function = symbol->start;
	record->function_size = symbol_record_size(symbol->size);
	return object->host->emit(object->host->user, record);
}

/* Functions are aligned to this many bytes, with padding before them. */
#define ALIGNMENT 16

/* Returns the bytes of the range, if it is in a section of code, or NULL. */
static const uint8_t *code_of(const Object *object, const ElfExtent *range)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf_Data *data;

	while ((section = elf_nextscn(object->main.elf, section))) {
		uint64_t offset;

		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR) ||
		    range->start < header.sh_addr)
			continue;
		offset = range->start - header.sh_addr;
		if (offset < header.sh_size && elf_section_data(section, &data))
			return offset < data->d_size &&
					       range->end - range->start <= data->d_size - offset
				       ? (const uint8_t *)data->d_buf + offset
				       : NULL;
	}
	return NULL;
}

static bool is_padding(const Object *object, const ElfExtent *range)
{
	const uint8_t *bytes = code_of(object, range);

	return bytes && elf_is_padding(bytes, range->end - range->start);
}

/*
 * Returns whether the function, which has no FDE, may be one that a signal handler returns to:
 * mov $15, %eax or %rax; syscall. The kernel has put its address on the stack.
 */
static bool may_be_restorer(const Object *object, uint64_t start)
{
	static const uint8_t number_and_syscall[] = {15, 0, 0, 0, 0x0f, 0x05};
	ElfExtent range = {start, start + 9};
	const uint8_t *bytes = code_of(object, &range);

	return bytes && (!memcmp(bytes + 1, number_and_syscall, sizeof(number_and_syscall)) ||
			 !memcmp(bytes + 3, number_and_syscall, sizeof(number_and_syscall)));
}

/*
 * Returns the function that begins behind the address, if the address is in the padding before it,
 * and the unwind table or the symbol table says that it begins there. A call cannot end there. Only
 * the maker of a stack can have put that return address on it, as makecontext() does. The entries
 * of signal restorers in the unwind table begin one byte early, so they are no such functions.
 */
static const ElfSymbol *planted_function(const Object *object, uint64_t address)
{
	const ElfSymbol *next = elf_symbols_find(&object->symbols, address + 1);
	ElfExtent gap;

	if (!next || next->start != address + 1 ||
	    (!next->has_fde && (next->nameless || may_be_restorer(object, next->start))) ||
	    !elf_symbols_find_gap(&object->symbols, object->main.elf, address, &gap))
		return NULL;
	return gap.end == next->start && gap.end - gap.start < ALIGNMENT && is_padding(object, &gap)
		       ? next
		       : NULL;
}

static int emit_planted(Object *object, const ElfSymbol *symbol, uint64_t address)
{
	_cleanup_free_ char *name = symbol_name(object, symbol, /* is_ada= */ false);
	struct rec_symbol *record;

	symbol_record_begin(&object->record, address);
	symbol_record_add(&object->record, name, "", 0);
	record = symbol_record_finish(&object->record, NULL);
	record->h.flags |= SYMBOL_PLANTED | (symbol->nameless ? SYMBOL_NAMELESS : 0);
	record->function = symbol->start;
	record->function_size = symbol_record_size(symbol->size);
	return object->host->emit(object->host->user, record);
}

/* For an address that is in no function. */
static int emit_other(Object *object, uint64_t address)
{
	const ElfSymbol *data = elf_symbols_find_data(&object->symbols, address);
	const ElfSymbol *planted = data ? NULL : planted_function(object, address);

	if (data)
		return emit_variable(object, data, address);
	return planted ? emit_planted(object, planted, address) : emit_gap(object, address);
}

static int emit_symbols(Object *object)
{
	const ObjectRequest *request = object->request;
	_cleanup_free_ char *name = NULL;
	const ElfSymbol *last = NULL;
	int r = 0;

	for (size_t i = 0; i < request->count && r == 0; i++) {
		uint64_t address = request->addresses[i];
		const ElfSymbol *symbol = elf_symbols_find(&object->symbols, address);

		if (!symbol) {
			r = emit_other(object, address);
			continue;
		}
		if (symbol != last) {
			free(name);
			name = symbol_name(object, symbol, /* is_ada= */ false);
			last = symbol;
		}
		symbol_record_begin(&object->record, address);
		symbol_record_add(&object->record, name, "", 0);
		r = emit(object, symbol, 0, 0);
	}
	return r;
}

/* ---- what DWARF knows ----------------------------------------------------------- */

/* "foo.cold" and "foo.part.0" are names of pieces; the function is foo. */
static bool is_piece_of(const char *raw, const char *function)
{
	const char *dot = strchr(raw, '.');
	_cleanup_free_ char *stem = NULL, *readable = NULL;

	if (!dot)
		return false;
	stem = xstrdup(raw);
	stem[dot - raw] = '\0';
	readable = demangle(stem);
	return !strcmp(readable ? readable : stem, function);
}

/*
 * Returns the name of the real function. The symbol table has the public name (write, where DWARF
 * has __GI___libc_write), and parameters where DWARF has no linkage name.
 */
static char *outer_name(const Object *object, const ElfSymbol *symbol, const char *dwarf_name,
			bool is_ada)
{
	if (!symbol || symbol->nameless ||
	    (*dwarf_name && is_piece_of(raw_name(object, symbol), dwarf_name)))
		return xstrdup(dwarf_name);
	return symbol_name(object, symbol, is_ada);
}

static int emit_answer(Object *object, const DwarfNames *names, size_t i)
{
	const DwarfAnswer *answer = &names->answers.items[i];
	const DwarfFrame *frame = &names->frames.items[answer->first];
	uint64_t address = object->request->addresses[i];
	const ElfSymbol *symbol = elf_symbols_find(&object->symbols, address);
	_cleanup_free_ char *outer = outer_name(
		object, symbol, strings_get(&names->strings, frame->name), answer->is_ada);

	/* A line without a name would hide the address. */
	if (!*outer && !symbol)
		return 0;
	if (!*outer) {
		free(outer);
		outer = symbol_name(object, symbol, answer->is_ada);
	}
	symbol_record_begin(&object->record, address);
	for (uint32_t n = 0; n < answer->count; n++, frame++)
		symbol_record_add(&object->record,
				  n == 0 ? outer : strings_get(&names->strings, frame->name),
				  strings_get(&names->strings, frame->source), frame->line);
	/* DWARF has a name, and the symbol table has none. */
	if (symbol && symbol->nameless && answer->has_function)
		symbol = NULL;
	return emit(object, symbol, answer->function, answer->size);
}

static int emit_missing(const Object *object, const DwarfNames *names)
{
	int r = 0;

	for (uint32_t kind = 0; kind < DWARF_MISSING_KINDS && r == 0; kind++) {
		_cleanup_free_ ObjectMissing *missing = NULL;

		if (!names->missing[kind].count)
			continue;
		missing = xcalloc(1, sizeof(*missing));
		missing->kind = kind;
		missing->count = names->missing[kind].count;
		strcpy(missing->name, names->missing[kind].name);
		r = object->host->missing(object->host->user, missing);
	}
	return r;
}

static int emit_dwarf(Object *object)
{
	const ObjectRequest *request = object->request;
	DwarfHost host = {.find = object->host->find, .user = object->host->user};
	ElfMap *file = has_dwarf(object->main.elf)    ? &object->main
		       : has_dwarf(object->debug.elf) ? &object->debug
						      : NULL;
	DwarfNames names;
	int r = 0;

	if (!file)
		return 0;
	open_dwz(object, file->elf);
	dwarf_names_find(file, &object->dwz, request->addresses, request->count, &host, &names);
	for (size_t i = 0; i < request->count && r == 0; i++)
		if (names.answers.items[i].count)
			r = emit_answer(object, &names, i);
	if (r == 0)
		r = emit_missing(object, &names);
	dwarf_names_free(&names);
	return r;
}

/* ---- what Go's own table knows ---------------------------------------------------- */

static int emit_go_frames(Object *object, const PclntabFunction *function, uint64_t address)
{
	const ElfSymbol *symbol = elf_symbols_find(&object->symbols, address);
	PclntabFrame frames[PCLNTAB_FRAMES_MAX];
	_cleanup_free_ char *outer = NULL;
	size_t count;

	if (!symbol)
		return 0;
	count = pclntab_frames(&object->go, function, address, frames);
	outer = symbol_name(object, symbol, /* is_ada= */ false);
	symbol_record_begin(&object->record, address);
	for (size_t i = count; i-- > 0;)
		symbol_record_add(&object->record, i == count - 1 ? outer : frames[i].name,
				  frames[i].source, frames[i].line);
	return emit(object, symbol, 0, 0);
}

/* Emits lines and inlined calls. */
static int emit_go(Object *object)
{
	const ObjectRequest *request = object->request;
	int r = 0;

	for (size_t i = 0; object->is_go && i < request->count && r == 0; i++) {
		PclntabFunction function;

		if (pclntab_find(&object->go, request->addresses[i], &function))
			r = emit_go_frames(object, &function, request->addresses[i]);
	}
	return r;
}

static void close_object(Object *object)
{
	elf_debugdata_close(&object->mini);
	elf_symbols_free(&object->symbols);
	symbol_record_free(&object->record);
	elf_map_close(&object->main);
	elf_map_close(&object->debug);
	elf_map_close(&object->dwz);
	closep(&object->debug_fd);
	closep(&object->dwz_fd);
}

int object_names_find(const ObjectRequest *request, const ObjectHost *host)
{
	_cleanup_(close_object)
		Object object = {.request = request, .host = host, .debug_fd = -1, .dwz_fd = -1};
	int r = elf_map_open(request->fd, &object.main);

	if (r)
		return r;
	r = check_main(&object);
	if (r)
		return r;
	open_debug(&object);
	read_symbols(&object);
	r = emit_symbols(&object);
	if (r)
		return r;
	r = host->flush(host->user);
	if (r)
		return r;
	r = emit_go(&object);
	if (r)
		return r;
	r = host->flush(host->user);
	return r ? r : emit_dwarf(&object);
}
