/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trampolines.h - functions of the kernel that programs can be attached to (fentry, fexit).
 */
#ifndef WALLPROF_TRAMPOLINES_H
#define WALLPROF_TRAMPOLINES_H

#include <stdbool.h>

struct btf;

/*
 * Is there such a function in the kernel, whose types `kernel` has, and can a program be loaded for
 * it? That is where kernels refuse all that needs a trampoline. Needs the rights to load programs.
 */
bool trampolines_reach(const struct btf *kernel, const char *function);

#endif
