/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_code.h - what is known of code without call frame information, by its bytes.
 *
 * Start-up code of C compilers and libraries (crti.o, crtbegin.o: _init, _fini, what registers
 * and ends a module) has none, and constructors and destructors are called from it. It uses so few
 * instructions that what each does to the stack can be followed. One that is not known here, or a
 * jump that leads to where another depth is, and nothing is said of the function it is in.
 */
#ifndef WALLPROF_UNWIND_CODE_H
#define WALLPROF_UNWIND_CODE_H

#include "unwind.h"
#include "util.h"

#define UNWIND_CODE_MAX 512 /* bytes that are looked at */

/* From at on, up to the next one. */
typedef struct UnwindCodeRow {
	uint32_t at;
	struct unwind_rule rule;
} UnwindCodeRow;

typedef struct UnwindCodeRows {
	UnwindCodeRow items[UNWIND_CODE_MAX];
	size_t count;
	uint32_t end; /* of the last function */
} UnwindCodeRows;

/*
 * Of the functions that follow one another from the first byte on, padding before and between
 * them. address: of the first byte. function_begins: one begins with it, if it is not padding; else
 * only where functions are aligned to.
 */
void unwind_code_follow(const uint8_t *bytes, size_t size, uint64_t address, bool function_begins,
			UnwindCodeRows *ret_rows);

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
