/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fentry_probe.h - functions of the kernel that programs can be attached to (fentry, fexit).
 */
#ifndef WALLPROF_FENTRY_PROBE_H
#define WALLPROF_FENTRY_PROBE_H

#include <stdbool.h>

struct btf;

/*
 * Not with kernel.ftrace_enabled=0: then the kernel takes them, says that they are attached, and
 * never calls them (kernel/trace/ftrace.c, ftrace_startup_enable).
 */
bool fentry_probe_is_enabled(void);

/*
 * Is there such a function in the kernel, whose types `kernel` has, and can a program be loaded for
 * it? That is where kernels refuse all that needs a trampoline. Needs the rights to load programs.
 */
bool fentry_probe_is_supported(const struct btf *kernel, const char *function);

#endif
