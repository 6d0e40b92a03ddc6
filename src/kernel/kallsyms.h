/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kallsyms.h - names of kernel functions, modules and BPF programs, from the
 * text of /proc/kallsyms.
 */
#ifndef WALLPROF_KALLSYMS_H
#define WALLPROF_KALLSYMS_H

#include "util.h"

typedef struct Kallsyms Kallsyms;

/*
 * Parses path (normally /proc/kallsyms). If `highest`, the highest address that will be searched
 * for, lies in the kernel's own code, what follows that code is not read. Returns 0; -EPERM if all
 * addresses are zero (kptr_restrict); -ENODATA if there are none; or another negative errno.
 */
int kallsyms_load(const char *path, uint64_t highest, Kallsyms **ret_kallsyms);

/* Returns what kallsyms_load() would, but reads only as much of the file as is needed. */
int kallsyms_check(const char *path);

/*
 * Returns the message for an error of these functions, with the remedy. It is valid as long as that
 * of error_text().
 */
const char *kallsyms_error_text(int error);

void kallsyms_free(Kallsyms *kallsyms);
DEFINE_CLEANUP(Kallsyms *, kallsyms_free)

typedef struct KernelSymbol {
	uint64_t start;
	uint32_t size;	    /* to the next symbol of any type; 0 = unknown */
	const char *name;   /* owned by the Kallsyms */
	const char *module; /* with its brackets: "[ext4]", "[bpf]"; NULL = vmlinux */
} KernelSymbol;

/* Searches text symbols only. Returns false if avma is in none. */
bool kallsyms_find(const Kallsyms *kallsyms, uint64_t avma, KernelSymbol *ret_symbol);

#endif
