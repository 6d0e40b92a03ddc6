/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_questions.h - what a look (jit_look.h) asks the sandboxed child, and which files may tell of
 * code that their processes make.
 */
#ifndef WALLPROF_JIT_QUESTIONS_H
#define WALLPROF_JIT_QUESTIONS_H

#include "mapped_files.h"

/*
 * Asks about the look's files that are not known yet. Returns how many answers are missing, or a
 * negative errno: the child cannot be asked.
 */
int jit_questions_ask_files(MappedFiles *files);
/* Notes the child's answer. */
void jit_questions_on_answer(JitCodes *codes);
/* Returns whether one of the look's files may tell of code. */
bool jit_questions_can_tell(JitCodes *codes);
/* Returns what is known of a file; valid until the next call. */
const ElfJit *jit_questions_file(JitCodes *codes, uint32_t file);

/* Asks about the memory that the look has read. Returns 0 or a negative errno. */
int jit_questions_ask_memory(JitCodes *codes);

/*
 * Ends the child. If it failed at a file, that counts as having nothing to tell, so it is not tried
 * again.
 */
void jit_questions_end_child(JitCodes *codes);

#endif
