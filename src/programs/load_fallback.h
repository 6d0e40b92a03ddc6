/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load_fallback.h - the BPF programs for kernels in which they can read memory only by helper
 * calls: see bpf/wait/fd.bpf.c. Their maps and variables are the same as those of the
 * other object.
 */
#ifndef WALLPROF_LOAD_FALLBACK_H
#define WALLPROF_LOAD_FALLBACK_H

#include <stddef.h>

/* Returns the object, which is static. */
const void *load_fallback_elf(size_t *ret_size);

#endif
