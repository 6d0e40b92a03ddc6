/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load_fallback.h - the BPF programs for kernels whose memory they can read by calls only: see
 * bpf/wait/kernel_read.bpf.h. Maps and variables are those of the others.
 */
#ifndef WALLPROF_LOAD_FALLBACK_H
#define WALLPROF_LOAD_FALLBACK_H

#include <stddef.h>

/* The object, which is not the caller's. */
const void *load_fallback_elf(size_t *ret_size);

#endif
