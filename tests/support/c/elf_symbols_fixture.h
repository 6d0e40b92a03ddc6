/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The symbol tables of one file or image, read and settled. */
#ifndef WALLPROF_TEST_READ_SYMBOLS_H
#define WALLPROF_TEST_READ_SYMBOLS_H

#include "elf_file.h"
#include "elf_symbols.h"

static inline int finalize_symbols(int r, Elf *elf, ElfSymbols *ret_symbols)
{
	*ret_symbols = (ElfSymbols){};
	if (r == 0) {
		elf_symbols_add_tables(ret_symbols, elf);
		elf_symbols_finalize(ret_symbols);
	}
	elf_end(elf);
	return r;
}

static inline int read_symbols(int fd, ElfSymbols *ret_symbols)
{
	Elf *elf;
	int r = elf_file_open(fd, &elf);

	return finalize_symbols(r, elf, ret_symbols);
}

static inline int read_symbols_of_image(const void *image, size_t size, ElfSymbols *ret_symbols)
{
	Elf *elf;
	int r = elf_file_open_image(image, size, &elf);

	return finalize_symbols(r, elf, ret_symbols);
}

#endif
