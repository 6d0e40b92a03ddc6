/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_fixture.h - makes sections of call frame information by hand, within an ELF file that has
 * nothing else but a large executable segment.
 */
#ifndef WALLPROF_TEST_CFI_FIXTURE_H
#define WALLPROF_TEST_CFI_FIXTURE_H

#include "elf_file.h"
#include <elf.h>

typedef VEC(uint8_t) Bytes;

void put_bytes(Bytes *bytes, const void *data, size_t size);
void put_number(Bytes *bytes, uint64_t number, unsigned size);
void put_uleb(Bytes *bytes, uint64_t number);

/* The segment is at SVMA 0, and the section lies in its file part. */
#define FRAMES_EXECUTABLE (1u << 20)

struct frames_file {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[3];
	char names[40];
	uint8_t frames[];
};

#define FRAMES_ADDRESS sizeof(struct frames_file)

/* Returns an ELF file with this section, which the caller frees. */
struct frames_file *make_frames_file(const void *frames, size_t size, bool eh_frame,
				     size_t *ret_size);

#endif
