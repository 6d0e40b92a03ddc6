/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fentry_probe.h - whether programs can be attached to functions of the kernel (fentry, fexit).
 */
#ifndef WALLPROF_FENTRY_PROBE_H
#define WALLPROF_FENTRY_PROBE_H

#include <stdbool.h>

struct btf;

/*
 * Returns false with kernel.ftrace_enabled=0: the kernel then accepts and attaches the programs,
 * and never calls them (kernel/trace/ftrace.c, ftrace_startup_enable).
 */
bool fentry_probe_is_enabled(void);

/*
 * Returns whether the kernel, whose types are `kernel`, has the function, and a program for it can
 * be loaded: kernels without trampolines refuse it there. Needs the rights to load programs.
 */
bool fentry_probe_is_supported(const struct btf *kernel, const char *function);

#endif
