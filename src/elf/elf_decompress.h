/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_decompress.h - decompresses sections (SHF_COMPRESSED) in memory, so that libelf and libdw
 * read them as if they had never been compressed. Follows the ELF gABI, "Section Compression".
 * libelf knows ELFCOMPRESS_ZSTD only since 0.189, so zstd is decompressed here. Runs in the
 * sandbox.
 */
#ifndef WALLPROF_ELF_DECOMPRESS_H
#define WALLPROF_ELF_DECOMPRESS_H

#include "elf_file.h"

/* A section that is larger is not decompressed: those of the largest browsers have a third. */
#define ELF_DECOMPRESSED_MAX (1u << 30)

/*
 * Decompresses the section of map->elf; its bytes are freed by elf_map_close(). Returns 0, also if
 * it is not compressed; -ENOTSUP (another kind of compression), -EFBIG, -EBADMSG (damaged) or
 * -ENOMEM, and then the section is as it was.
 */
int elf_decompress(ElfMap *map, Elf_Scn *section);

/* Decompresses the symbol tables and tables of strings, whose bytes elf_symbols.h reads. */
void elf_decompress_tables(ElfMap *map);

#endif
