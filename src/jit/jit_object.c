/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jit_object.h"
#include <elf.h>

#define SECTIONS_MAX 16384u
#define SYMBOLS_MAX  (1u << 17) /* of all objects of a process */

/* A section's bytes in the object. */
typedef struct Bytes {
	const uint8_t *data;
	size_t size;
} Bytes;

typedef struct Object {
	const JitMemory *memory;
	Elf64_Ehdr header;
	Bytes names;
} Object;

static bool read_header(Object *object)
{
	const JitMemory *memory = object->memory;
	Elf64_Ehdr *header = &object->header;

	if (memory->size < sizeof(*header))
		return false;
	memcpy(header, memory->data, sizeof(*header));
	return !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
	       header->e_machine == EM_X86_64 && header->e_shentsize == sizeof(Elf64_Shdr) &&
	       header->e_shnum <= SECTIONS_MAX && header->e_shoff <= memory->size &&
	       header->e_shnum <= (memory->size - header->e_shoff) / sizeof(Elf64_Shdr);
}

static bool read_section(const Object *object, uint32_t index, Elf64_Shdr *ret_section)
{
	if (index >= object->header.e_shnum)
		return false;
	memcpy(ret_section,
	       object->memory->data + object->header.e_shoff + index * sizeof(Elf64_Shdr),
	       sizeof(*ret_section));
	return true;
}

static bool read_bytes(const Object *object, const Elf64_Shdr *section, Bytes *ret_bytes)
{
	const JitMemory *memory = object->memory;

	if (section->sh_type == SHT_NOBITS || section->sh_flags & SHF_COMPRESSED ||
	    section->sh_offset > memory->size ||
	    section->sh_size > memory->size - section->sh_offset)
		return false;
	*ret_bytes = (Bytes){memory->data + section->sh_offset, section->sh_size};
	return true;
}

/* Returns NULL if there is none, or if it is too long. */
static const char *string_at(const Bytes *strings, uint64_t offset)
{
	const char *string;
	size_t left;

	if (offset >= strings->size)
		return NULL;
	left = strings->size - offset;
	string = (const char *)strings->data + offset;
	return memchr(string, '\0', MIN(left, (size_t)JIT_OBJECT_NAME_MAX)) ? string : NULL;
}

/* ---- symbols ------------------------------------------------------------------------- */

/* In a relocatable file a symbol's value is counted from its section. */
static bool find_address(const Object *object, const Elf64_Sym *symbol, uint64_t *ret_address)
{
	Elf64_Shdr section;

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE ||
	    !read_section(object, symbol->st_shndx, &section) || !(section.sh_flags & SHF_ALLOC))
		return false;
	*ret_address = symbol->st_value;
	if (object->header.e_type == ET_REL)
		*ret_address += section.sh_addr;
	return section.sh_addr != 0;
}

static void add_symbol(const Object *object, const Elf64_Sym *symbol, const Bytes *strings,
		       const JitRanges *code, JitSymbols *symbols)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	JitSymbol added = {.size = symbol->st_size};

	if ((type != STT_FUNC && type != STT_NOTYPE) || symbol->st_size == 0 ||
	    !find_address(object, symbol, &added.start) ||
	    !jit_ranges_contain(code, added.start, added.size))
		return;
	added.name = string_at(strings, symbol->st_name);
	if (added.name && *added.name && symbols->count < SYMBOLS_MAX)
		*vec_push(symbols) = added;
}

static void read_symbols(const Object *object, const Elf64_Shdr *section, const JitRanges *code,
			 JitSymbols *symbols)
{
	Elf64_Shdr string_section;
	Bytes table, strings;

	if (section->sh_entsize != sizeof(Elf64_Sym) || !read_bytes(object, section, &table) ||
	    !read_section(object, section->sh_link, &string_section) ||
	    !read_bytes(object, &string_section, &strings))
		return;
	for (size_t at = 0; table.size - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;

		memcpy(&symbol, table.data + at, sizeof(symbol));
		add_symbol(object, &symbol, &strings, code, symbols);
	}
}

/* ---- call frame information ---------------------------------------------------------- */

/* Finds the process's memory, if all of it was read. */
static bool find_memory(const JitMemories *memory, uint64_t address, uint64_t size,
			Bytes *ret_bytes)
{
	size_t next =
		partition_point(middle, memory->count, memory->items[middle].address <= address);
	const JitMemory *piece = next ? &memory->items[next - 1] : NULL;

	if (!piece || address - piece->address >= piece->size ||
	    size > piece->size - (address - piece->address))
		return false;
	*ret_bytes = (Bytes){piece->data + (address - piece->address), size};
	return true;
}

/*
 * A relocatable object has its sections as they are before relocation, so only the memory counts.
 */
static void read_cfi(const Object *object, const Elf64_Shdr *section, bool eh_frame,
		     const JitMemories *memory, JitCfi *cfi)
{
	CfiSection read = {.address = section->sh_addr, .eh_frame = eh_frame};
	Bytes bytes;

	if (!(eh_frame && section->sh_addr &&
	      find_memory(memory, section->sh_addr, section->sh_size, &bytes)) &&
	    !(object->header.e_type != ET_REL && read_bytes(object, section, &bytes)))
		return;
	read.data = bytes.data;
	read.size = bytes.size;
	jit_cfi_add_section(cfi, &read);
}

void jit_object_read(const JitMemory *memory, const JitMemories *all, JitCfi *cfi,
		     JitSymbols *symbols)
{
	Object object = {.memory = memory};
	Elf64_Shdr section;

	if (!read_header(&object))
		return;
	if (read_section(&object, object.header.e_shstrndx, &section))
		read_bytes(&object, &section, &object.names);
	for (uint32_t i = 0; read_section(&object, i, &section); i++) {
		const char *name = string_at(&object.names, section.sh_name);

		if (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM)
			read_symbols(&object, &section, cfi->code, symbols);
		else if (name && (!strcmp(name, ".eh_frame") || !strcmp(name, ".debug_frame")))
			read_cfi(&object, &section, name[1] == 'e', all, cfi);
	}
}
