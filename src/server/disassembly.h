/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disassembly.h - the assembly text of a function, by libcapstone in a sandboxed child, because the
 * file may be malicious.
 */
#ifndef WALLPROF_DISASSEMBLY_H
#define WALLPROF_DISASSEMBLY_H

#include "elf_identifier.h"
#include "profile_libs.h"

#define SERVED_CODE_MAX (1u << 20) /* bytes per function */

typedef struct ServedInstruction {
	uint32_t offset; /* from the start of the function */
	uint32_t text;	 /* offset in Disassembly::texts */
} ServedInstruction;

typedef struct Disassembly {
	VEC(ServedInstruction) list;
	VEC(char) texts; /* each text ends with a NUL */
	uint32_t size;	 /* size of the code that was read */
} Disassembly;

/*
 * Disassembles `size` bytes at a library-relative address, or less if the file has less. Targets of
 * jumps and calls are library-relative addresses; bytes that are not an instruction become ".byte".
 * Returns 0, -ENOENT if there is no code, -EIO if the disassembly failed, or what
 * served_symbols_open() returns. The caller frees ret_code in any case.
 */
int disassembly_read(ElfIdentifier *identifier, const ServedLib *lib, uint64_t relative,
		     uint32_t size, Disassembly *ret_code);
void disassembly_free(Disassembly *code);

#endif
