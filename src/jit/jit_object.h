/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_object.h - reads an ELF file that a process has in its memory to show it to debuggers: gdb's
 * JIT interface (gdb manual, "JIT Compilation Interface"). Runs in the sandbox; all is untrusted.
 *
 * Such a file is relocatable (LLVM) or not (QEMU). In both, a section's address is where it is in
 * the process.
 */
#ifndef WALLPROF_JIT_OBJECT_H
#define WALLPROF_JIT_OBJECT_H

#include "jit_cfi.h"

typedef struct JitSymbol {
	uint64_t start, size; /* AVMA */
	const char *name;     /* in the object; ends with a NUL within it */
} JitSymbol;

typedef VEC(JitSymbol) JitSymbols;

/* Names are cut to this length in the end; longer ones are not read. */
#define JIT_OBJECT_NAME_MAX 4096u

/*
 * Appends the functions that have a name and a size and that are all in the ranges of code, and
 * adds the FDEs of the object. Of .eh_frame, the process's memory has what its relocations have
 * made of it; `memory` is all of it that was read, sorted by address.
 */
void jit_object_read(const JitMemory *object, const JitMemories *memory, JitCfi *cfi,
		     JitSymbols *symbols);

#endif
