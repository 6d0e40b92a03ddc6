/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * program_sections.h - tells libbpf what the programs attach to, and which functions of the kernel
 * they call. By itself libbpf would read and search all types of the kernel for it, once for each
 * object; wallprof has read them already (KernelInfo).
 */
#ifndef WALLPROF_PROGRAM_SECTIONS_H
#define WALLPROF_PROGRAM_SECTIONS_H

#include "kernel_info.h"

/*
 * Must be called before an object is opened. The info must stay open until the object is loaded.
 * Returns 0 or a negative errno.
 */
int program_sections_use(const KernelInfo *kernel);

#endif
