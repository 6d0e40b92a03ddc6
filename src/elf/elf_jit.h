/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_jit.h - whether an ELF file may tell others of code that its process makes at run time. Runs
 * in the sandbox.
 */
#ifndef WALLPROF_ELF_JIT_H
#define WALLPROF_ELF_JIT_H

#include "elf_file.h"

typedef struct ElfJit {
	/*
	 * SVMA of __jit_debug_descriptor (gdb manual, "JIT Compilation Interface"); 0 = it has
	 * none.
	 */
	uint64_t descriptor;
	/* It calls __register_frame() of libgcc or libunwind, or has it linked in. */
	bool registers;
} ElfJit;

void elf_jit_find(Elf *elf, ElfJit *ret_jit);

#endif
