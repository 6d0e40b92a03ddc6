/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_code.h - finds out what processes say of the code that they make at run time: call frame
 * information that they register (__register_frame) and objects that they show to debuggers (gdb's
 * JIT interface). A sandboxed child makes ELF files of it, which are recorded as mapped where the
 * code is.
 *
 * A process is looked at when it has mapped executable memory without a file, and, once one of its
 * stacks has ended or was guessed in such memory, at intervals that grow to 4 s; but only if one of
 * its files can register such information or has such objects. What was found stays in use until
 * something else is mapped there. Where the process may write to the code, or to what describes it,
 * it is looked at again and again, and what is not there any more counts as unknown from the last
 * look on.
 */
#ifndef WALLPROF_JIT_CODE_H
#define WALLPROF_JIT_CODE_H

#include "mapped_files.h"

/*
 * Goes on with what is due, for about max_ns. All that was mapped up to watermark_ns is in files.
 * Emits a REC_FILE and REC_MAPPING records. Call it often. Returns 0 or the sink's error.
 */
int jit_code_check(MappedFiles *files, uint64_t max_ns, uint64_t watermark_ns);
/* Waits until the child has answered, for 1 ms at most. */
void jit_code_wait(MappedFiles *files);

/*
 * Whether a process is to be looked at before that time that has not been looked at in full: for
 * use before the window.
 */
bool jit_code_has_new(MappedFiles *files, uint64_t until_ns);
/*
 * Whether a stack waits for a look, which goes on or is due before that time: for use after the
 * window.
 */
bool jit_code_has_waiting(MappedFiles *files, uint64_t until_ns);

#endif
