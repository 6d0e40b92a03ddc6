/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_file.h - the little that recording needs of an ELF file: identity, load
 * segments, function symbols. Everything in the file is untrusted: bounds are
 * checked, nothing is asserted. Follows the ELF gABI and the GNU build-id note.
 */
#ifndef WALLPROF_ELF_FILE_H
#define WALLPROF_ELF_FILE_H

#include "util.h"

typedef struct ElfSegment {
	uint64_t vaddr, offset, file_size;
	bool exec;
} ElfSegment;

typedef struct ElfIdentity {
	uint8_t build_id[20];
	uint8_t build_id_len; /* 0 = none (longer ones are cut to 20 bytes) */
	uint64_t base_svma;   /* lowest PT_LOAD p_vaddr, page-aligned down */
	VEC(ElfSegment) loads;
} ElfIdentity;

/* Reads from fd (not closed). Returns 0, -ENOEXEC if not ELF64 x86-64, or -errno. */
int elf_identify(int fd, ElfIdentity *ret_identity);
/* The same from an image in memory (the vDSO). */
int elf_identify_image(const void *image, size_t size, ElfIdentity *ret_identity);
void elf_identity_free(ElfIdentity *identity);

/*
 * AVMA - SVMA of a mapping at `start` with file offset `pgoff` and `length`: from
 * the PT_LOAD whose file range overlaps the mapping's (text and data may
 * differ). Where several do, as segments can share a page of the file: one that
 * begins in the mapping's first page, then an executable one, then the one with
 * the most in common. Returns 0 or -ENOENT if no segment fits.
 */
int elf_mapping_bias(const ElfIdentity *identity, uint64_t start, uint64_t length, uint64_t pgoff,
		     uint64_t *ret_bias);

typedef struct ElfSymbol {
	uint64_t start; /* SVMA */
	uint64_t size;	/* never 0: unsized symbols end at the next or at their section's end */
	uint32_t name;	/* offset in names */
} ElfSymbol;

/*
 * Function symbols of .symtab and .dynsym, sorted by start, one per start: global
 * before local, longer before shorter, fewer leading underscores before more.
 */
typedef struct ElfSymbols {
	VEC(ElfSymbol) list;
	VEC(char) names;
} ElfSymbols;

/* fd is not closed. Returns 0 (maybe with no symbols), -ENOEXEC or -errno. */
int elf_symbols_read(int fd, ElfSymbols *ret_symbols);
int elf_symbols_read_image(const void *image, size_t size, ElfSymbols *ret_symbols);
/* The function that holds svma, or NULL. */
const ElfSymbol *elf_symbols_find(const ElfSymbols *symbols, uint64_t svma);
void elf_symbols_free(ElfSymbols *symbols);

#endif
