/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_go.h - unwind rules of a Go function, by its depths of stack (pclntab.h). Go's compiler
 * writes no .eh_frame; .debug_frame, if there is one, does not say which frames are the outermost,
 * where the stack is another one, nor where rbp is.
 */
#ifndef WALLPROF_UNWIND_GO_H
#define WALLPROF_UNWIND_GO_H

#include "cfi_program.h"
#include "pclntab.h"

/*
 * Emits all of the function, but for what pads it. code: its bytes, NULL if they are unknown.
 *
 * A function that moves the stack pointer from one stack to another (runtime.systemstack) has no
 * frame of its own: rbp still is that of its caller, on the stack that was left. It goes on with
 * the caller's caller, which is marked as guessed. But where the scheduler has left a goroutine
 * (runtime.mcall), the stack ends: it is not returned to.
 */
void unwind_go_run(const Pclntab *table, const PclntabFunction *function, const uint8_t *code,
		   CfiEmit emit, void *user);

#endif
