/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_code.h - what the bytes of code without call frame information look like.
 */
#ifndef WALLPROF_UNWIND_CODE_H
#define WALLPROF_UNWIND_CODE_H

#include "util.h"

/* mov $15,%rax; syscall: what libraries without CFI for it return to from a signal handler. Returns
 * where it is, or NULL. */
const uint8_t *unwind_code_sigreturn(const uint8_t *bytes, size_t size);
#define UNWIND_SIGRETURN_SIZE 9

/* Does it look like what linkers fill holes with (zeros, breakpoints, nops)? Looks at samples. */
bool unwind_code_filling(const uint8_t *bytes, size_t size);

/*
 * May an instruction that is a function's last one, and calls or can be stopped at, have this end?
 * False: the place of its last byte is that of no frame, neither as a return address less one
 * nor as an interrupted instruction.
 */
bool unwind_code_may_be_frame(const uint8_t *bytes, const uint8_t *end);

#endif
