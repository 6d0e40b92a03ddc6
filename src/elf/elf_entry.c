/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_entry.c - finds _start and main of an executable whose symbols are stripped. The entry point
 * is _start, which passes main to __libc_start_main() as the first argument, in %rdi. Linkers use
 * one of two instructions for that, and the C library decides what surrounds it. ld.so has a _start
 * as well.
 */
#include "elf_symbols.h"
#include <elf.h>
#include <string.h>

/* So much of a function is read: glibc's _start has 34 bytes, musl's _start_c 35. */
#define CODE_MAX     64
#define SEGMENTS_MAX 256u
#define DYNAMIC_MAX  (1u << 20) /* bytes */

#define LOAD_SIZE 7 /* both instructions that put an address into %rdi */
#define HLT	  0xf4

typedef struct Code {
	uint64_t address;
	const uint8_t *bytes; /* owned by libelf */
	size_t size;
} Code;

/* What a _start says about itself and about main; all 0 if it is not of a known C library. */
typedef struct StartUp {
	uint64_t size, main;
} StartUp;

/* ---- the file ---------------------------------------------------------------- */

static bool find_segment(Elf *elf, uint32_t type, GElf_Phdr *ret_segment)
{
	for (unsigned i = 0; i < SEGMENTS_MAX && gelf_getphdr(elf, i, ret_segment); i++)
		if (ret_segment->p_type == type)
			return true;
	return false;
}

static bool is_pie(Elf *elf, const GElf_Phdr *segment)
{
	Elf_Data *data =
		segment->p_filesz <= DYNAMIC_MAX
			? elf_getdata_rawchunk(elf, segment->p_offset, segment->p_filesz, ELF_T_DYN)
			: NULL;
	GElf_Dyn entry;

	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
		if (entry.d_tag == DT_FLAGS_1)
			return entry.d_un.d_val & DF_1_PIE;
	return false;
}

/*
 * Many shared libraries have an entry point, too, which is another function (libc.so.6's prints its
 * version), or no function at all: older linkers write where .text begins.
 */
static bool is_executable(Elf *elf, const GElf_Ehdr *header)
{
	GElf_Phdr segment;

	if (header->e_type != ET_DYN)
		return header->e_type == ET_EXEC;
	return find_segment(elf, PT_DYNAMIC, &segment) && is_pie(elf, &segment);
}

/* Returns false if the file has no code at the address. */
static bool read_code(Elf *elf, uint64_t address, Code *ret_code)
{
	GElf_Phdr segment;

	for (unsigned i = 0; i < SEGMENTS_MAX && gelf_getphdr(elf, i, &segment); i++) {
		uint64_t distance = address - segment.p_vaddr;
		Elf_Data *data;

		if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X) ||
		    address < segment.p_vaddr || distance >= segment.p_filesz)
			continue;
		/* This refuses what lies outside of the file, an offset that overflows included. */
		data = elf_getdata_rawchunk(elf, segment.p_offset + distance,
					    MIN(segment.p_filesz - distance, (uint64_t)CODE_MAX),
					    ELF_T_BYTE);
		if (!data)
			return false;
		*ret_code = (Code){address, data->d_buf, data->d_size};
		return true;
	}
	return false;
}

/* ---- instructions ------------------------------------------------------------- */

static int64_t operand_at(const Code *code, size_t at)
{
	int32_t operand;

	memcpy(&operand, code->bytes + at, sizeof(operand));
	return operand;
}

/* Matches lea OPERAND(%rip),%rdi or mov $OPERAND,%rdi, the second where addresses are absolute. */
static bool read_load(const Code *code, size_t at, uint64_t *ret_value)
{
	static const uint8_t lea[] = {0x48, 0x8d, 0x3d}, mov[] = {0x48, 0xc7, 0xc7};
	int64_t operand;

	if (code->size < LOAD_SIZE || at > code->size - LOAD_SIZE)
		return false;
	operand = operand_at(code, at + sizeof(lea));
	if (!memcmp(code->bytes + at, mov, sizeof(mov))) {
		*ret_value = operand;
		return true;
	}
	*ret_value = code->address + at + LOAD_SIZE + operand;
	return !memcmp(code->bytes + at, lea, sizeof(lea));
}

/* Returns the size of the call or tail call there, or 0; it may end after what was read. */
static size_t call_size(const Code *code, size_t at)
{
	static const struct {
		uint8_t opcode[2], opcode_size, size;
	} calls[] = {
		{{0xe8}, 1, 5},	      /* call */
		{{0xe9}, 1, 5},	      /* jmp */
		{{0x67, 0xe8}, 2, 6}, /* call, by a linker that resolves the function */
		{{0xff, 0x15}, 2, 6}, /* call through the GOT */
		{{0xff, 0x25}, 2, 6}, /* jmp through the GOT */
	};

	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (code->size - at >= calls[i].opcode_size &&
		    !memcmp(code->bytes + at, calls[i].opcode, calls[i].opcode_size))
			return calls[i].size;
	return 0;
}

