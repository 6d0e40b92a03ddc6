/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf_symbols_fixture.h"
#include "elf_file.h"

static int finalize_symbols(int r, Elf *elf, ElfSymbols *ret_symbols)
{
	*ret_symbols = (ElfSymbols){};
	if (r == 0) {
		elf_symbols_add_tables(ret_symbols, elf);
		elf_symbols_finalize(ret_symbols);
	}
	elf_end(elf);
	return r;
}

int read_symbols(int fd, ElfSymbols *ret_symbols)
{
	Elf *elf;
	int r = elf_file_open(fd, &elf);

	return finalize_symbols(r, elf, ret_symbols);
}

int read_symbols_of_image(const void *image, size_t size, ElfSymbols *ret_symbols)
{
	Elf *elf;
	int r = elf_file_open_image(image, size, &elf);

	return finalize_symbols(r, elf, ret_symbols);
}
