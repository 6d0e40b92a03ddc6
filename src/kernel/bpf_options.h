/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bpf_options.h - structs of options for libbpf's functions.
 */
#ifndef WALLPROF_BPF_OPTIONS_H
#define WALLPROF_BPF_OPTIONS_H

#include <string.h>

/*
 * Declares struct type name with no option set. It is used in the place of LIBBPF_OPTS(): libbpf
 * refuses options whose padding is not zero, and LIBBPF_OPTS() copies a literal, and gcc does
 * not set the padding of a literal at -O0.
 */
#define BPF_OPTIONS(type, name)                                                                    \
	struct type name;                                                                          \
	memset(&(name), 0, sizeof(name));                                                          \
	(name).sz = sizeof(name)

#endif
