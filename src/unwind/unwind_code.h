/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_code.h - classifies the bytes of code without call frame information.
 */
#ifndef WALLPROF_UNWIND_CODE_H
#define WALLPROF_UNWIND_CODE_H

#include "util.h"

/*
 * Searches mov $15,%rax; syscall: the signal restorer of libraries that have no CFI for it. Returns
 * its address, or NULL.
 */
const uint8_t *unwind_code_sigreturn(const uint8_t *bytes, size_t size);
#define UNWIND_SIGRETURN_SIZE 9

/*
 * Returns whether it looks like the padding of linkers (zeros, breakpoints, nops). It checks
 * samples.
 */
bool unwind_code_filling(const uint8_t *bytes, size_t size);

/*
 * Returns whether these bytes can be the end of a function's last instruction if that is a call or
 * can be interrupted. False: its last byte is in no frame, neither as a return address less one nor
 * as an interrupted instruction.
 */
bool unwind_code_may_be_frame(const uint8_t *bytes, const uint8_t *end);

#endif
