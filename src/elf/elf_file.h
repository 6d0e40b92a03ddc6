/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_file.h - what recording needs from an ELF file: identity and load segments. Everything in the
 * file is untrusted: bounds are checked, nothing is asserted. Follows the ELF gABI and the GNU
 * build-id note.
 */
#ifndef WALLPROF_ELF_FILE_H
#define WALLPROF_ELF_FILE_H

#include "util.h"
#include <gelf.h>

/* More than any linker makes; the others of a file with more are ignored. */
#define ELF_LOADS_MAX 256u

typedef struct ElfSegment {
	uint64_t vaddr, offset, file_size;
	bool exec;
} ElfSegment;

typedef struct ElfIdentity {
	uint8_t build_id[20];
	uint8_t build_id_len; /* 0 = none (longer ones are cut to 20 bytes) */
	bool is_32;	      /* of a 32-bit program */
	bool not_elf;	      /* elf_identify() has failed because the file has another format */
	uint64_t base_svma;   /* lowest PT_LOAD p_vaddr, page-aligned down */
	VEC(ElfSegment) loads;
} ElfIdentity;

/*
 * Opens fd (not closed) or an image with libelf. Returns 0, -ENOEXEC if it is of neither x86-64
 * nor i386, or another negative errno. *ret_elf must be ended (elf_end()) in both cases; fd or
 * image must stay until then.
 */
int elf_file_open(int fd, Elf **ret_elf);
int elf_file_open_image(const void *image, size_t size, Elf **ret_elf);

/*
 * Returns whether it is of a 32-bit program (i386). Such files have names; their code is not
 * walked, disassembled or followed.
 */
bool elf_file_is_32(Elf *elf);

static inline void elf_endp(Elf **elf)
{
	elf_end(*elf);
}
#define _cleanup_elf_ _cleanup_(elf_endp)

/*
 * A file that is mapped into memory, so that only the parts that are used are read. If it shrinks
 * meanwhile, SIGBUS ends the process, so this is only for the sandbox.
 */
typedef struct ElfMap {
	Elf *elf; /* NULL = not open */
	void *image;
	size_t size;
	VEC(void *) decompressed; /* bytes of sections, by elf_decompress() */
} ElfMap;

/* Returns as elf_file_open(); after an error nothing is open. fd may be closed. */
int elf_map_open(int fd, ElfMap *ret_map);
void elf_map_close(ElfMap *map);
/* Releases the memory of whole pages in this part, which must not have been changed. */
void elf_map_forget(const ElfMap *map, uint64_t offset, uint64_t size);

/* Returns 0, or -ENOEXEC if its program headers cannot be read. */
int elf_file_identify(Elf *elf, ElfIdentity *ret_identity);

/*
 * Opens and identifies. Reads from fd (not closed). Returns as elf_file_open().
 */
int elf_identify(int fd, ElfIdentity *ret_identity);
/* Does the same for an image in memory (the vDSO). */
int elf_identify_image(const void *image, size_t size, ElfIdentity *ret_identity);
void elf_identity_free(ElfIdentity *identity);

/*
 * Computes AVMA - SVMA of a mapping at `start` with file offset `pgoff` and `length`, from the
 * PT_LOAD whose file range overlaps the mapping's (text and data may differ). If there are several,
 * because segments share a page of the file, it takes one that begins in the mapping's first page,
 * then an executable one, then the one with the largest overlap. Returns 0 or -ENOENT if no segment
 * fits.
 */
int elf_mapping_bias(const ElfIdentity *identity, uint64_t start, uint64_t length, uint64_t pgoff,
		     uint64_t *ret_bias);

#endif
