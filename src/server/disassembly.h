/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disassembly.h - the machine code of a function as assembly text, by libcapstone in a sandboxed
 * child: the bytes come out of a file that may have been made to hurt.
 */
#ifndef WALLPROF_DISASSEMBLY_H
#define WALLPROF_DISASSEMBLY_H

#include "elf_identifier.h"
#include "profile_libs.h"

#define SERVED_CODE_MAX (1u << 20) /* bytes of one function */

typedef struct ServedInstruction {
	uint32_t offset; /* from the start */
	uint32_t text;	 /* offset in Disassembly::texts */
} ServedInstruction;

typedef struct Disassembly {
	VEC(ServedInstruction) list;
	VEC(char) texts; /* each with its NUL */
	uint32_t size;	 /* of the code that was read */
} Disassembly;

/*
 * Of `size` bytes at a library-relative address: less, where the file has less. Jumps and calls
 * name their targets as library-relative addresses; bytes that are no instruction are told as
 * ".byte". Returns 0, -ENOENT if there is no code, -EIO if it could not be taken apart, or what
 * served_symbols_open() returns. To be freed in any case.
 */
int disassembly_read(ElfIdentifier *identifier, const ServedLib *lib, uint64_t relative,
		     uint32_t size, Disassembly *ret_code);
void disassembly_free(Disassembly *code);

#endif
