/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_go.h - unwind rules of a Go function, by its stack depths (pclntab.h). Go's compiler
 * writes no .eh_frame. .debug_frame, if there is one, does not say which frames are the outermost,
 * where the stack is another one, nor where rbp is.
 */
#ifndef WALLPROF_UNWIND_GO_H
#define WALLPROF_UNWIND_GO_H

#include "cfi_program.h"
#include "pclntab.h"

/*
 * Emits rules for all of the function, except for its padding. code: its bytes.
 *
 * A function that moves the stack pointer from one stack to another (runtime.systemstack) is
 * unwound by its depths up to there, and after that by rbp, which still points into the old stack:
 * to the function's caller if the function has saved rbp itself. If it has not, rbp is its
 * caller's, and the caller would be missing, so what follows is marked as guessed. Where it
 * returns, its depths hold again. Where the scheduler has left a goroutine (runtime.mcall), the
 * stack ends, because it is not returned to. Where a goroutine's stack is enlarged
 * (runtime.morestack), the caller is not known.
 */
void unwind_go_run(const Pclntab *table, const PclntabFunction *function, const uint8_t *code,
		   CfiEmit emit, void *user);

#endif
