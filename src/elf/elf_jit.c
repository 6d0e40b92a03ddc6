/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf_jit.h"
#include "elf_symbols.h"
#include <string.h>

/* The entries of a symbol table that are read; the largest browsers have a quarter of that. */
#define SYMBOLS_MAX (8u << 20)

static const char descriptor[] = "__jit_debug_descriptor";
static const char registering[] = "__register_frame";

/* A library that others call defines it among its dynamic symbols, and calls nothing. */
static void see_symbol(const GElf_Sym *symbol, const char *name, bool dynamic, ElfJit *jit)
{
	if (symbol->st_shndx != SHN_UNDEF && !strcmp(name, descriptor))
		jit->descriptor = symbol->st_value;
	/* There are others, as __register_frame_info(). */
	if (!strncmp(name, registering, sizeof(registering) - 1))
		jit->registers |= (symbol->st_shndx == SHN_UNDEF) == dynamic;
}

static void read_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, ElfJit *jit)
{
	Elf_Data *data;
	size_t count;

	if (!elf_section_data(section, &data) || header->sh_entsize != sizeof(Elf64_Sym))
		return;
	count = MIN(data->d_size / sizeof(Elf64_Sym), (size_t)SYMBOLS_MAX);
	for (size_t i = 0; i < count; i++) {
		const char *name;
		GElf_Sym symbol;

		if (!gelf_getsym(data, i, &symbol))
			return;
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (name && name[0] == '_' && name[1] == '_')
			see_symbol(&symbol, name, header->sh_type == SHT_DYNSYM, jit);
	}
}

void elf_jit_find(Elf *elf, ElfJit *ret_jit)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	*ret_jit = (ElfJit){};
	if (elf_file_is_32(elf))
		return;
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB))
			read_table(elf, section, &header, ret_jit);
}
