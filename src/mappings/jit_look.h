/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_look.h - one look at what a process says of the code that it makes, for jit_code.c, which
 * decides when a process is looked at.
 */
#ifndef WALLPROF_JIT_LOOK_H
#define WALLPROF_JIT_LOOK_H

#include "mapped_files.h"

/* Begins one; there must be none. Returns 0 or the sink's error. */
int jit_look_begin(MappedFiles *files, JitProcess *process);
/*
 * Goes on with it. What was found is used when all is known that was mapped until the memory had
 * been read (watermark_ns). Returns 1 if there is more to do at once, 0 if not, or the sink's
 * error.
 */
int jit_look_go_on(MappedFiles *files, uint64_t deadline_ns, uint64_t watermark_ns);

#endif
