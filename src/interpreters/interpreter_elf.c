/* SPDX-License-Identifier: GPL-2.0-or-later */
/* interpreter_elf.c - variables of an ELF file, for the modules of interpreters. */
#include "interpreter_module.h"
#include <string.h>

static uint64_t find_in(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, const char *name)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
	GElf_Sym symbol;

	for (size_t i = 0; i < count; i++) {
		const char *text;

		if (!gelf_getsym(data, i, &symbol) || symbol.st_shndx == SHN_UNDEF)
			continue;
		text = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (text && !strcmp(text, name))
			return symbol.st_value;
	}
	return 0;
}

static uint64_t find_in_all(Elf *elf, uint32_t kind, const char *name)
{
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;
		uint64_t value;

		if (!gelf_getshdr(section, &header) || header.sh_type != kind)
			continue;
		value = find_in(elf, section, &header, name);
		if (value)
			return value;
	}
	return 0;
}

uint64_t interpreter_symbol(Elf *elf, const char *name)
{
	uint64_t value = find_in_all(elf, SHT_DYNSYM, name);

	return value ? value : find_in_all(elf, SHT_SYMTAB, name);
}

/* Returns a name's hash, as dl_new_hash() of glibc computes it (elf/dl-lookup.c, dl-new-hash.h). */
static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

/* Returns word i of a hash table; 0: it has none. */
static uint32_t word_of(const Elf_Data *table, uint64_t i)
{
	uint32_t word = 0;

	if (i < table->d_size / sizeof(word))
		memcpy(&word, (const char *)table->d_buf + i * sizeof(word), sizeof(word));
	return word;
}

/*
 * Looks for a symbol by the file's hash table: of large programs that export much a linear search
 * would read all names. *ret_has_table: there is one, so that the answer is valid.
 */
static bool find_by_hash(Elf *elf, const char *name, bool *ret_has_table)
{
	uint32_t hash = gnu_hash(name);

	*ret_has_table = false;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		GElf_Shdr header, symbols_header;
		Elf_Data *table, *symbols;
		uint64_t chains, symbol;
		uint32_t buckets, first;
		Elf_Scn *of;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_GNU_HASH)
			continue;
		table = elf_rawdata(section, NULL);
		of = elf_getscn(elf, header.sh_link);
		symbols = of ? elf_getdata(of, NULL) : NULL;
		if (!table || !table->d_buf || !symbols || !gelf_getshdr(of, &symbols_header))
			return false;
		*ret_has_table = true;
		buckets = word_of(table, 0);
		first = word_of(table, 1);
		/* After four words are the Bloom filter, of 64-bit words, and the buckets. */
		chains = 4 + 2 * (uint64_t)word_of(table, 2) + buckets;
		symbol = buckets ? word_of(table, chains - buckets + hash % buckets) : 0;
		for (; symbol >= first && symbol != 0; symbol++) {
			uint32_t chain = word_of(table, chains + symbol - first);
			const char *text;
			GElf_Sym found;

			if (symbol > INT32_MAX || !gelf_getsym(symbols, symbol, &found))
				return false;
			text = (chain | 1) == (hash | 1)
				       ? elf_strptr(elf, symbols_header.sh_link, found.st_name)
				       : NULL;
			if (text && !strcmp(text, name))
				return found.st_shndx != SHN_UNDEF && found.st_value != 0;
			if (chain & 1)
				return false;
		}
		return false;
	}
	return false;
}

bool interpreter_exports(Elf *elf, const char *name)
{
	bool has_table, found = find_by_hash(elf, name, &has_table);

	return has_table ? found : find_in_all(elf, SHT_DYNSYM, name) != 0;
}

bool interpreter_read(Elf *elf, uint64_t svma, void *ret_data, size_t size)
{
	size_t count, image_size;
	const char *image = elf_rawfile(elf, &image_size);

	if (!image || elf_getphdrnum(elf, &count))
		return false;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr header;
		uint64_t into;

		if (!gelf_getphdr(elf, i, &header) || header.p_type != PT_LOAD ||
		    svma < header.p_vaddr)
			continue;
		into = svma - header.p_vaddr;
		if (into >= header.p_filesz || size > header.p_filesz - into ||
		    header.p_offset > image_size || into > image_size - header.p_offset ||
		    size > image_size - header.p_offset - into)
			continue;
		memcpy(ret_data, image + header.p_offset + into, size);
		return true;
	}
	return false;
}