/* Returns the end of the first call right after an instruction that loads %rdi, or 0. */
static size_t find_call_with_rdi(const Code *code, uint64_t *ret_rdi)
{
	for (size_t at = 0; at < code->size; at++) {
		size_t size = read_load(code, at, ret_rdi) ? call_size(code, at + LOAD_SIZE) : 0;

		if (size)
			return at + LOAD_SIZE + size;
	}
	return 0;
}

/* ---- start-up code -------------------------------------------------------------- */

/* glibc's _start calls __libc_start_main() itself, and has a hlt after the call. */
static StartUp read_glibc_start(const Code *start)
{
	StartUp start_up;
	size_t end = find_call_with_rdi(start, &start_up.main);

	if (end == 0 || end >= start->size || start->bytes[end] != HLT)
		return (StartUp){};
	start_up.size = end + 1;
	return start_up;
}

/* musl's _start aligns the stack and calls _start_c(), which jumps to __libc_start_main(). */
static StartUp read_musl_start(Elf *elf, const Code *start)
{
	static const uint8_t align_and_call[] = {0x48, 0x83, 0xe4, 0xf0, 0xe8};
	const uint8_t *found =
		memmem(start->bytes, start->size, align_and_call, sizeof(align_and_call));
	size_t operand = found ? found - start->bytes + sizeof(align_and_call) : start->size;
	size_t end = operand + sizeof(int32_t);
	StartUp start_up = {.size = end};
	Code start_c;

	if (end > start->size ||
	    !read_code(elf, start->address + end + operand_at(start, operand), &start_c) ||
	    !find_call_with_rdi(&start_c, &start_up.main))
		return (StartUp){};
	return start_up;
}

static StartUp read_start(Elf *elf, const Code *start)
{
	StartUp start_up = read_glibc_start(start);

	return start_up.size ? start_up : read_musl_start(elf, start);
}

/*
 * glibc's ld.so is a shared library that needs no other one. Its _start passes the stack pointer to
 * _dl_start(); what follows is another function.
 */
static StartUp read_loader_start(Elf *elf, const Code *start)
{
	static const uint8_t pass_and_call[] = {0x48, 0x89, 0xe7, 0xe8};
	size_t size = sizeof(pass_and_call) + sizeof(int32_t);
	GElf_Phdr segment;

	if (find_segment(elf, PT_INTERP, &segment) || start->size < size ||
	    memcmp(start->bytes, pass_and_call, sizeof(pass_and_call)) != 0)
		return (StartUp){};
	return (StartUp){.size = size};
}

/* ---- candidates ----------------------------------------------------------------- */

/* Returns the function that begins there by the unwind table, or NULL. */
static const ElfSymbol *find_fde(const ElfSymbols *symbols, uint64_t start)
{
	for (size_t i = 0; i < symbols->candidates.count; i++) {
		const ElfCandidate *candidate = &symbols->candidates.items[i];

		if (candidate->source == SYMBOL_FDE && candidate->symbol.start == start)
			return &candidate->symbol;
	}
	return NULL;
}

static void add_function(ElfSymbols *symbols, const char *name, uint64_t start, uint64_t size)
{
	size_t name_offset = symbols->names.count;

	vec_append(&symbols->names, name, strlen(name) + 1);
	*vec_push(&symbols->candidates) = (ElfCandidate){
		.symbol = {.start = start, .size = size, .name = name_offset},
		.limit = UINT64_MAX,
		.source = SYMBOL_ENTRY,
	};
}

void elf_symbols_add_entry(ElfSymbols *symbols, Elf *elf)
{
	const ElfSymbol *fde;
	StartUp start_up;
	GElf_Ehdr header;
	bool executable;
	Code code;

	if (!gelf_getehdr(elf, &header) || !read_code(elf, header.e_entry, &code))
		return;
	executable = is_executable(elf, &header);
	start_up = executable ? read_start(elf, &code) : read_loader_start(elf, &code);
	fde = executable ? find_fde(symbols, header.e_entry) : NULL;
	/* Without both, the end of _start is not known. */
	if (fde || start_up.size)
		add_function(symbols, "_start", header.e_entry, fde ? fde->size : start_up.size);
	/* The end of main is needed as well; an address where no function begins is not main. */
	fde = start_up.main && read_code(elf, start_up.main, &code)
		      ? find_fde(symbols, start_up.main)
		      : NULL;
	if (fde)
		add_function(symbols, "main", start_up.main, fde->size);
}
