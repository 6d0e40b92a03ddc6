/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf_symbols_fixture.h - reads the symbol tables of one file or image, and finalizes them. */
#ifndef WALLPROF_TEST_ELF_SYMBOLS_FIXTURE_H
#define WALLPROF_TEST_ELF_SYMBOLS_FIXTURE_H

#include "elf_symbols.h"

/* Both return 0 or the negative errno of elf_file_open(). */
int read_symbols(int fd, ElfSymbols *ret_symbols);
int read_symbols_of_image(const void *image, size_t size, ElfSymbols *ret_symbols);

#endif
